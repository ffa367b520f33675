//! What holds for a whole bundle, said in one of its files.

use crate::authoring::{Field, Record, Shape};
use crate::diagnostic::{DEFAULTS_DISAGREE, Diagnostic, Diagnostics, Span};
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

/// What holds for a whole bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// For calls that nothing permits.
    pub unmatched: Unmatched,
    /// Whether tests on absent fields match in restricting policies.
    pub absent_matches: bool,
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
    ],
};

/// Reads `defaults` of all files. Files that disagree are reported.
pub(super) fn read(files: &[LoadedFile], diagnostics: &mut Diagnostics) -> Defaults {
    let mut word = |key: &str| {
        let mut said: Option<(&str, Span)> = None;
        for file in files {
            let Some(node) = file.root.get("defaults").and_then(|defaults| defaults.get(key)) else {
                continue;
            };
            let Some(word) = node.as_str() else { continue };
            match said {
                Some((first, span)) if first != word => diagnostics.push(
                    Diagnostic::new(
                        &DEFAULTS_DISAGREE,
                        node.span,
                        format!("`defaults.{key}` is `{word}` here and `{first}` elsewhere"),
                    )
                    .label(span, "said here first")
                    .help("say it in one file only"),
                ),
                Some(_) => {}
                None => said = Some((word, node.span)),
            }
        }
        said.map(|(word, _)| word)
    };
    Defaults {
        unmatched: match word("unmatched") {
            Some("deny") => Unmatched::Deny,
            Some("approval") => Unmatched::Approval,
            _ => Unmatched::Allow,
        },
        absent_matches: word("absent") == Some("match"),
    }
}
