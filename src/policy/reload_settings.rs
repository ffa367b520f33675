//! `reload`: conditions for the hot reload of a bundle.

use super::bundle_settings;
use crate::diagnostic::Diagnostics;
use crate::rules_schema::{FieldShape, RecordShape, Shape};
use crate::source::LoadedFile;

/// Conditions that changed rules must meet before they replace the active ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadSettings {
    /// The policy tests of the changed rules must pass.
    pub require_tests: bool,
    /// The host must confirm changed rules that may allow more.
    pub confirm_widening: bool,
}

impl ReloadSettings {
    /// Combines both settings: the result requires everything that either requires.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            require_tests: self.require_tests || other.require_tests,
            confirm_widening: self.confirm_widening || other.confirm_widening,
        }
    }
}

pub(super) static RECORD: RecordShape = RecordShape {
    name: "reload",
    doc: "Conditions that changed rules must meet before a hot reload activates them. Setting a key to different values in several \
          files is an error.",
    fields: &[
        FieldShape::optional(
            "tests",
            Shape::Word(&[
                ("ignore", "policy tests are not run"),
                (
                    "require",
                    "rules whose policy tests fail, or that have no tests, are rejected, both on the first load and on reload",
                ),
            ]),
            "Whether the policy tests next to the rules must pass. Default: `ignore`.",
        ),
        FieldShape::optional(
            "widening",
            Shape::Word(&[
                ("accept", "they take effect at once"),
                ("confirm", "they take effect once the host confirms their revision"),
            ]),
            "Handling of changed rules that may allow more than the active ones. Default: `accept`.",
        ),
    ],
};

/// Reads `reload` from all files and reports files that disagree.
pub(super) fn read(files: &[LoadedFile], diagnostics: &mut Diagnostics) -> ReloadSettings {
    ReloadSettings {
        require_tests: bundle_settings::read_setting(files, RECORD.name, "tests", diagnostics)
            == Some("require"),
        confirm_widening: bundle_settings::read_setting(files, RECORD.name, "widening", diagnostics)
            == Some("confirm"),
    }
}
