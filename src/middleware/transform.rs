//! `transform`: brings arguments into form before they are judged, and results before the model sees them.

mod operands;

pub(super) use operands::replacement;

use regex::Regex;

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, Shape, head};
use crate::call::{CallView, Root};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_PATH, MISSING_KEY};
use crate::json::{JsonType, Number, Value};
use crate::meter;
use crate::path::{self, Mismatch, Path};
use crate::source::Node;
use crate::template::Template;

pub(super) static KIND: KindEntry = KindEntry {
    name: "transform",
    doc: "Changes the arguments before they are judged (`input`), or the result before the model sees it (`output`). The steps \
          are applied in order; each policy sees what the one before it left.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    after_tool: |node| node.get("input").is_none(),
    needs_matcher: false,
    of_run: false,
    read: |node, reader| Transform::read(node, reader).map(Kind::Transform),
};

static RECORD: Record = Record {
    name: "transform",
    doc: "The steps.",
    fields: &[
        Field::optional(
            "input",
            Shape::List(&Shape::Record(&STEP)),
            "Steps on the arguments; their paths start with `$.input`.",
        ),
        Field::optional(
            "output",
            Shape::List(&Shape::Record(&STEP)),
            "Steps on the result; their paths start with `$.output`.",
        ),
    ],
};

static STEP: Record = Record {
    name: "transform_step",
    doc: "One change of one place. A place that is not there is left alone, except by `default`, `set` and `template`.",
    fields: &[
        Field::required("path", Shape::Text("a JSONPath such as `$.input.subject`"), "The place."),
        Field::optional("trim", Shape::True, "Removes white space at both ends of a text."),
        Field::optional("lowercase", Shape::True, "Puts a text into lower case."),
        Field::optional("uppercase", Shape::True, "Puts a text into upper case."),
        Field::optional("remove", Shape::True, "Removes the place."),
        Field::optional("default", Shape::Any, "Puts this where the place is absent."),
        Field::optional("set", Shape::Any, "Puts this in the place, whatever was there."),
        Field::optional("clamp", Shape::Record(&CLAMP), "Brings a number within bounds."),
        Field::optional("rename", Shape::Text("a name"), "Gives the member another name."),
        Field::optional(
            "replace",
            Shape::Record(&REPLACE),
            "Replaces what a regular expression finds in a text.",
        ),
        Field::optional("template", Shape::Text("a template"), "Puts this text in the place."),
    ],
};

static CLAMP: Record = Record {
    name: "clamp",
    doc: "Bounds for a number.",
    fields: &[
        Field::optional("min", Shape::Number, "What is less becomes this."),
        Field::optional("max", Shape::Number, "What is greater becomes this."),
    ],
};

pub(super) static REPLACE: Record = Record {
    name: "replace",
    doc: "What is replaced by what.",
    fields: &[
        Field::required(
            "pattern",
            Shape::Text("a regular expression"),
            "What is found, everywhere in the text.",
        ),
        Field::required(
            "with",
            Shape::Text("a text"),
            "What stands there then; `$1` is the first group, `$$` a dollar sign.",
        ),
    ],
};

/// A `transform` policy's own part.
#[derive(Debug)]
pub struct Transform {
    /// Steps on the arguments.
    pub input: Vec<Step>,
    /// Steps on the result.
    pub output: Vec<Step>,
}

/// One change of one place.
#[derive(Debug)]
pub struct Step {
    path: Path,
    change: Change,
}

#[derive(Debug)]
enum Change {
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
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if node.get("input").is_none() && node.get("output").is_none() {
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "this changes nothing")
                    .help("add `input:` or `output:` with a list of steps"),
            );
            return None;
        }
        let input = read_steps(node.get("input"), Root::Input, reader);
        reader.after_tool = true;
        let output = read_steps(node.get("output"), Root::Output, reader);
        Some(Self { input: input?, output: output? })
    }
}

fn read_steps(node: Option<&Node>, root: Root, reader: &mut Reader<'_>) -> Option<Vec<Step>> {
    let nodes = node.and_then(Node::items).unwrap_or_default();
    let steps: Vec<Option<Step>> = nodes.iter().map(|node| Step::read(node, root, reader)).collect();
    steps.into_iter().collect()
}

impl Step {
    fn read(node: &Node, root: Root, reader: &mut Reader<'_>) -> Option<Self> {
        let mut changes = node.entries()?.iter().filter(|entry| entry.key != "path");
        let Some(entry) = changes.next() else {
            reader.report(
                Diagnostic::new(&MISSING_KEY, head(node), "this step says not what to change")
                    .help("add one of `trim`, `lowercase`, `uppercase`, `remove`, `default`, `set`, `clamp`, `rename`, `replace`, `template`"),
            );
            return None;
        };
        if let Some(second) = changes.next() {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    second.key_span,
                    format!("`{}` and `{}` in one step", entry.key, second.key),
                )
                .label(entry.key_span, "the first")
                .help("write each as a step of its own: steps are applied in order"),
            );
            return None;
        }
        let change = Change::read(&entry.key, &entry.value, reader);
        let path_node = node.get("path")?;
        let path = reader.path(path_node)?;
        let change = change?;
        if path.root() != root {
            let name = root.name();
            let message = format!("a step of `{name}` changes `$.{name}` only");
            reader.report(
                Diagnostic::new(&INVALID_PATH, path_node.span, message)
                    .help(format!("write a path below it, as in `$.{name}.note`")),
            );
            return None;
        }
        let needs_member = !matches!(
            change,
            Change::Set(_) | Change::Replace { .. } | Change::Trim | Change::Lowercase | Change::Uppercase
        );
        if root == Root::Input && needs_member && path.steps().is_some_and(<[_]>::is_empty) {
            reader.report(
                Diagnostic::new(
                    &INVALID_PATH,
                    path_node.span,
                    "this step needs a place inside the arguments",
                )
                .help("name one of them, as in `$.input.note`"),
            );
            return None;
        }
        if matches!(change, Change::Default(_) | Change::Template(_)) && !path.is_singular() {
            let message = format!("`{}` needs a path to one place, and this may yield several", entry.key);
            reader.report(
                Diagnostic::new(&INVALID_PATH, path_node.span, message)
                    .help("name the place without `*`, `..`, slices and filters"),
            );
            return None;
        }
        Some(Self { path, change })
    }

    /// Makes the change in `value`, which stands in for the path's root in `view`. Says whether anything changed, or why
    /// the change can't be made.
    fn apply(&self, view: &CallView<'_>, rendered: &CallView<'_>, value: &mut Value) -> Result<bool, String> {
        let root = self.path.root();
        let now = with_root(*view, root, value);
        let locations = match (self.path.locations(&now), &self.change) {
            (Ok(locations), _) => locations,
            // Where there is no such place for its parent's type, there is nothing to remove.
            (Err(Mismatch::Type { .. }), Change::Remove) => return Ok(false),
            (Err(mismatch), _) => return Err(format!("`{}`: {mismatch}", self.path.text())),
        };
        match &self.change {
            Change::Default(default) if locations.is_empty() => self.set(value, default.clone()),
            Change::Default(_) => Ok(false),
            Change::Set(new) if locations.is_empty() && self.path.is_singular() => {
                self.set(value, new.clone())
            }
            Change::Template(template) => {
                let text = template
                    .render_strict(&with_root(*rendered, root, value), &[])
                    .map_err(|error| format!("`{}`: {error}", self.path.text()))?;
                self.set(value, Value::String(text))
            }
            Change::Remove => Ok(path::remove_all(value, locations) > 0),
            Change::Rename(name) => {
                for location in &locations {
                    path::rename(value, location, name)
                        .map_err(|error| format!("`{}`: {error}", self.path.text()))?;
                }
                Ok(!locations.is_empty())
            }
            change => {
                let mut changed = false;
                for location in &locations {
                    let Some(place) = path::get_mut(value, location) else { continue };
                    if let Some(new) =
                        change.of(place).map_err(|problem| format!("`{}` {problem}", self.path.text()))?
                    {
                        *place = new;
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

/// Applies steps to `value`, which stands in for their root in `view`. Every step is tried, so that one that can't be
/// made does not leave later places unformed; the first problem is what is returned. Paths read `view`; templates read `rendered`, the same
/// call as far as whoever gets `value` may see it.
pub fn apply(
    steps: &[Step],
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
        _ => view.input = value,
    }
    view
}

impl Change {
    fn read(key: &str, node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        Some(match key {
            "trim" => Self::Trim,
            "lowercase" => Self::Lowercase,
            "uppercase" => Self::Uppercase,
            "remove" => Self::Remove,
            "default" => Self::Default(node.to_json()),
            "set" => Self::Set(node.to_json()),
            "clamp" => {
                let (min, max) = operands::bounds(node, reader)?;
                Self::Clamp { min, max }
            }
            "rename" => Self::Rename(operands::name(node, reader)?),
            "replace" => {
                let (pattern, with) = replacement(node, reader)?;
                Self::Replace { pattern, with }
            }
            "template" => Self::Template(reader.template(node, &[])?),
            _ => return None,
        })
    }

    /// What a place becomes; `None` where it stays as it is.
    fn of(&self, place: &Value) -> Result<Option<Value>, String> {
        meter::spend_on(place.as_str().map_or(0, str::len), 4).map_err(|why| why.to_string())?;
        let new = match self {
            Self::Set(new) => new.clone(),
            Self::Trim => text(place, "trim")?.trim().into(),
            Self::Lowercase => text(place, "lowercase")?.to_lowercase().into(),
            Self::Uppercase => text(place, "uppercase")?.to_uppercase().into(),
            Self::Replace { pattern, with } => {
                pattern.replace_all(text(place, "replace")?, with.as_str()).into_owned().into()
            }
            Self::Clamp { min, max } => match place {
                Value::Number(number) => Value::Number(clamp(number, min.as_ref(), max.as_ref()).clone()),
                other => return Err(mistyped(other, "clamp", JsonType::Number)),
            },
            Self::Remove | Self::Default(_) | Self::Rename(_) | Self::Template(_) => return Ok(None),
        };
        Ok((new != *place).then_some(new))
    }
}

fn clamp<'a>(number: &'a Number, min: Option<&'a Number>, max: Option<&'a Number>) -> &'a Number {
    match (min, max) {
        (Some(min), _) if number < min => min,
        (_, Some(max)) if number > max => max,
        _ => number,
    }
}

fn text<'a>(place: &'a Value, step: &str) -> Result<&'a str, String> {
    place.as_str().ok_or_else(|| mistyped(place, step, JsonType::String))
}

fn mistyped(place: &Value, step: &str, wanted: JsonType) -> String {
    format!("must be {} for `{step}`, it is {}", wanted.with_article(), JsonType::of(place).with_article())
}
