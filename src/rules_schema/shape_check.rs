//! Validates a YAML value against its [`Shape`]: reports every problem once, at its exact position.

use super::constants::{is_constant, is_meant_as_constant};
use super::did_you_mean::did_you_mean;
use super::shape::Shape;
use crate::diagnostic::{
    Diagnostic, Diagnostics, EMPTY_VALUE, OUT_OF_RANGE, Span, UNKNOWN_VALUE, WRONG_TYPE, YAML_FEATURE,
};
use crate::safe_text::{escape_controls, truncate};
use crate::source::{YamlNode, YamlValue};

impl Shape {
    /// Whether this shape accepts the YAML type of a node.
    pub fn accepts_type_of(&self, node: &YamlNode) -> bool {
        match self {
            Self::Any => true,
            Self::Bool | Self::True => matches!(node.value, YamlValue::Bool(_)),
            Self::String(_) | Self::Word(_) => matches!(node.value, YamlValue::String(_)),
            Self::Number | Self::Integer(..) => matches!(node.value, YamlValue::Number(_)),
            Self::List(_) | Self::NonEmptyList(_) => matches!(node.value, YamlValue::Sequence(_)),
            Self::OneOrMany(item) => {
                matches!(node.value, YamlValue::Sequence(_)) || item.accepts_type_of(node)
            }
            Self::Record(_) | Self::Map(_) => matches!(node.value, YamlValue::Mapping(_)),
            Self::Either(shapes) => shapes.iter().any(|shape| shape.accepts_type_of(node)),
        }
    }

    /// Reports all mismatches between `node` and this shape; `name` is its name in messages: a key, or a phrase.
    pub fn check(&self, node: &YamlNode, name: &str, diagnostics: &mut Diagnostics) {
        if !self.accepts_type_of(node) {
            if is_reported_yaml_error(node, diagnostics) {
                return;
            }
            diagnostics.push(self.wrong_type(node, name));
            return;
        }
        match self {
            Self::Any | Self::Bool | Self::Number | Self::String(_) => {}
            Self::True => check_true(node, name, diagnostics),
            Self::Integer(min, max) => check_integer(node, name, *min, *max, diagnostics),
            Self::Word(words) => check_word(node, name, words, diagnostics),
            Self::List(item) => check_items(node, name, item, diagnostics),
            Self::NonEmptyList(item) => check_list(node, name, item, diagnostics),
            Self::OneOrMany(item) => match node.value {
                YamlValue::Sequence(_) => check_list(node, name, item, diagnostics),
                _ => item.check(node, name, diagnostics),
            },
            Self::Record(record) => record.check(node, name, diagnostics),
            Self::Map(value) => {
                for entry in node.entries().unwrap_or_default() {
                    value.check(&entry.value, &entry.key, diagnostics);
                }
            }
            Self::Either(shapes) => match shapes.iter().find(|shape| shape.accepts_type_of(node)) {
                Some(shape) if is_constant(shape) && !is_meant_as_constant(node) => {
                    diagnostics.push(self.wrong_type(node, name));
                }
                Some(shape) => shape.check(node, name, diagnostics),
                None => {}
            },
        }
    }

    fn wrong_type(&self, node: &YamlNode, name: &str) -> Diagnostic {
        let (quoted_name, is) = (quote_name(name), node.type_name());
        let message = match node.value {
            YamlValue::Null => format!("{quoted_name} has no value"),
            _ => format!("{quoted_name} must be {}, not {is}", self.expected_types(node)),
        };
        Diagnostic::new(&WRONG_TYPE, node.span, message).with_help(self.help_for_type(node, name))
    }

    /// The YAML types to use instead of a node's, for messages.
    fn expected_types(&self, node: &YamlNode) -> String {
        let mut types = Vec::new();
        match (self, &node.value) {
            (Self::Either(shapes), YamlValue::Mapping(_)) => {
                let others = shapes.iter().filter(|shape| !is_constant(shape));
                others.for_each(|shape| shape.add_types(&mut types));
            }
            _ => self.add_types(&mut types),
        }
        match types.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            Some((only, _)) => (*only).to_owned(),
            None => "a value".to_owned(),
        }
    }

    fn add_types(&self, types: &mut Vec<&'static str>) {
        let own = match self {
            Self::Any => "a value",
            Self::Bool => "`true` or `false`",
            Self::True => "`true`",
            Self::String(_) | Self::Word(_) => "a string",
            Self::Number => "a number",
            Self::Integer(..) => "an integer",
            Self::List(_) | Self::NonEmptyList(_) => "a list",
            Self::Record(_) | Self::Map(_) => "a mapping",
            Self::OneOrMany(item) => {
                item.add_types(types);
                "a list"
            }
            Self::Either(shapes) => return shapes.iter().for_each(|shape| shape.add_types(types)),
        };
        if !types.contains(&own) {
            types.push(own);
        }
    }

    /// The fix for a value of the wrong YAML type.
    fn help_for_type(&self, node: &YamlNode, name: &str) -> String {
        let written = scalar_text(node);
        match (self, &node.value) {
            (Self::Either(shapes), _) => match shapes.first() {
                Some(first) => first.help_for_type(node, name),
                None => "remove it".to_owned(),
            },
            (Self::OneOrMany(item), _) => item.help_for_type(node, name),
            (Self::Word(words), YamlValue::Null) if words.iter().any(|(word, _)| *word == "null") => {
                "quote the word: `\"null\"`".to_owned()
            }
            (Self::Word(words), _) => known_values(words),
            (Self::String(form), YamlValue::Number(_)) if form.contains("such as") => format!("write {form}"),
            (Self::String(_), YamlValue::Bool(_) | YamlValue::Number(_)) => {
                format!("quote it if it is a string: `\"{written}\"`")
            }
            (Self::Record(record), YamlValue::Null) if record.fields.iter().all(|field| !field.required) => {
                if name.contains(' ') {
                    "write a mapping, or remove the item".to_owned()
                } else {
                    format!("write `{name}: {{}}` if it needs no options")
                }
            }
            (Self::String(form), _) => format!("write {form}"),
            (_, YamlValue::Null) => "add a value, or remove the key".to_owned(),
            (Self::Bool | Self::True, YamlValue::String(_)) => {
                let no = matches!(written.to_lowercase().as_str(), "false" | "no" | "off" | "n");
                let word = if no && matches!(self, Self::Bool) { "false" } else { "true" };
                format!("write `{word}` without quotes")
            }
            (Self::Number | Self::Integer(..), YamlValue::String(text))
                if text.text.parse::<crate::json::Number>().is_ok() =>
            {
                format!("write `{written}` without quotes")
            }
            (Self::Integer(min, max), _) => format!("write a number such as `{}`", 1.clamp(*min, *max)),
            (Self::Map(_), _) => "write a mapping of names, as in `name: value`".to_owned(),
            (Self::Number, _) => "write a number such as `100`".to_owned(),
            (Self::List(_) | Self::NonEmptyList(_), YamlValue::Mapping(_)) => {
                "write a list: start each item with `- `".to_owned()
            }
            (Self::List(item) | Self::NonEmptyList(item), _) if item.accepts_type_of(node) => {
                format!("put it in brackets to make it a list: `[{written}]`")
            }
            (Self::List(_) | Self::NonEmptyList(_), _) => "write a list, as in `[first, second]`".to_owned(),
            (Self::Record(record), _) => record.example_mapping(node),
            (Self::Any | Self::Bool | Self::True, _) => "write `true`".to_owned(),
        }
    }
}

/// Whether a value is missing because of a YAML feature (a tag) that was already reported. YAML errors take precedence.
fn is_reported_yaml_error(node: &YamlNode, diagnostics: &Diagnostics) -> bool {
    let beside = |span: Span| {
        span.source == node.span.source && (node.span.end()..=node.span.end() + 1).contains(&span.start())
    };
    matches!(node.value, YamlValue::Null)
        && diagnostics
            .iter()
            .take_while(|diagnostic| diagnostic.code.id < "CG2")
            .any(|diagnostic| diagnostic.code == &YAML_FEATURE && diagnostic.span.is_some_and(beside))
}

/// A key in backticks; a phrase unchanged.
pub(super) fn quote_name(name: &str) -> String {
    if name.contains(' ') { name.to_owned() } else { format!("`{name}`") }
}

/// A scalar, escaped and truncated for display.
fn scalar_text(node: &YamlNode) -> String {
    match node.as_str() {
        Some(text) => truncate(&escape_controls(text)),
        None => truncate(&escape_controls(&node.to_json().to_string())),
    }
}

fn known_values(words: &[(&'static str, &str)]) -> String {
    format!("known values: {}", words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", "))
}

fn check_true(node: &YamlNode, name: &str, diagnostics: &mut Diagnostics) {
    if node.as_bool() == Some(false) {
        diagnostics.push(
            Diagnostic::new(&UNKNOWN_VALUE, node.span, format!("`{name}` can only be `true`"))
                .with_help("remove the key instead"),
        );
    }
}

fn check_integer(node: &YamlNode, name: &str, min: i64, max: i64, diagnostics: &mut Diagnostics) {
    let number = node.as_number().and_then(crate::json::Number::as_i64);
    if number.is_none_or(|number| number < min || number > max) {
        let range =
            if max == i64::MAX { format!("of {min} or more") } else { format!("from {min} to {max}") };
        let message = format!("`{name}` must be an integer {range}");
        let near = number.unwrap_or(1).clamp(min, max);
        diagnostics.push(
            Diagnostic::new(&OUT_OF_RANGE, node.span, message)
                .with_help(format!("write a number such as `{near}`")),
        );
    }
}

fn check_word(node: &YamlNode, name: &str, words: &[(&'static str, &str)], diagnostics: &mut Diagnostics) {
    let Some(text) = node.as_str() else { return };
    if words.iter().any(|(word, _)| *word == text) {
        return;
    }
    let help = match did_you_mean(text, words.iter().map(|(word, _)| *word)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => known_values(words),
    };
    let message = format!("`{}` is not a valid value of `{name}`", truncate(&escape_controls(text)));
    diagnostics.push(Diagnostic::new(&UNKNOWN_VALUE, node.span, message).with_help(help));
}

fn check_list(node: &YamlNode, name: &str, item: &Shape, diagnostics: &mut Diagnostics) {
    if node.items().is_some_and(<[_]>::is_empty) {
        diagnostics.push(
            Diagnostic::new(&EMPTY_VALUE, node.span, format!("`{name}` is an empty list"))
                .with_help("add at least one item, or remove the key"),
        );
    }
    check_items(node, name, item, diagnostics);
}

/// Reports items that all have the same wrong type as one problem.
fn check_items(node: &YamlNode, name: &str, item: &Shape, diagnostics: &mut Diagnostics) {
    let items = node.items().unwrap_or_default();
    let name_of_item = format!("an item of `{name}`");
    let mut misfits = items.iter().filter(|entry| !item.accepts_type_of(entry));
    if let (Some(first), Some(second)) = (misfits.next(), misfits.next()) {
        let alike = items
            .iter()
            .all(|entry| std::mem::discriminant(&entry.value) == std::mem::discriminant(&first.value));
        if alike {
            let diagnostic = item.wrong_type(first, &name_of_item);
            diagnostics.push(diagnostic.with_label(second.span, "and the following items"));
            return;
        }
    }
    for entry in items {
        let name = if item.accepts_type_of(entry) { name } else { &name_of_item };
        item.check(entry, name, diagnostics);
    }
}
