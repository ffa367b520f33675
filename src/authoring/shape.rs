//! What each part of a rules file may hold, as tables. From the one table come the check with its placed errors, the JSON
//! Schema for editors, and the hover texts.

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
