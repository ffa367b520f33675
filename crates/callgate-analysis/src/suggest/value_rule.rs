//! What a draft permits at one path.

mod conditions;
mod examples;
mod schema;

use std::collections::BTreeMap;

use callgate::json::{Number, Value};

use super::string_shape::StringShape;

pub(super) use conditions::AbsentForm;

/// What is permitted for one value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldRule {
    /// The permitted types but null; empty for any.
    pub(super) types: Vec<&'static str>,
    pub(super) is_nullable: bool,
    pub(super) rule: ValueRule,
    /// What was seen, for a comment.
    pub(super) evidence: String,
}

/// What is permitted beyond the type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueRule {
    /// Every value of the type.
    Unlimited,
    /// None: the member must be absent.
    Absent,
    /// One of these.
    OneOf(Vec<Value>),
    /// A number of this range.
    Range { least: Number, most: Number },
    /// A string of at most this many characters.
    Length(u64),
    /// A string that matches one of these patterns.
    Shapes(Vec<ShapeRule>),
    /// A URL with one of these hosts.
    Hosts { hosts: Vec<String>, only_https: bool },
    /// Mail addresses in these domains.
    Domains(Vec<String>),
    /// A path in one of these directories.
    Directories { directories: Vec<String>, is_relative: bool },
    /// An array of at most so many items.
    Items { most: u64, item: Box<FieldRule> },
    /// An object with these members and no others.
    Members(BTreeMap<String, MemberRule>),
}

/// A shape with the lengths of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShapeRule {
    pub(super) shape: StringShape,
    pub(super) lengths: Vec<(u64, u64)>,
}

/// What is permitted for a member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MemberRule {
    pub(super) is_required: bool,
    pub(super) field: FieldRule,
}

impl ShapeRule {
    pub(super) fn pattern(&self) -> String {
        self.shape.pattern(&self.lengths)
    }
}
