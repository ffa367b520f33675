//! Escapes characters that a terminal interprets or hides.

use std::borrow::Cow;

use crate::unicode::is_invisible;

/// Characters that a terminal interprets or hides, in addition to those that the renderer replaces.
pub(super) fn is_hidden(character: char) -> bool {
    matches!(character, '\u{80}'..='\u{9f}') || is_invisible(character)
}

/// Escapes characters of a message that a terminal would interpret.
pub(super) fn escape_hidden(text: &str) -> Cow<'_, str> {
    if !text.contains(|character: char| character.is_control() || is_hidden(character)) {
        return text.into();
    }
    text.chars()
        .map(|character| {
            if character.is_control() || is_hidden(character) {
                character.escape_default().to_string()
            } else {
                character.to_string()
            }
        })
        .collect()
}
