//! What each part of a rules file may hold, as tables. From the one table come the check with its placed errors, the JSON
//! Schema for editors, and the hover texts.

use crate::diagnostic::{
    self, Diagnostic, Diagnostics, EMPTY_VALUE, MISSING_KEY, OUT_OF_RANGE, UNKNOWN_KEY, UNKNOWN_VALUE,
    WRONG_TYPE,
};
use crate::source::{Node, NodeValue};

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Anything.
    Any,
    /// `true` or `false`.
    Bool,
    /// `true`: the key is there or it is not.
    True,
    /// A string; the text says of which form, for editors.
    Text(&'static str),
    /// A number.
    Number,
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// One of these words, each with what it means.
    Word(&'static [(&'static str, &'static str)]),
    /// A list, which may be empty.
    Items(&'static Shape),
    /// A list with at least one item.
    List(&'static Shape),
    /// One, or a list with at least one item.
    OneOrMany(&'static Shape),
    /// A mapping with these keys.
    Record(&'static Record),
    /// The first of these whose YAML type fits.
    Either(&'static [Shape]),
}

/// A mapping with a fixed set of keys.
#[derive(Debug)]
pub struct Record {
    /// The record's name, for the schema's definitions.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its keys.
    pub fields: &'static [Field],
}

/// One key of a [`Record`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// What it says, for people who write rules files.
    pub doc: &'static str,
    /// What its value may be.
    pub shape: Shape,
    /// Whether it must be there.
    pub required: bool,
}

impl Field {
    /// A key that may be left out.
    pub const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { name, doc, shape, required: false }
    }

    /// A key that must be there.
    pub const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { name, doc, shape, required: true }
    }
}

impl Shape {
    /// Whether a node's YAML type is one that this shape starts from.
    fn fits(&self, node: &Node) -> bool {
        match self {
            Self::Any => true,
            Self::Bool | Self::True => matches!(node.value, NodeValue::Bool(_)),
            Self::Text(_) | Self::Word(_) => matches!(node.value, NodeValue::String(_)),
            Self::Number | Self::Integer(..) => matches!(node.value, NodeValue::Number(_)),
            Self::Items(_) | Self::List(_) => matches!(node.value, NodeValue::Sequence(_)),
            Self::OneOrMany(item) => matches!(node.value, NodeValue::Sequence(_)) || item.fits(node),
            Self::Record(_) => matches!(node.value, NodeValue::Mapping(_)),
            Self::Either(shapes) => shapes.iter().any(|shape| shape.fits(node)),
        }
    }

    /// What a value of this shape is, in the words of a message.
    fn wanted(&self) -> String {
        match self {
            Self::Any => "a value".to_owned(),
            Self::Bool => "`true` or `false`".to_owned(),
            Self::True => "`true`".to_owned(),
            Self::Text(form) => format!("{form} (a string)"),
            Self::Number => "a number".to_owned(),
            Self::Integer(..) => "a whole number".to_owned(),
            Self::Word(words) => {
                format!(
                    "one of {}",
                    words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
                )
            }
            Self::Items(item) | Self::List(item) => format!("a list of {}", item.wanted()),
            Self::OneOrMany(item) => format!("{}, or a list of them", item.wanted()),
            Self::Record(record) => {
                let keys: Vec<_> =
                    record.fields.iter().take(6).map(|field| format!("`{}`", field.name)).collect();
                if keys.is_empty() {
                    "`{}`".to_owned()
                } else {
                    format!("a mapping with keys such as {}", keys.join(", "))
                }
            }
            Self::Either(shapes) => shapes.iter().map(Shape::wanted).collect::<Vec<_>>().join(", or "),
        }
    }

    /// Reports everything about `node` that is not of this shape; `name` is what messages call it.
    pub fn check(&self, node: &Node, name: &str, diagnostics: &mut Diagnostics) {
        if !self.fits(node) {
            let mut diagnostic = Diagnostic::new(
                &WRONG_TYPE,
                node.span,
                format!("`{name}` must be {}, this is {}", self.wanted(), node.type_name()),
            );
            if matches!(self, Self::Text(_) | Self::Word(_))
                && matches!(node.value, NodeValue::Bool(_) | NodeValue::Number(_))
            {
                diagnostic = diagnostic.help("put it in quotes if it is meant as text");
            }
            if matches!(self, Self::Record(record) if record.fields.iter().all(|field| !field.required))
                && matches!(node.value, NodeValue::Null)
            {
                diagnostic = diagnostic.help(format!("write `{name}: {{}}` if nothing more is to be said"));
            }
            diagnostics.push(diagnostic);
            return;
        }
        match self {
            Self::Any | Self::Bool | Self::Number | Self::Text(_) => {}
            Self::True => check_true(node, name, diagnostics),
            Self::Integer(min, max) => check_integer(node, name, *min, *max, diagnostics),
            Self::Word(words) => check_word(node, name, words, diagnostics),
            Self::Items(item) => check_items(node, name, item, diagnostics),
            Self::List(item) => check_list(node, name, item, diagnostics),
            Self::OneOrMany(item) => match node.value {
                NodeValue::Sequence(_) => check_list(node, name, item, diagnostics),
                _ => item.check(node, name, diagnostics),
            },
            Self::Record(record) => record.check(node, name, diagnostics),
            Self::Either(shapes) => {
                if let Some(shape) = shapes.iter().find(|shape| shape.fits(node)) {
                    shape.check(node, name, diagnostics);
                }
            }
        }
    }
}

impl Record {
    /// Reports unknown and missing keys of a mapping, and everything wrong with its values.
    fn check(&self, node: &Node, name: &str, diagnostics: &mut Diagnostics) {
        for entry in node.entries().unwrap_or_default() {
            match self.fields.iter().find(|field| field.name == entry.key) {
                Some(field) => field.shape.check(&entry.value, field.name, diagnostics),
                None => diagnostics.push(
                    Diagnostic::new(
                        &UNKNOWN_KEY,
                        entry.key_span,
                        format!("unknown key `{}` in `{name}`", entry.key),
                    )
                    .help(self.help_for(&entry.key)),
                ),
            }
        }
        for field in self.fields.iter().filter(|field| field.required && node.get(field.name).is_none()) {
            diagnostics.push(
                Diagnostic::new(&MISSING_KEY, node.span, format!("`{}` is missing in `{name}`", field.name))
                    .help(format!("{}: {}", field.name, field.doc)),
            );
        }
    }

    fn help_for(&self, key: &str) -> String {
        let names = || self.fields.iter().map(|field| field.name);
        match diagnostic::nearest(key, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.fields.is_empty() => "it takes no keys".to_owned(),
            None => format!("known keys: {}", names().collect::<Vec<_>>().join(", ")),
        }
    }
}

fn check_true(node: &Node, name: &str, diagnostics: &mut Diagnostics) {
    if node.as_bool() == Some(false) {
        diagnostics.push(
            Diagnostic::new(&UNKNOWN_VALUE, node.span, format!("`{name}` can only be `true`"))
                .help("leave the key out instead"),
        );
    }
}

fn check_integer(node: &Node, name: &str, min: i64, max: i64, diagnostics: &mut Diagnostics) {
    let number = node.as_number().and_then(serde_json::Number::as_i64);
    if number.is_none_or(|number| number < min || number > max) {
        let range = if max == i64::MAX { format!("{min} or more") } else { format!("from {min} to {max}") };
        diagnostics.push(Diagnostic::new(
            &OUT_OF_RANGE,
            node.span,
            format!("`{name}` must be a whole number, {range}"),
        ));
    }
}

fn check_word(node: &Node, name: &str, words: &[(&'static str, &str)], diagnostics: &mut Diagnostics) {
    let Some(text) = node.as_str() else { return };
    if words.iter().any(|(word, _)| *word == text) {
        return;
    }
    let known = words.iter().map(|(word, _)| *word);
    let help = match diagnostic::nearest(text, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known values: {}", known.collect::<Vec<_>>().join(", ")),
    };
    diagnostics.push(
        Diagnostic::new(&UNKNOWN_VALUE, node.span, format!("`{text}` is no value of `{name}`")).help(help),
    );
}

fn check_list(node: &Node, name: &str, item: &Shape, diagnostics: &mut Diagnostics) {
    if node.items().is_some_and(<[_]>::is_empty) {
        diagnostics.push(
            Diagnostic::new(&EMPTY_VALUE, node.span, format!("`{name}` is an empty list"))
                .help("leave the key out, or say at least one item"),
        );
    }
    check_items(node, name, item, diagnostics);
}

fn check_items(node: &Node, name: &str, item: &Shape, diagnostics: &mut Diagnostics) {
    for entry in node.items().unwrap_or_default() {
        item.check(entry, name, diagnostics);
    }
}
