//! What the files of a bundle say of the bundle as a whole: in one of them, or the same in each.

use crate::diagnostic::{DEFAULTS_DISAGREE, Diagnostic, Diagnostics, Span};
use crate::source::LoadedFile;

/// The word under `record.key`. Files that disagree are reported; the first counts.
pub(super) fn word<'f>(
    files: &'f [LoadedFile],
    record: &str,
    key: &str,
    diagnostics: &mut Diagnostics,
) -> Option<&'f str> {
    let mut said: Option<(&str, Span)> = None;
    for file in files {
        let Some(node) = file.root.get(record).and_then(|record| record.get(key)) else { continue };
        let Some(word) = node.as_str() else { continue };
        match said {
            Some((first, span)) if first != word => diagnostics.push(
                Diagnostic::new(
                    &DEFAULTS_DISAGREE,
                    node.span,
                    format!("`{record}.{key}` is `{word}` here and `{first}` elsewhere"),
                )
                .label(span, "said here first")
                .help("say it in one file only"),
            ),
            Some(_) => {}
            None => said = Some((word, node.span)),
        }
    }
    said.map(|(word, _)| word)
}
