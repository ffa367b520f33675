//! Bundle-wide settings: reads a key that one rules file sets, or that several files set to the same value.

use crate::diagnostic::{DEFAULTS_DISAGREE, Diagnostic, Diagnostics, Span};
use crate::source::LoadedFile;

/// Returns the string at `record.key`. Files that disagree are reported, and the first one counts.
pub(super) fn read_setting<'f>(
    files: &'f [LoadedFile],
    record: &str,
    key: &str,
    diagnostics: &mut Diagnostics,
) -> Option<&'f str> {
    let mut setting: Option<(&str, Span)> = None;
    for file in files {
        let Some(node) = file.root.get(record).and_then(|record| record.get(key)) else { continue };
        let Some(word) = node.as_str() else { continue };
        match setting {
            Some((first, span)) if first != word => diagnostics.push(
                Diagnostic::new(
                    &DEFAULTS_DISAGREE,
                    node.span,
                    format!("`{record}.{key}` is `{word}` here and `{first}` elsewhere"),
                )
                .with_label(span, "first set here")
                .with_help("set it in one file only"),
            ),
            Some(_) => {}
            None => setting = Some((word, node.span)),
        }
    }
    setting.map(|(word, _)| word)
}
