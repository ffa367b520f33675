//! What a bundle says of its own replacement.

use super::agreed;
use crate::authoring::{Field, Record, Shape};
use crate::diagnostic::Diagnostics;
use crate::source::LoadedFile;

/// What new rules have to pass before they replace these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadSettings {
    /// Their own policy tests must pass.
    pub require_tests: bool,
    /// Where they allow more, the host must confirm them.
    pub confirm_widening: bool,
}

impl ReloadSettings {
    /// What either asks for.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            require_tests: self.require_tests || other.require_tests,
            confirm_widening: self.confirm_widening || other.confirm_widening,
        }
    }
}

pub(super) static RECORD: Record = Record {
    name: "reload",
    doc: "What changed rules have to pass before they replace these while calls are decided. Files that disagree are an error.",
    fields: &[
        Field::optional(
            "tests",
            Shape::Word(&[
                ("ignore", "policy tests are not run"),
                (
                    "require",
                    "rules whose own policy tests fail, or that have none, are refused: when they are loaded first, and when they change",
                ),
            ]),
            "Whether the policy tests beside the rules must pass. Without it: `ignore`.",
        ),
        Field::optional(
            "widening",
            Shape::Word(&[
                ("accept", "they are taken in"),
                ("confirm", "they wait until the host confirms their revision"),
            ]),
            "What becomes of changed rules that may allow more than these. Without it: `accept`.",
        ),
    ],
};

/// Reads `reload` of all files. Files that disagree are reported.
pub(super) fn read(files: &[LoadedFile], diagnostics: &mut Diagnostics) -> ReloadSettings {
    ReloadSettings {
        require_tests: agreed::word(files, RECORD.name, "tests", diagnostics) == Some("require"),
        confirm_widening: agreed::word(files, RECORD.name, "widening", diagnostics) == Some("confirm"),
    }
}
