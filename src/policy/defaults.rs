//! What holds for a whole bundle, said in one of its files.

use super::agreed;
use crate::authoring::{Field, Record, Shape};
use crate::diagnostic::Diagnostics;
use crate::principal::Comparison;
use crate::source::LoadedFile;

/// What happens to calls that no `allow`, `approval` or `respond` policy matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unmatched {
    /// They run.
    #[default]
    Allow,
    /// A person must say yes.
    Approval,
    /// They are denied.
    Deny,
}

/// What arguments must be before policies that read them are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentCheck {
    /// Anything.
    Unchecked,
    /// Of the types that the tool's schema declares, where one is known.
    Typed,
    /// All that the tool's schema asks for, where one is known.
    Valid,
}

/// What holds for a whole bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// For calls that nothing permits.
    pub unmatched: Unmatched,
    /// Whether tests on absent fields match in restricting policies.
    pub absent_matches: bool,
    /// How principals are compared.
    pub principals: Comparison,
    /// What arguments must be, if the rules say so. [`ArgumentCheck::Typed`] otherwise.
    pub arguments: Option<ArgumentCheck>,
}

impl Defaults {
    /// What arguments must be.
    pub fn argument_check(&self) -> ArgumentCheck {
        self.arguments.unwrap_or(ArgumentCheck::Typed)
    }
}

pub(super) static RECORD: Record = Record {
    name: "defaults",
    doc: "What holds for the whole bundle. Files that disagree are an error.",
    fields: &[
        Field::optional(
            "unmatched",
            Shape::Word(&[
                ("allow", "they run"),
                ("deny", "they are denied"),
                ("approval", "a person must say yes"),
            ]),
            "What happens to calls that no `allow`, `approval` or `respond` policy matches. Without it: `allow`.",
        ),
        Field::optional(
            "absent",
            Shape::Word(&[("no_match", "the test does not hold"), ("match", "the policy matches")]),
            "What a test on an absent field says in a restricting policy. Without it: `no_match`.",
        ),
        Field::optional(
            "principals",
            Shape::Word(&[
                (
                    "canonical",
                    "by their canonical form: case, compatibility forms, invisible characters and white space at the ends make no \
                     difference",
                ),
                ("exact", "code point by code point"),
            ]),
            "How principals are compared: of approvers and requesters, and in keys of limits, caches and budgets. Without it: \
             `canonical`.",
        ),
        Field::optional(
            "arguments",
            Shape::Word(&[
                ("typed", "they have the types that the tool's schema declares, where one is known"),
                ("valid", "they are all that the tool's schema asks for, where one is known"),
                ("unchecked", "they can be anything"),
            ]),
            "What arguments must be before policies that read them are evaluated; other calls are `invalid`, with a message that the model \
              can act on. Without it: `typed`.",
        ),
    ],
};

/// Reads `defaults` of all files. Files that disagree are reported.
pub(super) fn read(files: &[LoadedFile], diagnostics: &mut Diagnostics) -> Defaults {
    Defaults {
        unmatched: match agreed::word(files, RECORD.name, "unmatched", diagnostics) {
            Some("deny") => Unmatched::Deny,
            Some("approval") => Unmatched::Approval,
            _ => Unmatched::Allow,
        },
        principals: match agreed::word(files, RECORD.name, "principals", diagnostics) {
            Some("exact") => Comparison::Exact,
            _ => Comparison::Canonical,
        },
        absent_matches: agreed::word(files, RECORD.name, "absent", diagnostics) == Some("match"),
        arguments: match agreed::word(files, RECORD.name, "arguments", diagnostics) {
            Some("typed") => Some(ArgumentCheck::Typed),
            Some("valid") => Some(ArgumentCheck::Valid),
            Some("unchecked") => Some(ArgumentCheck::Unchecked),
            _ => None,
        },
    }
}
