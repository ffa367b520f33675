//! What commands print, if the text says it: for a shell that reads its commands from a pipe.

use crate::word::ShellWord;

/// The output of `echo` with known words, or of `cat` with only a here-document. `None` if it is not known.
pub(super) fn output_text(words: &[ShellWord], documents: &[Option<String>]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(ShellWord::as_known).collect::<Option<_>>()?;
    match (words.as_slice(), documents) {
        (["cat"], [Some(document)]) => Some(document.clone()),
        (["echo", rest @ ..], []) => {
            let rest = match rest {
                ["-n", rest @ ..] => rest,
                rest => rest,
            };
            // Some shells replace escapes, and some know flags of `echo`.
            let is_plain = rest.first().is_none_or(|first| !first.starts_with('-'))
                && rest.iter().all(|word| !word.contains('\\'));
            is_plain.then(|| rest.join(" "))
        }
        (["printf", text], []) if !text.contains(['%', '\\']) => Some((*text).to_owned()),
        _ => None,
    }
}
