//! `defaults`: settings of a whole bundle.

use super::{bundle_settings, definitions};
use crate::call::method_name;
use crate::diagnostic::Diagnostics;
use crate::principal::PrincipalComparison;
use crate::rules_schema::{FieldShape, RecordShape, Shape};
use crate::source::LoadedFile;

/// What happens to calls that no `allow`, `approval` or `respond` policy matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unmatched {
    /// The calls run.
    #[default]
    Allow,
    /// The calls require approval.
    Approval,
    /// The calls are denied.
    Deny,
}

/// Check of the arguments before policies that read them are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentCheck {
    /// No check.
    Unchecked,
    /// The arguments must have the types that the tool's schema declares, if the schema is known.
    Typed,
    /// The arguments must satisfy the whole schema of the tool, if the schema is known.
    Valid,
}

/// Settings of a whole bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// Decision for unmatched calls.
    pub unmatched: Unmatched,
    /// Decision for unmatched requests by MCP methods.
    pub unmatched_methods: Unmatched,
    /// Whether a test of an absent field matches in restricting policies.
    pub absent_matches: bool,
    /// How principals are compared.
    pub principals: PrincipalComparison,
    /// The check of arguments, if the rules set one.
    pub arguments: Option<ArgumentCheck>,
}

impl Defaults {
    /// The decision for an unmatched call of a tool, or for an unmatched request by a [qualified method](crate::call::METHOD_PREFIX).
    pub fn unmatched_for(&self, tool: &str) -> Unmatched {
        match method_name(tool) {
            Some(_) => self.unmatched_methods,
            None => self.unmatched,
        }
    }

    /// The check of arguments. [`ArgumentCheck::Typed`] unless the rules set another one.
    pub fn argument_check(&self) -> ArgumentCheck {
        self.arguments.unwrap_or(ArgumentCheck::Typed)
    }
}

const UNMATCHED: Shape = Shape::Word(&[
    ("allow", "the calls run"),
    ("deny", "the calls are denied"),
    ("approval", "the calls require approval"),
]);

pub(super) static RECORD: RecordShape = RecordShape {
    name: "defaults",
    doc: "Settings of the whole bundle. Setting a key to different values in several files is an error.",
    fields: &[
        FieldShape::optional(
            "unmatched",
            UNMATCHED,
            "Decision for calls that no `allow`, `approval` or `respond` policy matches. Default: `allow`.",
        ),
        FieldShape::optional(
            "unmatched_methods",
            UNMATCHED,
            "Decision for requests by MCP methods other than tool calls, through the gateway, that no `allow`, `approval` or `respond` policy \
             with `method` matches. Default: `allow`.",
        ),
        FieldShape::optional(
            "absent",
            Shape::Word(&[("no_match", "the test is false"), ("match", "the policy matches")]),
            "Result of a test on an absent field in a restricting policy. Default: `no_match`.",
        ),
        FieldShape::optional(
            "principals",
            Shape::Word(&[
                (
                    "canonical",
                    "by their canonical form: ignores case, Unicode compatibility forms, invisible characters, and leading and trailing \
                     white space",
                ),
                ("exact", "code point by code point"),
            ]),
            "How principals are compared: approvers with requesters, and in the keys of limits, caches and budgets. Default: \
             `canonical`.",
        ),
        FieldShape::optional(
            "arguments",
            Shape::Word(&[
                ("typed", "must have the types that the tool's schema declares, if the schema is known"),
                ("valid", "must satisfy the whole schema of the tool, if the schema is known"),
                ("unchecked", "are not checked"),
            ]),
            "Check of a call's arguments before policies that read them are evaluated. A call that fails it is `invalid`, with a message \
              that the model can act on. Default: `typed`.",
        ),
        definitions::GROUPS,
        definitions::DATA,
        definitions::LETS,
    ],
};

/// Reads `defaults` from all files and reports files that disagree.
pub(super) fn read(files: &[LoadedFile], diagnostics: &mut Diagnostics) -> Defaults {
    let unmatched = |word: Option<&str>| match word {
        Some("deny") => Unmatched::Deny,
        Some("approval") => Unmatched::Approval,
        _ => Unmatched::Allow,
    };
    Defaults {
        unmatched: unmatched(bundle_settings::read_setting(files, RECORD.name, "unmatched", diagnostics)),
        unmatched_methods: unmatched(bundle_settings::read_setting(
            files,
            RECORD.name,
            "unmatched_methods",
            diagnostics,
        )),
        principals: match bundle_settings::read_setting(files, RECORD.name, "principals", diagnostics) {
            Some("exact") => PrincipalComparison::Exact,
            _ => PrincipalComparison::Canonical,
        },
        absent_matches: bundle_settings::read_setting(files, RECORD.name, "absent", diagnostics)
            == Some("match"),
        arguments: match bundle_settings::read_setting(files, RECORD.name, "arguments", diagnostics) {
            Some("typed") => Some(ArgumentCheck::Typed),
            Some("valid") => Some(ArgumentCheck::Valid),
            Some("unchecked") => Some(ArgumentCheck::Unchecked),
            _ => None,
        },
    }
}
