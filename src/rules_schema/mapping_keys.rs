//! Validates the keys of a mapping: reports unknown and missing keys, with suggestions.

use super::did_you_mean::did_you_mean;
use super::shape::{FieldShape, RecordShape, Shape};
use super::shape_check::quote_name;
use crate::diagnostic::{Diagnostic, Diagnostics, MISSING_KEY, Span, UNKNOWN_KEY};
use crate::safe_text::{escape_controls, truncate};
use crate::source::{MappingEntry, YamlNode, YamlValue};

/// The maximum number of keys listed if a mapping is missing.
const MAX_LISTED: usize = 8;

impl RecordShape {
    /// Reports unknown and missing keys of a mapping, and all problems of its values.
    pub(super) fn check(&self, node: &YamlNode, name: &str, diagnostics: &mut Diagnostics) {
        for entry in node.entries().unwrap_or_default() {
            if let Some(field) = self.field(&entry.key) {
                field.shape.check(&entry.value, field.name, diagnostics);
            }
        }
        let mut misplaced: Vec<&str> = Vec::new();
        for entry in self.unknown_entries(node) {
            let home =
                self.parent_field_of(node, &entry.key).filter(|_| self.suggest_key(&entry.key).is_none());
            if home.is_some_and(|home| misplaced.contains(&home.name)) {
                continue;
            }
            misplaced.extend(home.map(|home| home.name));
            let message =
                format!("unknown key `{}` in {}", truncate(&escape_controls(&entry.key)), quote_name(name));
            diagnostics.push(
                Diagnostic::new(&UNKNOWN_KEY, entry.key_span, message)
                    .with_help(self.help_for_key(node, entry)),
            );
        }
        for field in self.fields.iter().filter(|field| field.required && node.get(field.name).is_none()) {
            if self.has_misspelling_of(node, field.name) {
                continue;
            }
            let message = format!("`{}` is missing in {}", field.name, quote_name(name));
            diagnostics.push(Diagnostic::new(&MISSING_KEY, head_span(node), message).with_help(format!(
                "add `{}:` ({})",
                field.name,
                first_sentence(field.doc)
            )));
        }
    }

    /// Whether a mapping has an unknown key that may be a misspelling of the field `name`; then only the unknown key is
    /// reported.
    pub fn has_misspelling_of(&self, node: &YamlNode, name: &str) -> bool {
        self.unknown_entries(node).any(|entry| {
            match (self.suggest_key(&entry.key), self.parent_field_of(node, &entry.key)) {
                (Some(meant), _) => meant == name,
                (None, Some(home)) => home.name == name,
                (None, None) => true,
            }
        })
    }

    /// Whether the YAML type of a key's value is valid; the mismatch is reported elsewhere.
    pub fn has_valid_type(&self, key: &str, value: &YamlNode) -> bool {
        self.field(key).is_none_or(|field| field.shape.accepts_type_of(value))
    }

    /// Rewrites the node as a mapping, for a help text.
    pub(super) fn example_mapping(&self, node: &YamlNode) -> String {
        // A scalar can become the value of a key only if one key is clearly the main one.
        let only_needed = self.fields.iter().filter(|field| field.required).count() <= 1
            && (self.fields.len() <= MAX_LISTED || node.items().is_some());
        let home = self.fields.iter().filter(|_| only_needed).find(|field| match field.shape {
            Shape::String(form) => node.as_str().is_some() && (field.required || form == "a template"),
            Shape::NonEmptyList(item) | Shape::OneOrMany(item) | Shape::List(item)
                if node.as_str().is_some() =>
            {
                field.required && item.accepts_type_of(node)
            }
            Shape::Any => field.required,
            shape => node.items().is_some() && shape.accepts_type_of(node),
        });
        match (home, &node.value) {
            (Some(field), YamlValue::Sequence(_)) => format!("put `{}:` before the list", field.name),
            (None, YamlValue::Sequence(_)) => "write a single mapping, not a list".to_owned(),
            (Some(field), YamlValue::String(text)) => {
                let text = truncate(&escape_controls(&text.text));
                match field.shape.accepts_type_of(node) {
                    true if matches!(field.shape, Shape::String("a template")) => {
                        format!("write `{{ {}: \"{text}\" }}`", field.name)
                    }
                    true => format!("write `{{ {}: {text} }}`", field.name),
                    false => format!("write `{{ {}: [{text}] }}`", field.name),
                }
            }
            _ if self.fields.is_empty() => "write `{}`".to_owned(),
            _ if self.fields.len() > MAX_LISTED => format!("write a mapping: {}", lowercase_first(self.doc)),
            _ => format!("its keys are {}", self.names().collect::<Vec<_>>().join(", ")),
        }
    }

    fn field(&self, key: &str) -> Option<&FieldShape> {
        self.fields.iter().find(|field| field.name == key)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> + Clone + '_ {
        self.fields.iter().map(|field| field.name)
    }

    fn unknown_entries<'a>(&'a self, node: &'a YamlNode) -> impl Iterator<Item = &'a MappingEntry> {
        node.entries().unwrap_or_default().iter().filter(|entry| self.field(&entry.key).is_none())
    }

    fn suggest_key(&self, key: &str) -> Option<&'static str> {
        did_you_mean(key, self.names())
    }

    /// The field whose mapping accepts a key; fields present in the mapping come first.
    fn parent_field_of(&self, node: &YamlNode, key: &str) -> Option<&FieldShape> {
        let has_key =
            |field: &&FieldShape| field.shape.record().is_some_and(|record| record.field(key).is_some());
        let mut homes = self.fields.iter().filter(has_key);
        let present = homes.clone().find(|field| node.get(field.name).is_some());
        present.or_else(|| homes.next())
    }

    fn help_for_key(&self, node: &YamlNode, entry: &MappingEntry) -> String {
        if let Some(near) = self.suggest_key(&entry.key) {
            return format!("did you mean `{near}`?");
        }
        if let Some(home) = self.parent_field_of(node, &entry.key) {
            return format!(
                "`{}` belongs in `{}`, as in `{}: {{ {}: … }}`",
                entry.key, home.name, home.name, entry.key
            );
        }
        match self.names().collect::<Vec<_>>().as_slice() {
            [] => "it takes no keys".to_owned(),
            names => format!("known keys: {}", names.join(", ")),
        }
    }
}

impl Shape {
    /// The mapping that this shape accepts, if any.
    fn record(&self) -> Option<&'static RecordShape> {
        match self {
            Self::Record(record) => Some(record),
            Self::List(item) | Self::NonEmptyList(item) | Self::OneOrMany(item) => item.record(),
            Self::Either(shapes) => shapes.iter().find_map(Self::record),
            _ => None,
        }
    }
}

/// The start of a mapping: its first key, or all of it if it is in braces.
pub fn head_span(node: &YamlNode) -> Span {
    match node.entries().and_then(<[_]>::first) {
        Some(first) if first.key_span.start() == node.span.start() => first.key_span,
        _ => node.span,
    }
}

/// The first sentence of a description, as a part of another sentence.
fn first_sentence(doc: &str) -> String {
    lowercase_first(doc.split_once(". ").map_or(doc, |(first, _)| first))
}

fn lowercase_first(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}
