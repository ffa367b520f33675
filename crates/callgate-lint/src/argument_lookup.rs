//! Argument lookup: path into the arguments + schemas of the known tools → the schemas at that path.

use std::collections::HashSet;

use crate::lint_context::LintContext;
use crate::policy_source::PolicySource;
use callgate::call::Root;
use callgate::json::{JsonType, Key, Value};
use callgate::path::{Path, PathStep};
use callgate::source::YamlNode;

/// Maximum depth of nested references and schemas.
const MAX_DEPTH: usize = 16;

/// Result of looking up a path in the schemas of all tools that a policy applies to.
pub(super) enum PathLookup<'t> {
    /// The path exists. The schemas at it, of each tool that has it.
    Found(Vec<&'t Value>),
    /// No tool has the path. The names that exist at that level instead.
    Absent(Vec<&'t str>),
    /// The schemas don't determine it, or a policy may create the value.
    Unknown,
}

/// Looks up paths in the schemas of the known tools.
pub(super) struct ArgumentLookup<'c, 'a> {
    context: &'c LintContext<'a>,
    /// The arguments that `transform` policies create or change before the call is evaluated.
    transformed: HashSet<String>,
}

impl<'c, 'a> ArgumentLookup<'c, 'a> {
    pub(super) fn new(context: &'c LintContext<'a>) -> Self {
        let mut transformed = HashSet::new();
        for written in context.policies.iter().filter(|written| LintContext::changes_input(written)) {
            for step in written.kind.value.get("input").and_then(YamlNode::items).unwrap_or_default() {
                transformed.extend(step.get("rename").and_then(YamlNode::as_str).map(str::to_owned));
                transformed.extend(
                    step.get("path").and_then(YamlNode::as_str).and_then(first_name).map(str::to_owned),
                );
            }
        }
        Self { context, transformed }
    }

    /// Looks up a path in the schemas of all tools that the policy applies to. Only the first step is looked up if the path is not
    /// singular.
    pub(super) fn find(&self, written: &PolicySource<'a>, path: &Path) -> PathLookup<'a> {
        let first: Vec<PathStep> =
            first_name(path.text()).map(|name| PathStep::Name(name.to_owned())).into_iter().collect();
        let steps = path.steps().unwrap_or(&first);
        let is_transformed =
            matches!(steps.first(), Some(PathStep::Name(name)) if self.transformed.contains(name));
        if path.root() != Root::Input || steps.is_empty() || is_transformed {
            return PathLookup::Unknown;
        }
        let (mut known, mut names, mut has_tools) = (Vec::new(), Vec::new(), false);
        for tool in self.context.tools_for(written) {
            has_tools = true;
            let Some(schema) = &tool.input_schema else { return PathLookup::Unknown };
            match look_up(schema, steps) {
                PathLookup::Found(schemas) => known.extend(schemas),
                PathLookup::Absent(instead) => names.extend(instead),
                PathLookup::Unknown => return PathLookup::Unknown,
            }
        }
        match (has_tools, known.is_empty()) {
            (false, _) => PathLookup::Unknown,
            (true, false) => PathLookup::Found(known),
            (true, true) => PathLookup::Absent(names),
        }
    }
}

/// Returns the name of the argument that a path below `$.input` starts with.
pub(super) fn first_name(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("$.input.")?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}

fn look_up<'t>(root: &'t Value, steps: &[PathStep]) -> PathLookup<'t> {
    let Some(mut at) = resolve_alternatives(root, root, 0) else { return PathLookup::Unknown };
    for step in steps {
        let (mut next, mut names) = (Vec::new(), Vec::new());
        for schema in at {
            let found = match step {
                PathStep::Name(name) => look_up_member(schema, name),
                PathStep::Index(_) => look_up_item(schema),
            };
            match found {
                PathLookup::Found(schemas) => {
                    for schema in schemas {
                        let Some(schemas) = resolve_alternatives(root, schema, 0) else {
                            return PathLookup::Unknown;
                        };
                        next.extend(schemas);
                    }
                }
                PathLookup::Absent(instead) => names.extend(instead),
                PathLookup::Unknown => return PathLookup::Unknown,
            }
        }
        if next.is_empty() {
            return PathLookup::Absent(names);
        }
        at = next;
    }
    PathLookup::Found(at)
}

fn look_up_member<'t>(schema: &'t Value, name: &str) -> PathLookup<'t> {
    let open = match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => false,
        Some(_) => true,
    };
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => match properties.get(name) {
            Some(member) => PathLookup::Found(vec![member]),
            None if open || schema.get("patternProperties").is_some() => PathLookup::Unknown,
            None => PathLookup::Absent(properties.keys().map(Key::as_str).collect()),
        },
        None if is_closed_to_members(schema) => PathLookup::Absent(Vec::new()),
        None => PathLookup::Unknown,
    }
}

fn look_up_item(schema: &Value) -> PathLookup<'_> {
    match schema.get("items") {
        Some(item @ Value::Object(_)) if schema.get("prefixItems").is_none() => PathLookup::Found(vec![item]),
        _ => PathLookup::Unknown,
    }
}

/// Whether a schema permits no objects.
fn is_closed_to_members(schema: &Value) -> bool {
    permitted_types(schema).is_some_and(|types| !types.contains(&JsonType::Object))
}

/// Returns the schemas of which a value must match one (or all), with references resolved. Returns `None` if they can't be determined.
fn resolve_alternatives<'t>(root: &'t Value, schema: &'t Value, depth: usize) -> Option<Vec<&'t Value>> {
    let members = schema.as_object().filter(|_| depth < MAX_DEPTH)?;
    if ["if", "not", "dependentSchemas", "$dynamicRef", "unevaluatedProperties"]
        .iter()
        .any(|key| members.contains_key(key))
    {
        return None;
    }
    if let Some(reference) = members.get("$ref") {
        let target = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
        return resolve_alternatives(root, target, depth + 1);
    }
    let mut found = Vec::new();
    for key in ["anyOf", "oneOf", "allOf"] {
        for schema in members.get(key).and_then(Value::as_array).into_iter().flatten() {
            found.extend(resolve_alternatives(root, schema, depth + 1)?);
        }
    }
    if found.is_empty() || members.contains_key("properties") {
        found.push(schema);
    }
    Some(found)
}

/// Returns the types that a schema permits. Returns `None` if it permits any type.
pub(super) fn permitted_types(schema: &Value) -> Option<Vec<JsonType>> {
    let of_word = |word: &str| {
        Some(match word {
            "null" => JsonType::Null,
            "boolean" => JsonType::Boolean,
            "integer" | "number" => JsonType::Number,
            "string" => JsonType::String,
            "array" => JsonType::Array,
            "object" => JsonType::Object,
            _ => return None,
        })
    };
    match schema.get("type") {
        Some(Value::String(word)) => of_word(word).map(|of| vec![of]),
        Some(Value::Array(words)) => words.iter().map(|word| of_word(word.as_str()?)).collect(),
        _ => permitted_values(schema)
            .map(|values| values.iter().map(|value| JsonType::from_value(value)).collect()),
    }
}

/// Returns the values of `const` or `enum`. Returns `None` if the schema has neither.
pub(super) fn permitted_values(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(values)) => Some(values.iter().collect()),
        (None, None) => None,
    }
}
