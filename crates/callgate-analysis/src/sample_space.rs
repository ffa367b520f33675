//! The space of sample calls for a change of policies: tools × fields × candidate values, enumerated in a fixed order.

use std::collections::HashSet;

use crate::call_sample::{CallSample, SampleOrigin};
use crate::field_path::{FieldPath, FieldRoot};
use crate::vocabulary::Dimension;
use callgate::call::{SessionState, Task, TaskTurn};
use callgate::json::{Value, json};

/// A tool that samples call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SampleTool {
    /// The call that samples start from: one of a policy test, or one with arguments that the schema of the tool accepts.
    pub(crate) base: CallSample,
    /// Whether it is a call of a policy test.
    pub(crate) is_tested: bool,
}

/// The tools, fields and values of samples.
#[derive(Debug)]
pub(crate) struct SampleSpace {
    tools: Vec<SampleTool>,
    dimensions: Vec<Dimension>,
}

/// What a sample does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FieldChoice {
    /// It is as in the call that the sample starts from.
    Base,
    /// It is removed.
    Absent,
    /// It has the candidate value with this index.
    Value(usize),
}

/// The coordinates of a sample: a tool, and what it does with each field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SampleChoice {
    tool: usize,
    fields: Vec<FieldChoice>,
}

/// The seed of random samples.
const SEED: u64 = 0;
/// The largest count of earlier calls of a tool.
const MAX_COUNT: u64 = 50;
/// The most calls of policy tests in which each field is varied by itself.
const MAX_VARIED: usize = 3;

impl SampleSpace {
    pub(crate) fn new(tools: Vec<SampleTool>, dimensions: Vec<Dimension>) -> Self {
        Self { tools, dimensions }
    }

    /// Returns at most this many different choices: for each tool its call and the first value of each field; then each other value of
    /// each field; then random ones.
    pub(crate) fn choices(&self, limit: usize) -> Vec<SampleChoice> {
        let mut listed = ChoiceList { limit, known: HashSet::new(), choices: Vec::new() };
        let all = |choice: FieldChoice| vec![choice; self.dimensions.len()];
        let tested = self.tools.iter().enumerate().filter(|(_, tool)| tool.is_tested).map(|(index, _)| index);
        let tested: Vec<usize> = tested.collect();
        for tool in &tested {
            listed.add(SampleChoice { tool: *tool, fields: all(FieldChoice::Base) });
        }
        for tool in 0..self.tools.len() {
            listed.add(SampleChoice { tool, fields: all(FieldChoice::Value(0)) });
        }
        let varied = tested.iter().take(MAX_VARIED).map(|tool| (*tool, FieldChoice::Base));
        for (tool, start) in varied.chain([(0, FieldChoice::Value(0))]) {
            for (index, dimension) in self.dimensions.iter().enumerate() {
                let values = (0..dimension.values.len()).map(FieldChoice::Value);
                for choice in values.chain([FieldChoice::Absent]) {
                    let mut fields = all(start);
                    if let Some(place) = fields.get_mut(index) {
                        *place = choice;
                    }
                    listed.add(SampleChoice { tool, fields });
                }
            }
        }
        self.add_random(&mut listed);
        listed.choices
    }

    fn add_random(&self, listed: &mut ChoiceList) {
        let mut random = fastrand::Rng::with_seed(SEED);
        let size = self
            .dimensions
            .iter()
            .fold(self.tools.len(), |size, dimension| size.saturating_mul(dimension.values.len() + 2));
        for _ in 0..listed.limit.saturating_mul(2) {
            if listed.choices.len() >= size.min(listed.limit) || self.tools.is_empty() {
                break;
            }
            let tool = random.usize(..self.tools.len());
            let is_tested = self.tools.get(tool).is_some_and(|tool| tool.is_tested);
            let choose = |dimension: &Dimension| match random.u8(..8) {
                0..3 if is_tested => FieldChoice::Base,
                0..4 => FieldChoice::Value(0),
                4 => FieldChoice::Absent,
                _ => FieldChoice::Value(random.usize(..dimension.values.len().max(1))),
            };
            let fields = self.dimensions.iter().map(choose).collect();
            listed.add(SampleChoice { tool, fields });
        }
    }

    /// The sample of a choice. Returns `None` only for a choice of another space.
    pub(crate) fn sample(&self, choice: &SampleChoice) -> Option<CallSample> {
        let base = &self.tools.get(choice.tool)?.base;
        let mut call = base.call.clone();
        let mut session = base.session.document().clone();
        let mut task = Value::Null;
        let (mut now, mut session_changed) = (base.now, false);
        // The arguments first: they name members of other documents.
        let mut chosen: Vec<(&Dimension, Option<&Value>)> = Vec::new();
        for (dimension, choice) in self.dimensions.iter().zip(&choice.fields) {
            match choice {
                FieldChoice::Base => {}
                FieldChoice::Absent => chosen.push((dimension, None)),
                FieldChoice::Value(index) => chosen.push((dimension, dimension.values.get(*index))),
            }
        }
        for (dimension, value) in chosen {
            let path = &dimension.path;
            match path.root {
                FieldRoot::Input => set_field(path, &mut call.input, &Value::Null, value),
                FieldRoot::Context => set_field(path, &mut call.context, &call.input, value),
                FieldRoot::Session => {
                    session_changed = true;
                    set_field(path, &mut session, &call.input, value);
                }
                FieldRoot::Task => set_field(path, &mut task, &call.input, value),
                FieldRoot::Now => {
                    now = value.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(now);
                }
            }
        }
        if call.context.as_object().is_none_or(|members| members.is_empty()) {
            call.context = Value::Null;
        }
        let texts = task.as_object().into_iter().flat_map(|task| task.iter());
        let turns: Vec<TaskTurn> = texts.filter_map(|(_, text)| text.as_str()).map(TaskTurn::new).collect();
        Some(CallSample {
            call,
            session: if session_changed { build_session(&session) } else { base.session.clone() },
            task: if turns.is_empty() { base.task.clone() } else { Task::new(turns) },
            now,
            origin: SampleOrigin::Generated,
        })
    }

    /// Resets fields of a sample to those of the call that it starts from, as long as `keeps` accepts the result.
    pub(crate) fn reduce(
        &self,
        choice: &SampleChoice,
        mut keeps: impl FnMut(&CallSample) -> bool,
    ) -> SampleChoice {
        let mut reduced = choice.clone();
        for index in 0..reduced.fields.len() {
            let mut smaller = reduced.clone();
            match smaller.fields.get_mut(index) {
                Some(field) if *field != FieldChoice::Base => *field = FieldChoice::Base,
                _ => continue,
            }
            if self.sample(&smaller).is_some_and(|sample| keeps(&sample)) {
                reduced = smaller;
            }
        }
        reduced
    }
}

/// Different choices, up to a limit.
struct ChoiceList {
    limit: usize,
    known: HashSet<SampleChoice>,
    choices: Vec<SampleChoice>,
}

impl ChoiceList {
    fn add(&mut self, choice: SampleChoice) {
        if self.choices.len() < self.limit && self.known.insert(choice.clone()) {
            self.choices.push(choice);
        }
    }
}

/// Sets a field, or removes it. The root itself stays an object.
fn set_field(path: &FieldPath, document: &mut Value, input: &Value, value: Option<&Value>) {
    let is_root = path.steps.is_empty();
    let changes = match value {
        Some(value) => !is_root || value.is_object(),
        None => !is_root && document.is_object(),
    };
    if changes {
        path.set(document, input, value.cloned());
    }
}

fn build_session(document: &Value) -> SessionState {
    let mut session = SessionState::default();
    for (name, value) in document.as_object().into_iter().flat_map(|members| members.iter()) {
        match name.as_str() {
            "facts" => {
                for (fact, value) in value.as_object().into_iter().flat_map(|facts| facts.iter()) {
                    session.set_fact(fact, None, value.clone());
                }
            }
            "labels" => {
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .for_each(|label| session.add_label(label));
            }
            "calls" => {
                for (tool, count) in value.as_object().into_iter().flat_map(|calls| calls.iter()) {
                    let count = count.as_u64().unwrap_or(0).min(MAX_COUNT);
                    (0..count).for_each(|_| session.count_call(tool));
                }
            }
            name => session.set_run_info(name, value.clone()),
        }
    }
    session
}

/// Arguments that a tool's schema probably accepts: the required properties, each with a value of its type.
pub(crate) fn arguments_of_schema(schema: &Value) -> Value {
    match example_of_schema(schema, 0) {
        object @ Value::Object(_) => object,
        _ => json!({}),
    }
}

/// The deepest nesting of a schema that is followed.
const MAX_SCHEMA_DEPTH: usize = 8;

fn example_of_schema(schema: &Value, depth: usize) -> Value {
    let first =
        |keyword: &str| schema.get(keyword).and_then(Value::as_array).and_then(|values| values.first());
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    let type_name =
        schema.get("type").and_then(Value::as_str).or_else(|| first("type").and_then(Value::as_str));
    match type_name {
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let names = required.filter_map(Value::as_str).filter(|_| depth < MAX_SCHEMA_DEPTH);
            let property = |name: &str| schema.get("properties").and_then(|properties| properties.get(name));
            let members = names.map(|name| {
                let value =
                    property(name).map_or(json!("x"), |property| example_of_schema(property, depth + 1));
                (name.to_owned(), value)
            });
            Value::Object(members.collect())
        }
        Some("array") => json!([]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => json!("x"),
    }
}
