//! Scanner for the text of a query: text → token positions that the parser's model drops (members, functions, decimals). Rejects what
//! the parser's grammar accepts although RFC 9535 does not.

use std::ops::Range;

use super::PathError;

/// The maximum length of one query, in bytes.
const MAX_TEXT: usize = 4096;
/// The maximum nesting of brackets and parentheses. The parser backtracks; its worst case is exponential in this depth.
const MAX_NESTING: usize = 8;

/// The white space that RFC 9535 allows between tokens.
const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// The token positions of a valid query, in the order of the text, which is also the order of its syntax tree.
#[derive(Debug, Default)]
pub(super) struct TokenPositions {
    /// For every `$`, the position of the member that it reads, or of the `$` itself.
    pub(super) roots: Vec<Range<usize>>,
    /// Names of functions.
    pub(super) functions: Vec<Range<usize>>,
    /// Numbers with a fraction or an exponent.
    pub(super) decimals: Vec<Range<usize>>,
    /// The first whole number outside the range of exact integers, if any.
    pub(super) huge_number: Option<Range<usize>>,
}

pub(super) fn scan(text: &str) -> Result<TokenPositions, PathError> {
    if text.len() > MAX_TEXT {
        return Err(PathError::new(format!("the path is longer than {MAX_TEXT} bytes"), 0..text.len()));
    }
    if !text.starts_with('$') {
        return Err(PathError::new(format!("`{text}` is not a path: a path starts with `$`"), 0..text.len())
            .with_help(format!("write `$.{}`", text.trim().trim_start_matches('.'))));
    }
    let trimmed = text.trim_end_matches(WHITE_SPACE);
    if trimmed.len() < text.len() {
        return Err(PathError::new("the path ends with white space", trimmed.len()..text.len()));
    }
    Scanner { text, at: 0, positions: TokenPositions::default(), nesting: 0, member_of_root: false }.run()
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    positions: TokenPositions,
    nesting: usize,
    /// Whether the next name or string, if nothing else comes before it, is the member that the last `$` reads.
    member_of_root: bool,
}

impl Scanner<'_> {
    fn run(mut self) -> Result<TokenPositions, PathError> {
        while let Some(c) = self.rest().chars().next() {
            let start = self.at;
            match c {
                '\'' | '"' => self.scan_string(c),
                _ if is_name_start(c) => self.scan_name()?,
                '-' | '0'..='9' => self.scan_number(),
                _ => self.at += c.len_utf8(),
            }
            match c {
                '$' => self.positions.roots.push(start..self.at),
                '\'' | '"' => self.record_root_member(start),
                _ if is_name_start(c) => self.record_root_member(start),
                '[' | '(' => self.open_bracket(start)?,
                ']' | ')' => self.nesting = self.nesting.saturating_sub(1),
                _ => {}
            }
            if !matches!(c, '.' | '[') && !c.is_whitespace() {
                self.member_of_root = c == '$';
            }
        }
        Ok(self.positions)
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    }

    fn record_root_member(&mut self, start: usize) {
        if self.member_of_root
            && let Some(root) = self.positions.roots.last_mut()
        {
            *root = start..self.at;
        }
    }

    fn scan_string(&mut self, quote: char) {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let ends = !escaped && *c == quote;
            escaped = !escaped && *c == '\\';
            ends
        });
        self.at += end.map_or(rest.len(), |(index, c)| index + c.len_utf8());
    }

    fn scan_name(&mut self) -> Result<(), PathError> {
        let start = self.at;
        self.skip_while(|c| is_name_start(c) || c.is_ascii_digit());
        let range = start..self.at;
        let name = self.text.get(range.clone()).unwrap_or_default();
        // The parser trims such characters from a name and would read another member than the text names.
        if name.contains(char::is_whitespace) {
            return Err(PathError::new(format!("`{name}` contains white space"), range)
                .with_help("write the name in brackets and quotes: `['…']`"));
        }
        let behind = self.rest().trim_start_matches(WHITE_SPACE);
        // The parser skips white space within a name and would read `a b` as one name.
        if self.rest().len() > behind.len() && behind.starts_with(|c| is_name_start(c) || c.is_ascii_digit())
        {
            return Err(PathError::new(
                format!("unexpected white space after `{name}`"),
                self.at..self.at + 1,
            )
            .with_help("write a name that contains white space in brackets and quotes: `['…']`"));
        }
        if self.rest().starts_with('(') {
            self.positions.functions.push(range);
        }
        Ok(())
    }

    fn scan_number(&mut self) {
        let start = self.at;
        self.at += 1;
        self.skip_while(|c| matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'));
        let range = start..self.at;
        let number = self.text.get(range.clone()).unwrap_or_default();
        if number.contains(['.', 'e', 'E']) {
            self.positions.decimals.push(range.clone());
        }
        let whole = number.split(['.', 'e', 'E']).next().unwrap_or_default();
        if whole.parse::<i64>().map_or(whole.len() > 1, |whole| whole.unsigned_abs() >= 1 << 53) {
            self.positions.huge_number.get_or_insert(range);
        }
    }

    fn open_bracket(&mut self, start: usize) -> Result<(), PathError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(PathError::new(
                format!("brackets and parentheses nest deeper than {MAX_NESTING}"),
                start..self.at,
            ));
        }
        Ok(())
    }
}

fn is_name_start(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}
