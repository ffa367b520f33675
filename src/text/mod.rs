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

/// Characters of one value that are shown.
const MAX_SHOWN: usize = 80;

/// Whether a character is invisible or turns the text around it: soft hyphens, zero-width and bidirectional controls,
/// line separators, tags.
pub fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
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
