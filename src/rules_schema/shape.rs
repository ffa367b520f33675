//! Shapes: tables of what each part of a rules file accepts. They drive validation with exact positions, the JSON Schema for
//! editors, and the hover texts.

/// The values that a key or item accepts.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Anything.
    Any,
    /// `true` or `false`.
    Bool,
    /// `true`: the key is either present or absent.
    True,
    /// A string; the description of its format is for editors.
    String(&'static str),
    /// A number.
    Number,
    /// An integer from the first to the second.
    Integer(i64, i64),
    /// One of these words, each with its meaning.
    Word(&'static [(&'static str, &'static str)]),
    /// A list, which may be empty.
    List(&'static Shape),
    /// A list with at least one item.
    NonEmptyList(&'static Shape),
    /// A single item, or a list with at least one item.
    OneOrMany(&'static Shape),
    /// A mapping with these keys.
    Record(&'static RecordShape),
    /// A mapping with any keys, whose values have this shape.
    Map(&'static Shape),
    /// The first of these that accepts the YAML type.
    Either(&'static [Shape]),
}

/// A mapping with a fixed set of keys.
#[derive(Debug)]
pub struct RecordShape {
    /// The record's name, for the schema's definitions.
    pub name: &'static str,
    /// Its description.
    pub doc: &'static str,
    /// Its keys.
    pub fields: &'static [FieldShape],
}

/// One key of a [`RecordShape`].
#[derive(Clone, Copy, Debug)]
pub struct FieldShape {
    /// The key.
    pub name: &'static str,
    /// Its description for authors of rules files.
    pub doc: &'static str,
    /// The values that it accepts.
    pub shape: Shape,
    /// Whether it is required.
    pub required: bool,
}

impl FieldShape {
    /// An optional key.
    pub const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { name, doc, shape, required: false }
    }

    /// A required key.
    pub const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { name, doc, shape, required: true }
    }
}
