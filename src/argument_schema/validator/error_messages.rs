//! Explains validation errors of the schema library as violations in plain language.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value as LibraryValue;

use super::message_fragments::{
    allowed_types, describe_format, describe_property, describe_types, format_list, format_value,
    format_value_with_type, type_hint,
};
use crate::argument_schema::property_names::{properties, property_schema, quote_name, replacement_hint};
use crate::argument_schema::schema_error::{SchemaError, Violation};
use crate::diagnostic::closest_match;
use crate::json::{Map, Value};
use crate::safe_text::{escape_controls, truncate};

/// Converts a compile error of a schema.
pub(super) fn schema_error(error: &ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().as_str();
    let at = if pointer.is_empty() { String::new() } else { format!(" at {}", quote_name(pointer)) };
    let message = match (error.kind(), error.instance().as_str()) {
        (Kind::Format { format }, Some(pattern)) if format == "regex" => format!(
            "the pattern {}{at} is invalid, too large, or uses look-around or back-references, which can't run in \
             linear time",
            quote_name(pattern)
        ),
        _ => {
            let problem: String = escape_controls(&error.to_string()).chars().take(400).collect();
            format!("the schema is invalid{at}: {problem}")
        }
    };
    SchemaError::at(pointer, message)
}

/// Reports a number that can't be compared exactly.
pub(super) fn inexact_number_error(number: &str) -> SchemaError {
    let number = quote_name(number);
    SchemaError::at(
        "",
        format!(
            "the number {number} in `const` or `enum` can't be compared exactly; write it with fewer digits"
        ),
    )
}

/// Adds the violations of one validation error.
pub(super) fn explain(schema: &Value, whole: &Value, error: &ValidationError<'_>, into: &mut Vec<Violation>) {
    let explainer = Explainer { schema, whole, error };
    for violation in explainer.violations() {
        if !into.contains(&violation) {
            into.push(violation);
        }
    }
}

struct Explainer<'a> {
    schema: &'a Value,
    whole: &'a Value,
    error: &'a ValidationError<'a>,
}

impl Explainer<'_> {
    fn violations(&self) -> Vec<Violation> {
        match self.error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                unexpected.iter().map(|given| self.unknown_property(given)).collect()
            }
            Kind::Required { property } => vec![self.missing_property(property.as_str().unwrap_or_default())],
            kind @ (Kind::Enum { .. } | Kind::Constant { .. }) => {
                vec![self.not_in_enum(&allowed_values(kind))]
            }
            Kind::Type { kind } => vec![self.wrong_type(&allowed_types(kind))],
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.no_matching_branch(context),
            Kind::PropertyNames { error } => {
                let name = Value::from(error.instance().clone().into_owned());
                let (given, reason) = (format_value(&name), reason(error.kind(), &name));
                vec![
                    self.violation(format!("{} has the name {given}, which {reason}", self.location()), None),
                ]
            }
            Kind::FalseSchema => vec![self.violation(format!("{} is not allowed", self.location()), None)],
            kind => {
                let reason = reason(kind, self.failed_value());
                vec![self.violation(format!("{} {reason}", self.location()), None)]
            }
        }
    }

    /// The value that failed.
    fn failed_value(&self) -> &Value {
        self.whole.pointer(self.error.instance_path().as_str()).unwrap_or(&Value::Null)
    }

    fn violation(&self, message: String, suggestion: Option<String>) -> Violation {
        Violation { pointer: self.error.instance_path().as_str().to_owned(), message, suggestion }
    }

    /// The subschema that contains the failed keyword.
    fn subschema(&self) -> &Value {
        let path = self.error.schema_path().as_str();
        path.rsplit_once('/').and_then(|(parent, _)| self.schema.pointer(parent)).unwrap_or(&Value::Null)
    }

    /// The path of a property of the failed value, in the notation of models: `items[2].name`.
    fn path(&self, property: Option<&str>) -> String {
        let pointer = self.error.instance_path().as_str();
        let mut value = Some(self.whole);
        let mut path = String::new();
        let segments =
            pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"));
        for segment in segments.chain(property.map(str::to_owned)) {
            if value.is_some_and(Value::is_array) {
                value = segment.parse::<usize>().ok().and_then(|index| value?.get(index));
                path.push_str(&format!("[{segment}]"));
            } else {
                value = value.and_then(|value| value.get(&segment));
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(&segment);
            }
        }
        path
    }

    fn location(&self) -> String {
        if self.error.instance_path().as_str().is_empty() {
            "the arguments".to_owned()
        } else {
            quote_name(&self.path(None))
        }
    }

    fn unknown_property(&self, given: &str) -> Violation {
        let owner = match self.error.instance_path().as_str() {
            "" => "an argument of this tool".to_owned(),
            _ => format!("a property of {}", self.location()),
        };
        let present = |known: &str| self.failed_value().get(known).is_some();
        let known = properties(self.subschema()).into_iter().flatten().map(|(known, _)| known.as_str());
        let meant = closest_match(given, known.filter(|known| !present(known)))
            .map(|meant| quote_name(&self.path(Some(meant))));
        let given = quote_name(&self.path(Some(given)));
        let hint = meant.as_ref().map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
        self.violation(
            format!("{given} is not {owner}{hint}"),
            meant.map(|meant| replacement_hint(&meant, &given)),
        )
    }

    fn missing_property(&self, wanted: &str) -> Violation {
        let about = describe_property(property_schema(self.schema, self.subschema(), wanted));
        let declared = properties(self.subschema());
        let unknown = self.failed_value().as_object().into_iter().flatten().map(|(given, _)| given.as_str());
        let unknown = unknown.filter(|given| declared.is_none_or(|declared| !declared.contains_key(given)));
        let wanted_name = quote_name(&self.path(Some(wanted)));
        let meant = closest_match(wanted, unknown).map(|given| quote_name(&self.path(Some(given))));
        let hint =
            meant.as_ref().map(|given| format!(": did you write {given} instead?")).unwrap_or_default();
        let suggestion = meant.map(|given| replacement_hint(&wanted_name, &given));
        self.violation(format!("{wanted_name} is missing{about}{hint}"), suggestion)
    }

    fn not_in_enum(&self, options: &[Value]) -> Violation {
        let given = self.failed_value();
        let location = self.location();
        let texts = options.iter().filter_map(|option| option.as_str());
        let meant = given
            .as_str()
            .and_then(|given| closest_match(given, texts))
            .map(|meant| format_value(&Value::from(meant)));
        let hint = meant.as_ref().map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
        let one_of = if options.len() == 1 { "" } else { "one of " };
        let message = format!(
            "{location} must be {one_of}{}; it is {}{hint}",
            format_list(options.iter()),
            format_value(given)
        );
        self.violation(
            message,
            meant.map(|meant| format!("{} for {location}", replacement_hint(&meant, &format_value(given)))),
        )
    }

    fn wrong_type(&self, types: &[&str]) -> Violation {
        let given = self.failed_value();
        let hint = type_hint(types, given).map(|hint| format!(": {hint}")).unwrap_or_default();
        let message = format!(
            "{} must be {}, it is {}{hint}",
            self.location(),
            describe_types(types),
            format_value_with_type(given)
        );
        self.violation(message, None)
    }

    /// `anyOf` and `oneOf`: lists all allowed types or values, or else explains the closest branch.
    fn no_matching_branch(&self, branches: &[Vec<ValidationError<'static>>]) -> Vec<Violation> {
        let here = self.error.instance_path().as_str();
        let kinds: Option<Vec<Branch>> = branches
            .iter()
            .map(|branch| match branch.as_slice() {
                [one] if one.instance_path().as_str() == here => Some(branch_kind(one.kind())),
                _ => None,
            })
            .collect();
        if let Some(kinds) = kinds.filter(|kinds| !kinds.is_empty()) {
            let mut named: Vec<&str> = kinds.iter().flat_map(|kind| kind.types.iter().copied()).collect();
            named.sort_by_key(|name| (*name == "null", *name));
            named.dedup();
            let values: Vec<Value> = kinds.iter().flat_map(|kind| kind.values.iter().cloned()).collect();
            if kinds.iter().all(|kind| !kind.types.is_empty()) {
                return vec![self.wrong_type(&named)];
            }
            if kinds.iter().all(|kind| !kind.values.is_empty()) {
                return vec![self.not_in_enum(&values)];
            }
        }
        let nearest =
            branches.iter().filter(|branch| !branch.is_empty()).min_by_key(|branch| distance(branch, here));
        let mut violations = Vec::new();
        for error in nearest.into_iter().flatten() {
            explain(self.schema, self.whole, error, &mut violations);
        }
        if violations.is_empty() {
            violations.push(
                self.violation(
                    format!("{} does not match any of the allowed schemas", self.location()),
                    None,
                ),
            );
        }
        violations
    }
}

/// The types or values that a branch requires, if it requires nothing else.
struct Branch {
    types: Vec<&'static str>,
    values: Vec<Value>,
}

fn branch_kind(kind: &Kind) -> Branch {
    let types = if let Kind::Type { kind } = kind { allowed_types(kind) } else { Vec::new() };
    Branch { types, values: allowed_values(kind) }
}

/// The values allowed by `enum` or `const`.
fn allowed_values(kind: &Kind) -> Vec<Value> {
    match kind {
        Kind::Enum { options } => {
            options.as_array().into_iter().flatten().cloned().map(Value::from).collect()
        }
        Kind::Constant { expected_value } => vec![Value::from(LibraryValue::clone(expected_value))],
        _ => Vec::new(),
    }
}

/// The distance of a value from a branch: a wrong type weighs most, then a wrong constant.
fn distance(branch: &[ValidationError<'static>], here: &str) -> usize {
    branch
        .iter()
        .map(|error| match error.kind() {
            Kind::Type { .. } if error.instance_path().as_str() == here => 100,
            Kind::Constant { .. } | Kind::Enum { .. } => 10,
            _ => 1,
        })
        .sum()
}

/// The predicate of a violation without suggestion or path of its own.
fn reason(kind: &Kind, value: &Value) -> String {
    let given = || format_value(value);
    let items = || value.as_array().map_or(0, Vec::len);
    let entries = || value.as_object().map_or(0, Map::len);
    let characters = || value.as_str().map_or(0, |text| text.chars().count());
    match kind {
        Kind::Custom { message, .. } => message.clone(),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters, it has {}", characters()),
        Kind::MinLength { limit } => {
            format!("must have at least {limit} characters, it has {}", characters())
        }
        Kind::MaxItems { limit } => format!("must have at most {limit} items, it has {}", items()),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items, it has {}", items()),
        Kind::MinItems { limit } => format!("must have at least {limit} items, it has {}", items()),
        Kind::MaxProperties { limit } => {
            format!("must have at most {limit} properties, it has {}", entries())
        }
        Kind::MinProperties { limit } => {
            format!("must have at least {limit} properties, it has {}", entries())
        }
        Kind::UniqueItems => "must not contain duplicate items".to_owned(),
        Kind::UnevaluatedItems { .. } => "contains items that are not allowed".to_owned(),
        Kind::Contains => "does not contain the required items".to_owned(),
        Kind::Pattern { pattern } => {
            format!("must match the pattern {}, it is {}", quote_name(pattern), given())
        }
        Kind::Format { format } => match describe_format(format) {
            Some(words) => format!("must be {words}, it is {}", given()),
            None => format!("must have the format {}, it is {}", quote_name(format), given()),
        },
        Kind::OneOfMultipleValid { .. } => {
            "matches several of the allowed schemas, it must match exactly one".to_owned()
        }
        Kind::Not { .. } => format!("matches an excluded schema, it is {}", given()),
        Kind::ContentEncoding { content_encoding } => {
            format!("must be encoded as {}", quote_name(content_encoding))
        }
        Kind::ContentMediaType { content_media_type } => {
            format!("must contain {}", quote_name(content_media_type))
        }
        other => format!("does not match {}, it is {}", quote_name(other.keyword()), truncate(&given())),
    }
}
