//! `validate`: validates arguments against a JSON Schema.

mod argument_types;

use super::{KindDefinition, PolicyKind};
use crate::argument_schema::{self, ArgumentSchema};
use crate::call::{Reason, reason_code};
use crate::diagnostic::{
    CONFLICTING_KEYS, Diagnostic, INVALID_SCHEMA, MISSING_KEY, Span, UNKNOWN_VALUE, WRONG_TYPE,
};
use crate::json;
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape, did_you_mean};
use crate::source::{YamlNode, YamlValue};
use crate::tools::KnownTool;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "validate",
    doc: "Validates the arguments of matching calls against a JSON Schema. A call with invalid arguments gets an `invalid` outcome, with a \
          message that the model can act on.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        let schema = match (node.get("schema"), node.get("arguments")) {
            (Some(schema), None) => read_schema(schema, reader)?,
            (None, Some(arguments)) => Some(argument_types::read(arguments, reader)?),
            (schema, _) => {
                report_choice(node, schema.is_some(), reader);
                return None;
            }
        };
        Some(PolicyKind::Validate(Validate { schema }))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "validate",
    doc: "The schema.",
    fields: &[
        FieldShape::optional(
            "schema",
            Shape::Any,
            "`tool` for the tool's own schema, an inline JSON Schema, or `{ file: x.json }` next to the rules file.",
        ),
        FieldShape::optional(
            "arguments",
            Shape::Map(&argument_types::ARGUMENT),
            "The type of each argument, as in `{ order_id: text, \"note?\": string }`. An argument is required unless its name ends in `?`, \
             and no other argument is accepted.",
        ),
    ],
};

fn report_choice(node: &YamlNode, has_both: bool, reader: &mut PolicyReader<'_>) {
    let (code, message) = match has_both {
        true => (&CONFLICTING_KEYS, "`schema` and `arguments` exclude each other"),
        false => (&MISSING_KEY, "this `validate` policy has no schema"),
    };
    reader.report(
        Diagnostic::new(code, node.span, message)
            .with_help("write `schema: tool`, or `arguments:` with the type of each argument"),
    );
}

/// Settings of a `validate` policy.
#[derive(Debug)]
pub struct Validate {
    /// The schema. `None` for the tool's own one.
    pub schema: Option<ArgumentSchema>,
}

/// Reads a schema. Returns `Some(None)` for the tool's own one, and `None` for an invalid one, which is reported.
pub(super) fn read_schema(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Option<ArgumentSchema>> {
    match &node.value {
        YamlValue::String(text) if text.text == "tool" => Some(None),
        YamlValue::Mapping(entries) => match entries.as_slice() {
            [entry] if entry.key == "file" => read_schema_file(&entry.value, reader).map(Some),
            _ => compile_schema(node, &node.to_json(), reader).map(Some),
        },
        _ => {
            let near = node.as_str().and_then(|text| did_you_mean(text, ["tool"].into_iter()));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write `tool`, a JSON Schema, or `{ file: x.json }`".to_owned(),
            };
            reader.report(Diagnostic::new(&UNKNOWN_VALUE, node.span, "this is not a schema").with_help(help));
            None
        }
    }
}

fn read_schema_file(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<ArgumentSchema> {
    if node.as_str().is_none() {
        let message = format!("`file` must be a string; this is {}", node.type_name());
        reader.report(
            Diagnostic::new(&WRONG_TYPE, node.span, message)
                .with_help("write for example `{ file: x.json }`"),
        );
        return None;
    }
    let (_, text) = reader.read_referenced_file(node, ".json")?;
    match json::parse(&text) {
        Ok(value) => compile_schema(node, &value, reader),
        Err(error) => {
            let name = node.as_str().unwrap_or_default();
            let message = format!("`{name}` has invalid JSON: {error}");
            reader.report(
                Diagnostic::new(&INVALID_SCHEMA, node.span, message)
                    .with_help("correct the file, which must contain one JSON Schema"),
            );
            None
        }
    }
}

fn compile_schema(
    node: &YamlNode,
    value: &json::Value,
    reader: &mut PolicyReader<'_>,
) -> Option<ArgumentSchema> {
    compile_located(value, reader, |pointer| span_at_pointer(node, pointer))
}

/// Compiles a schema. `locate` returns the location of what a JSON Pointer into the schema names.
fn compile_located(
    value: &json::Value,
    reader: &mut PolicyReader<'_>,
    locate: impl FnOnce(&str) -> Span,
) -> Option<ArgumentSchema> {
    match ArgumentSchema::compile(value) {
        Ok(schema) => Some(schema),
        Err(error) => {
            let span = locate(error.pointer.as_deref().unwrap_or_default());
            reader.report(Diagnostic::new(&INVALID_SCHEMA, span, error.problem()).with_help(error.help()));
            None
        }
    }
}

/// Returns the location of the value that a JSON Pointer names, or of its nearest ancestor in the file.
fn span_at_pointer(node: &YamlNode, pointer: &str) -> Span {
    let mut found = node;
    for word in pointer.split('/').skip(1) {
        let word = word.replace("~1", "/").replace("~0", "~");
        let item = || found.items()?.get(word.parse::<usize>().ok()?);
        let Some(next) = found.get(&word).or_else(item) else { break };
        found = next;
    }
    found.span
}

impl Validate {
    /// Validates arguments. `policy` is the id for the reason.
    ///
    /// # Errors
    /// Returns the reason if the arguments are invalid. Fails closed: also if there is no usable schema.
    pub fn check(&self, policy: &str, input: &json::Value, tool: Option<&KnownTool>) -> Result<(), Reason> {
        let fail = |code: &str, message: String| {
            Err(Reason { policy: Some(policy.to_owned()), code: code.to_owned(), message })
        };
        let own = tool.and_then(|tool| tool.schema.as_ref());
        let schema = match (&self.schema, own) {
            (Some(schema), _) | (None, Some(Ok(schema))) => schema,
            (None, None) => {
                return fail(
                    reason_code::SCHEMA_UNAVAILABLE,
                    "the arguments can't be validated: the tool's schema is unknown".into(),
                );
            }
            (None, Some(Err(error))) => {
                return fail(
                    reason_code::SCHEMA_UNAVAILABLE,
                    format!("the arguments can't be validated: the tool's own schema is invalid: {error}"),
                );
            }
        };
        match schema.check(input) {
            Ok(()) => Ok(()),
            Err(violations) => fail(reason_code::SCHEMA_VIOLATION, argument_schema::summarize(&violations)),
        }
    }
}
