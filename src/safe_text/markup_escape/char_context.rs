//! Decides which characters are escaped: a character and its context → whether it could be markup, or something else than it looks like.

use crate::safe_text::is_hidden;

/// The maximum number of combining marks shown on one character; more of them cover the lines above.
const MAX_MARKS: usize = 2;

/// What a text is escaped for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum EscapeForm {
    Exact,
    /// Between quotes.
    Quoted,
    Message,
    SpelledOut,
}

/// The context of a character.
pub(super) struct CharContext<'a> {
    before: &'a str,
    after: &'a str,
    /// Whether the previous character is escaped, or there is none.
    escaped: bool,
    /// How many combining marks are in a row, including this one.
    marks: usize,
    form: EscapeForm,
}

impl<'a> CharContext<'a> {
    /// The context before the first character of a text.
    pub(super) fn new(text: &'a str, form: EscapeForm) -> Self {
        Self { before: "", after: text, escaped: true, marks: 0, form }
    }

    /// Goes on to the character at this position. Returns whether it must be escaped.
    pub(super) fn advance(&mut self, text: &'a str, index: usize, c: char) -> bool {
        self.before = text.get(..index).unwrap_or_default();
        self.after = text.get(index + c.len_utf8()..).unwrap_or_default();
        self.marks = if is_mark(c) { self.marks + 1 } else { 0 };
        self.escaped = self.must_escape(c);
        self.escaped
    }

    fn must_escape(&self, c: char) -> bool {
        let next = self.after.chars().next();
        let previous = self.before.chars().next_back();
        let within_word = is_alphanumeric(previous) && is_alphanumeric(next);
        match c {
            // Always markup; or the end of an attribute or a JSON string.
            '<' | '>' | '&' | '`' | '*' | '~' | '|' | '#' | '[' | ']' | '^' => true,
            '"' => self.form == EscapeForm::Quoted,
            '\\' => self.form != EscapeForm::Message || !is_alphanumeric(next),
            // Discord underlines `__` inside words too, and treats letters beyond ASCII as the end of a word.
            '_' => !within_word,
            '@' => !within_word || self.is_mass_mention(),
            ':' => self.after.starts_with("//") || self.is_emoji() || self.at_start() || self.is_label(next),
            '\'' => self.is_exact() && (is_single_quote(previous) || is_single_quote(next)),
            // TeX math; the dollar sign of an amount can begin a formula, but not end it.
            '$' => !next.is_some_and(|next| next.is_ascii_digit()) || !self.is_after_space(previous),
            '-' | '+' => self.is_list(next),
            '=' => self.at_start(),
            '.' => self.is_after_www() || self.is_number_of_list(next),
            ')' => self.is_number_of_list(next),
            // Renderers drop leading, trailing and repeated spaces.
            ' ' => matches!(previous, None | Some(' ')) || next.is_none(),
            _ if c.is_ascii() => c.is_ascii_control(),
            _ => {
                self.form == EscapeForm::SpelledOut
                    || self.is_exact() && self.imitates_punctuation(c, previous, next)
                    || c.is_control()
                    || c.is_whitespace()
                    || is_hidden(c)
                    || is_undefined(c)
                    || is_mark(c) && (self.escaped || self.marks > MAX_MARKS)
            }
        }
    }

    /// Whether a line could begin here.
    fn at_start(&self) -> bool {
        self.before.is_empty() && self.form != EscapeForm::Quoted
    }

    /// Whether lookalikes of the punctuation around the text are escaped. A message contains its author's own punctuation.
    fn is_exact(&self) -> bool {
        self.form != EscapeForm::Message
    }

    /// Whether a colon here could end a label.
    fn is_label(&self, next: Option<char>) -> bool {
        self.is_exact() && next.is_none_or(char::is_whitespace)
    }

    fn imitates_punctuation(&self, c: char, previous: Option<char>, next: Option<char>) -> bool {
        looks_like_punctuation(c)
            || is_single_quote(Some(c)) && (is_single_quote(previous) || is_single_quote(next))
    }

    fn is_after_space(&self, previous: Option<char>) -> bool {
        self.at_start() || previous == Some(' ') && !self.escaped
    }

    fn is_list(&self, next: Option<char>) -> bool {
        self.at_start() && !is_alphanumeric(next)
    }

    fn is_number_of_list(&self, next: Option<char>) -> bool {
        let digits = self.before.len();
        self.form != EscapeForm::Quoted
            && matches!(next, None | Some(' '))
            && (1..=9).contains(&digits)
            && self.before.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn is_mass_mention(&self) -> bool {
        ["everyone", "here", "channel", "group"]
            .iter()
            .any(|word| self.after.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    }

    /// Whether the colon begins a short code such as `:tada:`. Of the digit-only codes only two are emoji; the others are times.
    fn is_emoji(&self) -> bool {
        let of_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-');
        match self.after.split_once(':') {
            Some((code, _)) if !code.is_empty() && code.chars().all(of_code) => {
                matches!(code, "100" | "1234") || !code.bytes().all(|byte| byte.is_ascii_digit())
            }
            _ => false,
        }
    }

    fn is_after_www(&self) -> bool {
        let mut before = self.before.bytes().rev();
        before.by_ref().take(3).filter(|byte| matches!(byte, b'w' | b'W')).count() == 3
    }
}

fn is_alphanumeric(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

/// Two in a row look like a double quote.
fn is_single_quote(c: Option<char>) -> bool {
    c.is_some_and(|c| {
        matches!(c, '\'' | '`' | '´' | '\u{2b9}' | '\u{2bb}'..='\u{2bf}' | '\u{2c8}' | '\u{2ca}' | '\u{2cb}' | '\u{2018}'..='\u{201b}'
            | '\u{2032}' | '\u{2035}' | '\u{a78c}' | '\u{ff07}' | '\u{ff40}')
    })
}

/// Characters beyond ASCII that look like double quotes, colons or square brackets.
fn looks_like_punctuation(c: char) -> bool {
    matches!(c,
        // Double quotes.
        '\u{2ba}' | '\u{2dd}' | '\u{2ee}' | '\u{2f6}' | '\u{5f2}' | '\u{5f4}' | '\u{1cd3}' | '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2034}'
        | '\u{2036}' | '\u{2037}' | '\u{2057}' | '\u{275d}' | '\u{275e}' | '\u{2760}' | '\u{3003}' | '\u{301d}'..='\u{301f}'
        | '\u{ff02}' | '\u{1f676}'..='\u{1f678}'
        // Colons.
        | '\u{2d0}' | '\u{2f8}' | '\u{589}' | '\u{5c3}' | '\u{703}' | '\u{704}' | '\u{16ec}' | '\u{1803}' | '\u{1809}' | '\u{205a}'
        | '\u{2236}' | '\u{a4fd}' | '\u{a789}' | '\u{fe13}' | '\u{fe30}' | '\u{fe55}' | '\u{ff1a}'
        // Square brackets.
        | '\u{2045}' | '\u{2046}' | '\u{23a1}'..='\u{23a6}' | '\u{27e6}' | '\u{27e7}' | '\u{301a}' | '\u{301b}' | '\u{fe47}' | '\u{fe48}'
        | '\u{ff3b}' | '\u{ff3d}')
}

/// Combining marks drawn over or under the previous character, except those that belong to a script.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Characters without a defined shape: private use, and noncharacters.
fn is_undefined(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..)
        || matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}
