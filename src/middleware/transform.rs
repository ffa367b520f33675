//! `transform`: changes arguments before they are evaluated, and results before the model gets them.

mod step_operands;

pub(super) use step_operands::read_replacement;

use regex::Regex;

use super::{KindDefinition, PolicyKind};
use crate::call::{CallView, ResultView, Root};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_PATH, MISSING_KEY};
use crate::json::{JsonType, Number, Value};
use crate::path::{self, Path, PathEvaluationError};
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape, head_span};
use crate::source::YamlNode;
use crate::template::Template;
use crate::work_limit;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "transform",
    doc: "Changes the arguments before the call is evaluated (`input`), or the result before the model gets it (`output`). Steps are \
          applied in order, and each policy gets the value that the previous one produced.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    reads_result: |node| node.get("input").is_none(),
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        Transform::read(node, reader).map(|transform| PolicyKind::Transform(Box::new(transform)))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "transform",
    doc: "The steps.",
    fields: &[
        FieldShape::optional(
            "input",
            Shape::NonEmptyList(&Shape::Record(&STEP)),
            "Steps for the arguments. Their paths start with `$.input`.",
        ),
        FieldShape::optional(
            "output",
            Shape::NonEmptyList(&Shape::Record(&STEP)),
            "Steps for the result. Their paths start with `$.result`, the result as data, or with `$.output`, the result as the tool returned it.",
        ),
    ],
};

static STEP: RecordShape = RecordShape {
    name: "transform_step",
    doc: "One change of the value at one path. An absent value is skipped, except by `default`, `set` and `template`.",
    fields: &[
        FieldShape::required(
            "path",
            Shape::String("a JSONPath such as `$.input.subject`"),
            "The path of the value.",
        ),
        FieldShape::optional("trim", Shape::True, "Removes leading and trailing white space from a string."),
        FieldShape::optional("lowercase", Shape::True, "Converts a string to lower case."),
        FieldShape::optional("uppercase", Shape::True, "Converts a string to upper case."),
        FieldShape::optional("remove", Shape::True, "Removes the value."),
        FieldShape::optional("default", Shape::Any, "Sets this value if the value is absent."),
        FieldShape::optional("set", Shape::Any, "Sets this value, whether or not there is one."),
        FieldShape::optional("clamp", Shape::Record(&CLAMP), "Limits a number to bounds."),
        FieldShape::optional("rename", Shape::String("a name"), "Renames the member."),
        FieldShape::optional(
            "replace",
            Shape::Record(&REPLACE),
            "Replaces the matches of a regular expression in a string.",
        ),
        FieldShape::optional(
            "template",
            Shape::String("a template"),
            "Sets the value to the rendered template.",
        ),
    ],
};

static CLAMP: RecordShape = RecordShape {
    name: "clamp",
    doc: "Bounds for a number.",
    fields: &[
        FieldShape::optional("min", Shape::Number, "Lower bound: a smaller number becomes this."),
        FieldShape::optional("max", Shape::Number, "Upper bound: a greater number becomes this."),
    ],
};

pub(super) static REPLACE: RecordShape = RecordShape {
    name: "replace",
    doc: "A pattern and its replacement.",
    fields: &[
        FieldShape::required(
            "pattern",
            Shape::String("a regular expression"),
            "The pattern. All matches are replaced.",
        ),
        FieldShape::required(
            "with",
            Shape::String("a string"),
            "The replacement; `$1` is the first group, `$$` a dollar sign.",
        ),
    ],
};

/// Settings of a `transform` policy.
#[derive(Debug)]
pub struct Transform {
    /// Steps for the arguments.
    pub input: Vec<TransformStep>,
    /// Steps for the result.
    pub output: Vec<TransformStep>,
}

/// One change of the values at a path.
#[derive(Debug)]
pub struct TransformStep {
    path: Path,
    change: TransformChange,
}

#[derive(Debug)]
enum TransformChange {
    Trim,
    Lowercase,
    Uppercase,
    Remove,
    Default(Value),
    Set(Value),
    Clamp { min: Option<Number>, max: Option<Number> },
    Rename(String),
    Replace { pattern: Regex, with: String },
    Template(Template),
}

impl Transform {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        if node.get("input").is_none() && node.get("output").is_none() {
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "this `transform` policy changes nothing")
                    .with_help("add `input:` or `output:` with a list of steps"),
            );
            return None;
        }
        let input = read_steps(node.get("input"), Root::Input, reader);
        reader.after_tool = true;
        let output = read_steps(node.get("output"), Root::Output, reader)?;
        let of_result = |step: &TransformStep| step.path.root() == Root::Result;
        if output.iter().any(of_result) && !output.iter().all(of_result) {
            reader.report(
                Diagnostic::new(
                    &INVALID_PATH,
                    node.get("output").map_or(node.span, |steps| steps.span),
                    "the steps of one policy change either `$.output` or `$.result`",
                )
                .with_help("write two policies"),
            );
            return None;
        }
        Some(Self { input: input?, output })
    }
}

impl Transform {
    /// Whether its steps for the result change `$.result`, wherever the output has it.
    pub fn changes_result(&self) -> bool {
        self.output.first().is_some_and(|step| step.path.root() == Root::Result)
    }
}

fn read_steps(
    node: Option<&YamlNode>,
    root: Root,
    reader: &mut PolicyReader<'_>,
) -> Option<Vec<TransformStep>> {
    let nodes = node.and_then(YamlNode::items).unwrap_or_default();
    let steps: Vec<Option<TransformStep>> =
        nodes.iter().map(|node| TransformStep::read(node, root, reader)).collect();
    steps.into_iter().collect()
}

impl TransformStep {
    fn read(node: &YamlNode, root: Root, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let mut changes = node.entries()?.iter().filter(|entry| entry.key != "path");
        let Some(entry) = changes.next() else {
            reader.report(
                Diagnostic::new(&MISSING_KEY, head_span(node), "this step has no change")
                    .with_help("add one of `trim`, `lowercase`, `uppercase`, `remove`, `default`, `set`, `clamp`, `rename`, `replace`, `template`"),
            );
            return None;
        };
        if let Some(second) = changes.next() {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    second.key_span,
                    format!("this step has two changes, `{}` and `{}`", entry.key, second.key),
                )
                .with_label(entry.key_span, "first change")
                .with_help("write each as a separate step; steps are applied in order"),
            );
            return None;
        }
        let change = TransformChange::read(&entry.key, &entry.value, reader);
        let operand_path_node = node.get("path")?;
        let path = reader.read_path(operand_path_node)?;
        let change = change?;
        let is_result = root == Root::Output && path.root() == Root::Result;
        if path.root() != root && !is_result {
            let name = root.name();
            let message = format!("a step under `{name}` can only change `$.{name}`");
            reader.report(
                Diagnostic::new(&INVALID_PATH, operand_path_node.span, message)
                    .with_help(format!("write a path that starts with it, as in `$.{name}.note`")),
            );
            return None;
        }
        let needs_member = !matches!(
            change,
            TransformChange::Set(_)
                | TransformChange::Replace { .. }
                | TransformChange::Trim
                | TransformChange::Lowercase
                | TransformChange::Uppercase
        );
        if root == Root::Input && needs_member && path.steps().is_some_and(<[_]>::is_empty) {
            reader.report(
                Diagnostic::new(
                    &INVALID_PATH,
                    operand_path_node.span,
                    "this step needs a path to an argument",
                )
                .with_help("name an argument, as in `$.input.note`"),
            );
            return None;
        }
        if matches!(change, TransformChange::Default(_) | TransformChange::Template(_)) && !path.is_singular()
        {
            let message =
                format!("`{}` needs a path to a single value; this path may return several", entry.key);
            reader.report(
                Diagnostic::new(&INVALID_PATH, operand_path_node.span, message)
                    .with_help("write a path without `*`, `..`, slices and filters"),
            );
            return None;
        }
        Some(Self { path, change })
    }

    /// Applies the change to `value`, which replaces the path's root in `view`. Returns whether anything changed.
    ///
    /// # Errors
    /// Returns a message if the change can't be made.
    fn apply(&self, view: &CallView<'_>, rendered: &CallView<'_>, value: &mut Value) -> Result<bool, String> {
        let root = self.path.root();
        let now = with_root(*view, root, value);
        let locations = match (self.path.locations(&now), &self.change) {
            (Ok(locations), _) => locations,
            // The parent's type has no such child, so there is nothing to remove.
            (Err(PathEvaluationError::WrongType { .. }), TransformChange::Remove) => return Ok(false),
            (Err(mismatch), _) => return Err(format!("`{}`: {mismatch}", self.path.text())),
        };
        match &self.change {
            TransformChange::Default(default) if locations.is_empty() => self.set(value, default.clone()),
            TransformChange::Default(_) => Ok(false),
            TransformChange::Set(new) if locations.is_empty() && self.path.is_singular() => {
                self.set(value, new.clone())
            }
            TransformChange::Template(template) => {
                let text = template
                    .render_argument(&with_root(*rendered, root, value), &[])
                    .map_err(|error| format!("`{}`: {error}", self.path.text()))?;
                self.set(value, Value::String(text))
            }
            TransformChange::Remove => Ok(path::remove_all(value, locations) > 0),
            TransformChange::Rename(name) => {
                for location in &locations {
                    path::rename(value, location, name)
                        .map_err(|error| format!("`{}`: {error}", self.path.text()))?;
                }
                Ok(!locations.is_empty())
            }
            change => {
                let mut changed = false;
                for location in &locations {
                    let Some(current) = path::get_mut(value, location) else { continue };
                    if let Some(new) = change
                        .new_value(current)
                        .map_err(|problem| format!("`{}` {problem}", self.path.text()))?
                    {
                        *current = new;
                        changed = true;
                    }
                }
                Ok(changed)
            }
        }
    }

    fn set(&self, value: &mut Value, new: Value) -> Result<bool, String> {
        let steps = self.path.steps().unwrap_or_default();
        path::set(value, steps, new).map_err(|error| format!("`{}`: {error}", self.path.text()))?;
        Ok(true)
    }
}

/// Applies steps to `value`, which replaces their root in `view`. Returns whether anything changed. Paths read `view`; templates read
/// `rendered`, the call as redacted for the recipient of `value`.
///
/// # Errors
/// Returns the message of the first step that failed. Later steps are applied all the same.
pub fn apply(
    steps: &[TransformStep],
    view: &CallView<'_>,
    rendered: &CallView<'_>,
    value: &mut Value,
) -> Result<bool, String> {
    let mut changed = false;
    let mut problem = None;
    for step in steps {
        match step.apply(view, rendered, value) {
            Ok(step_changed) => changed |= step_changed,
            Err(why) => problem = problem.or(Some(why)),
        }
    }
    problem.map_or(Ok(changed), Err)
}

fn with_root<'a>(mut view: CallView<'a>, root: Root, value: &'a Value) -> CallView<'a> {
    match root {
        Root::Output => view.output = Some(value),
        Root::Result => view.result = ResultView::Value(value),
        _ => view.input = value,
    }
    view
}

impl TransformChange {
    fn read(key: &str, node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        Some(match key {
            "trim" => Self::Trim,
            "lowercase" => Self::Lowercase,
            "uppercase" => Self::Uppercase,
            "remove" => Self::Remove,
            "default" => Self::Default(node.to_json()),
            "set" => Self::Set(node.to_json()),
            "clamp" => {
                let (min, max) = step_operands::read_bounds(node, reader)?;
                Self::Clamp { min, max }
            }
            "rename" => Self::Rename(step_operands::read_new_name(node, reader)?),
            "replace" => {
                let (pattern, with) = read_replacement(node, reader)?;
                Self::Replace { pattern, with }
            }
            "template" => Self::Template(reader.read_template(node, &[])?),
            _ => return None,
        })
    }

    /// Returns the new value. Returns `None` if the value does not change.
    fn new_value(&self, current: &Value) -> Result<Option<Value>, String> {
        work_limit::spend_for(current.as_str().map_or(0, str::len), 4).map_err(|why| why.to_string())?;
        let new = match self {
            Self::Set(new) => new.clone(),
            Self::Trim => expect_string(current, "trim")?.trim().into(),
            Self::Lowercase => expect_string(current, "lowercase")?.to_lowercase().into(),
            Self::Uppercase => expect_string(current, "uppercase")?.to_uppercase().into(),
            Self::Replace { pattern, with } => {
                pattern.replace_all(expect_string(current, "replace")?, with.as_str()).into_owned().into()
            }
            Self::Clamp { min, max } => match current {
                Value::Number(number) => Value::Number(clamp(number, min.as_ref(), max.as_ref()).clone()),
                other => return Err(type_mismatch(other, "clamp", JsonType::Number)),
            },
            Self::Remove | Self::Default(_) | Self::Rename(_) | Self::Template(_) => return Ok(None),
        };
        Ok((new != *current).then_some(new))
    }
}

fn clamp<'a>(number: &'a Number, min: Option<&'a Number>, max: Option<&'a Number>) -> &'a Number {
    match (min, max) {
        (Some(min), _) if number < min => min,
        (_, Some(max)) if number > max => max,
        _ => number,
    }
}

fn expect_string<'a>(value: &'a Value, step: &str) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| type_mismatch(value, step, JsonType::String))
}

fn type_mismatch(value: &Value, step: &str, wanted: JsonType) -> String {
    format!(
        "must be {} for `{step}`, it is {}",
        wanted.with_article(),
        JsonType::from_value(value).with_article()
    )
}
