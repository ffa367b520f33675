//! Safe display of untrusted text: escaping, truncation, and detection of misleading characters.
//!
//! [`escape_controls`] escapes a value for one line of a message, between backticks; [`escape_markup`] and its variants escape markup for any chat
//! product, browser or terminal.

mod name_folding;
mod mixed_script;
mod markup_escape;

pub use markup_escape::{
    EscapedText, escape_json, escape_markup, escape_markup_up_to, escape_message, escape_name,
    escape_non_ascii, escape_quoted,
};
pub use mixed_script::{find_imitated_latin, find_mixed_scripts};
pub use name_folding::fold_name;
pub(crate) use name_folding::is_same_folded;

use crate::unicode::{casefold, is_invisible, skeleton};

/// The maximum number of characters shown of one value.
const MAX_SHOWN: usize = 80;

/// Whether a character is invisible or changes the direction of the text around it, by its Unicode properties: soft hyphen, zero-width
/// and bidirectional controls, line separators, variation selectors, tags.
pub fn is_hidden(c: char) -> bool {
    is_invisible(c)
}

/// Returns the form by which look-alike texts are recognized: equal for texts that a reader takes for one another (UTS 39), whatever
/// their letter case.
pub fn look_alike_form(text: &str) -> String {
    casefold(&skeleton(&casefold(text))).into_owned()
}

/// Escapes control characters, hidden characters and backticks, so that the text stays in its line and its backticks.
pub fn escape_controls(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        if c.is_control() || is_hidden(c) || c == '`' {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
        safe
    })
}

/// Escapes a text for the content and the attributes of HTML.
///
/// ```
/// assert_eq!(callgate::safe_text::escape_html("<b title='a'>"), "&lt;b title=&#39;a&#39;&gt;");
/// ```
pub fn escape_html(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut html, c| {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
        html
    })
}

/// Returns the first 80 characters, with `…` if there are more.
pub fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_truncates_untrusted_text() {
        assert_eq!(escape_controls("a\n`b\u{202e}é"), "a\\u{a}\\u{60}b\\u{202e}é");
        assert_eq!(truncate(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
        assert_eq!(truncate("short"), "short");
    }
}
