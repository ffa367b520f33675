//! Reads one case of a test file: document node → one [`TestCase`], or one for each row of its table.

use std::sync::Arc;

use crate::call_reader::{self, LayeredCall};
use crate::case::{CaseStep, TableRow, TestCase};
use crate::step_reader::{StepReader, is_wait};
use crate::stub::Stub;
use crate::test_file_reader::TestFileReader;
use crate::test_schema::{CASE, ROUND_CALL, ROW, STEP};
use callgate::call::SessionState;
use callgate::diagnostic::{Diagnostic, MISSING_KEY, NOTHING_CALLED, NOTHING_EXPECTED, OUT_OF_RANGE};
use callgate::json::Map;
use callgate::rules_schema::head_span;
use callgate::source::YamlNode;

/// The maximum of `session.calls` for one tool.
const MAX_SESSION_CALLS: u64 = 10_000;

/// The parts of a case that all of its rows share.
struct CaseTemplate<'n> {
    case: &'n YamlNode,
    context: &'n Map,
    steps: Arc<Vec<CaseStep>>,
    read: &'n StepReader<'n>,
    /// Whether problems of the steps or of the case itself are already reported.
    has_problems: bool,
}

/// Reads a case: one for each row of its table, or one without a table.
pub(super) fn read(case: &YamlNode, reader: &mut TestFileReader<'_>) -> Vec<TestCase> {
    if case.entries().is_none() {
        return Vec::new();
    }
    let reported = reader.diagnostic_count();
    check_keys(case, reader);
    let mut context = reader.context.clone();
    if let Some(node) = case.get("context") {
        context.extend(reader.read_mapping(node, "context"));
    }
    let mut read = StepReader::new(&context);
    let steps: Vec<CaseStep> =
        items(case, "steps").iter().filter_map(|node| read.read(node, reader)).collect();
    read.check_ids(reader);
    let has_problems = reader.diagnostic_count() > reported;
    let setting = CaseTemplate { case, context: &context, steps: Arc::new(steps), read: &read, has_problems };
    let Some(rows) = case.get("rows").and_then(YamlNode::items) else {
        return setting.build_case(None, reader).into_iter().collect();
    };
    (1..).zip(rows).filter_map(|(number, row)| setting.build_case(Some((number, row)), reader)).collect()
}

impl CaseTemplate<'_> {
    /// Builds the case for a row, or the only one.
    fn build_case(
        &self,
        row: Option<(usize, &YamlNode)>,
        reader: &mut TestFileReader<'_>,
    ) -> Option<TestCase> {
        let case = self.case;
        let node = row.map_or(case, |(_, row)| row);
        let call = case.get("call").filter(|call| call.entries().is_some());
        let tested_call = call.and_then(|call| {
            let laid = LayeredCall { base: row.map(|_| call), own: row.map_or(call, |(_, row)| row) };
            let expect = row.and_then(|(_, row)| row.get("expect")).or_else(|| case.get("expect"));
            call_reader::read(&laid, expect, self.context, self.read.call_count + 1, reader)
        });
        if let Some(call) = &tested_call {
            let call_node = row.map(|(_, row)| row).or(case.get("call")).unwrap_or(case);
            self.read.check_tested_call(call, call_node, reader);
        }
        let expected = match &tested_call {
            Some(call) => call.expect.is_some(),
            None => self.steps.iter().any(CaseStep::has_expectation),
        };
        let has_calls = tested_call.is_some() || self.read.call_count > 0;
        if has_calls
            && !expected
            && !self.has_problems
            && !self.has_misspelled_expect(row.map(|(_, row)| row))
        {
            let (message, help) = match row {
                Some(_) => {
                    ("this row has no expectation", "add `expect:` to it, or beside the `call:` for all rows")
                }
                None if tested_call.is_some() => {
                    ("this call has no expectation", "add `expect:` beside `call:`, such as `expect: denied`")
                }
                None => (
                    "this case has no expectation",
                    "add `expect:` to at least one of its steps, such as `expect: denied`",
                ),
            };
            reader.report(Diagnostic::new(&NOTHING_EXPECTED, head_span(node), message).with_help(help));
        }
        let mut stubs = read_stubs(case.get("stubs"), reader);
        stubs.extend(reader.stubs.iter().cloned());
        let row_name = |row: &YamlNode| row.get("name").and_then(YamlNode::as_str).map(str::to_owned);
        Some(TestCase {
            name: case.get("name")?.as_str()?.to_owned(),
            row: row.map(|(number, row)| TableRow { number, name: row_name(row) }),
            location: reader.locate(head_span(node)),
            clock: case.get("clock").and_then(|node| reader.read_timestamp(node)).unwrap_or(reader.clock),
            session: case.get("session").map(|node| read_session(node, reader)).unwrap_or_default(),
            task: case
                .get("task")
                .and_then(|node| reader.read_task(node))
                .unwrap_or_else(|| reader.task.clone()),
            stubs,
            steps: Arc::clone(&self.steps),
            tested_call,
        })
    }

    /// Whether an unknown key may be a misspelled `expect`; the unknown key alone is then reported.
    fn has_misspelled_expect(&self, row: Option<&YamlNode>) -> bool {
        CASE.has_misspelling_of(self.case, "expect")
            || row.is_some_and(|row| ROW.has_misspelling_of(row, "expect"))
            || items(self.case, "steps").iter().any(|step| {
                STEP.has_misspelling_of(step, "expect")
                    || items(step, "round").iter().any(|call| ROUND_CALL.has_misspelling_of(call, "expect"))
            })
    }
}

fn items<'n>(node: &'n YamlNode, key: &str) -> &'n [YamlNode] {
    node.get(key).and_then(YamlNode::items).unwrap_or_default()
}

/// Reports keys without the key that they need.
fn check_keys(case: &YamlNode, reader: &mut TestFileReader<'_>) {
    if case.get("call").is_some() || CASE.has_misspelling_of(case, "call") {
        return;
    }
    let entries = case.entries().unwrap_or_default();
    if let Some(stray) = entries.iter().find(|entry| ["expect", "rows"].contains(&entry.key.as_str())) {
        let message = format!("`{}` needs a `call` beside it", stray.key);
        let help = match stray.key.as_str() {
            "expect" => "add the `call:` under test, or move the `expect:` into one of the `steps:`",
            _ => "add the `call:` that the rows vary",
        };
        reader.report(Diagnostic::new(&MISSING_KEY, stray.key_span, message).with_help(help));
    } else if !CASE.has_misspelling_of(case, "steps") {
        let steps = items(case, "steps");
        if steps.iter().all(is_wait) {
            reader.report(
                Diagnostic::new(&NOTHING_CALLED, head_span(case), "this case makes no call")
                    .with_help("add `call:`, as in `call: { tool: createRefund, input: { amount: 250 } }`"),
            );
        }
    }
}

/// Reads an optional list of stubs.
pub(super) fn read_stubs(node: Option<&YamlNode>, reader: &mut TestFileReader<'_>) -> Vec<Arc<Stub>> {
    let nodes = node.and_then(YamlNode::items).unwrap_or_default();
    let read = |node: &YamlNode| {
        let matcher = reader.read_matcher(node.get("match")?);
        let answers = call_reader::read_answers(node, reader);
        if answers.is_none() && node.entries().is_some() {
            reader.report(
                Diagnostic::new(&MISSING_KEY, head_span(node), "this stub has no answer")
                    .with_help("add `returns:`, `fails:`, `answers:` or `takes:`"),
            );
        }
        Some(Arc::new(Stub { matcher, answers: answers? }))
    };
    nodes.iter().filter_map(read).collect()
}

fn read_session(node: &YamlNode, reader: &mut TestFileReader<'_>) -> SessionState {
    let mut session = SessionState::default();
    for label in node.get("labels").and_then(YamlNode::items).unwrap_or_default() {
        label.as_str().into_iter().for_each(|label| session.add_label(label));
    }
    if let Some(facts) = node.get("facts") {
        for (name, value) in reader.read_mapping(facts, "facts") {
            session.set_fact(&name, None, value);
        }
    }
    if let Some(calls) = node.get("calls") {
        for (tool, count) in reader.read_mapping(calls, "calls") {
            match count.as_u64().filter(|count| *count <= MAX_SESSION_CALLS) {
                Some(count) => (0..count).for_each(|_| session.count_call(&tool)),
                None => {
                    let span = calls.get(&tool).map_or(calls.span, |count| count.span);
                    let message = format!(
                        "the number of runs of a tool must be an integer from 0 to {MAX_SESSION_CALLS}"
                    );
                    reader.report(
                        Diagnostic::new(&OUT_OF_RANGE, span, message).with_help("write for example `2`"),
                    );
                }
            }
        }
    }
    for entry in node.entries().unwrap_or_default() {
        session.set_run_info(&entry.key, entry.value.to_json());
    }
    session
}
