//! Text from outside: made short and harmless before it is shown, and characters that mislead.
//!
//! [`inert`] is for one line of a message of ours, between backticks; [`unmarked`] and its siblings are for what any chat
//! product, browser or terminal may show.

mod names;
mod scripts;
mod unmarked;

pub use names::folded_name;
pub use scripts::{imitated_latin, mixed_scripts};
pub use unmarked::{
    Unmarked, spelled_out, unmarked, unmarked_json, unmarked_message, unmarked_name, unmarked_quoted,
    unmarked_up_to,
};

use crate::unicode::is_invisible;

/// Characters of one value that are shown.
const MAX_SHOWN: usize = 80;

/// Whether a character is invisible or turns the text around it, by the properties that Unicode gives it: soft hyphen, zero-width and
/// bidirectional controls, line separators, variation selectors, tags.
pub fn is_hidden(c: char) -> bool {
    is_invisible(c)
}

/// Text that can't break out of its line or its backticks: control characters, hidden ones and backticks are escaped.
pub fn inert(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        if c.is_control() || is_hidden(c) || c == '`' {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
        safe
    })
}

/// The first 80 characters.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_stays_in_its_line_and_its_backticks() {
        assert_eq!(inert("a\n`b\u{202e}é"), "a\\u{a}\\u{60}b\\u{202e}é");
        assert_eq!(cut(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
        assert_eq!(cut("short"), "short");
    }
}
