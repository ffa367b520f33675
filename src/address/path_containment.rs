//! `inside`: lexical path containment, protection against path traversal.
//!
//! The path is interpreted as a POSIX kernel would, except that symlinks are not resolved: `.`, `..`, `//` and a trailing `/` are
//! normalised, and `..` at the root stays at the root. A path that a program may rewrite first is undecided: shell expansion (`$HOME`,
//! `~`, `*`, `{a,b}`, backquotes), Windows syntax (`%TEMP%`, backslashes, `PROGRA~1`), URL decoding (percent-escapes, `;`, `#`),
//! look-alike characters, and names that differ only in case.

use super::Undecided;
use crate::safe_text::is_hidden;

/// A directory, with the base for relative paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    segments: Vec<String>,
    base: Option<Vec<String>>,
}

impl Directory {
    /// Parses the operand of `inside` and, if set, of `base`.
    ///
    /// # Errors
    /// Returns a message if `base` is not absolute, if `text` is relative and there is no base, or if the directory has anything that
    /// would be undecided in a path (`~`, backslashes, drives, URLs, percent-escapes, control characters).
    ///
    /// # Examples
    ///
    /// ```
    /// use callgate::address::Directory;
    /// let data = Directory::parse("/srv/data", None).unwrap();
    /// assert_eq!(data.contains("/srv/data/a.txt"), Ok(true));
    /// assert_eq!(data.contains("/srv/data/../secret"), Ok(false));
    /// assert!(data.contains("%2e%2e/secret").is_err());
    /// ```
    pub fn parse(text: &str, base: Option<&str>) -> Result<Self, String> {
        let read = |text: &str, from: Option<&[String]>| {
            normalize_path(text, from).map_err(|Undecided(reason)| {
                format!("`{}` is not a valid directory: {reason}", crate::safe_text::escape_controls(text))
            })
        };
        let base = base.map(|base| read(base, None)).transpose()?;
        Ok(Self { segments: read(text, base.as_deref())?, base })
    }

    /// The segments of the directory, and those of the base for relative paths.
    pub(super) fn parts(&self) -> (&[String], Option<&[String]>) {
        (&self.segments, self.base.as_deref())
    }

    /// Whether a path is this directory or is under it.
    ///
    /// # Errors
    /// Returns [`Undecided`] if programs may interpret the path differently.
    pub fn contains(&self, path: &str) -> Result<bool, Undecided> {
        let path = normalize_path(path, self.base.as_deref())?;
        for (index, expected) in self.segments.iter().enumerate() {
            match path.get(index) {
                Some(found) if found == expected => {}
                // Some file systems treat different encodings of an accented letter as one name.
                Some(found) if !found.is_ascii() && !expected.is_ascii() => {
                    return Err(Undecided("two non-ASCII names can be different encodings of one name"));
                }
                Some(found) if found.eq_ignore_ascii_case(expected) => {
                    return Err(Undecided(
                        "names that differ only in case are the same name on some systems",
                    ));
                }
                Some(found) if found.contains(is_shell_syntax) => {
                    return Err(Undecided("the path has characters that a shell rewrites"));
                }
                Some(found) if found.contains(is_compatibility_letter) => {
                    return Err(Undecided("the path has letters that some programs convert to ASCII"));
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Returns the segments of the absolute path.
pub(super) fn normalize_path(text: &str, base: Option<&[String]>) -> Result<Vec<String>, Undecided> {
    reject_ambiguous(text)?;
    let mut segments = match (text.starts_with('/'), base) {
        (true, _) => Vec::new(),
        (false, Some(base)) => base.to_vec(),
        (false, None) => return Err(Undecided("the path is relative, and there is no `base`")),
    };
    for segment in text.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name.to_owned()),
        }
    }
    Ok(segments)
}

/// Rejects paths that programs interpret differently.
fn reject_ambiguous(text: &str) -> Result<(), Undecided> {
    if text.is_empty() {
        return Err(Undecided("the path is empty"));
    }
    if text.trim() != text {
        return Err(Undecided("the path has leading or trailing white space"));
    }
    if let Some(reason) = text.chars().find_map(ambiguous_char_reason) {
        return Err(Undecided(reason));
    }
    if text.starts_with("//") {
        return Err(Undecided("the path starts with two slashes, which name a network host on some systems"));
    }
    if text.starts_with(['=', '#']) {
        return Err(Undecided("the path starts with a character that a shell rewrites"));
    }
    if has_tilde_expansion(text) {
        return Err(Undecided(
            "the path has a `~`, which stands for a home directory or a Windows short name",
        ));
    }
    if has_percent_expansion(text) {
        return Err(Undecided("the path has a percent-escape or a `%` variable, which some programs expand"));
    }
    if text.matches('!').count() > 1 {
        return Err(Undecided("the path has a variable between `!`, which some shells expand"));
    }
    if text.split_once('#').is_some_and(|(_, fragment)| fragment.split('/').any(|segment| segment == "..")) {
        return Err(Undecided("the path has a `#`, which starts a URL fragment"));
    }
    // `C:/x`, `file:///x` and `file:x` are a drive or a URL, not a relative path.
    if text.split('/').next().is_some_and(|first| first.contains(':')) {
        return Err(Undecided("the path starts with a drive or a URL scheme"));
    }
    // Windows drops trailing dots and spaces, shells drop quotes and split at spaces, and `+` is a space in some URLs, so `...`,
    // `.. ` and `.'.'` can mean `..`.
    if text.split('/').any(may_mean_parent) {
        return Err(Undecided("the path has a segment that some programs treat as `..`"));
    }
    Ok(())
}

fn may_mean_parent(segment: &str) -> bool {
    let is_dropped = |c: char| matches!(c, ' ' | '+' | '\'' | '^');
    let is_dots = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte == b'.');
    if matches!(segment, "." | "..") || !segment.contains(|c: char| c == '.' || is_dropped(c)) {
        return false;
    }
    let plain: String = segment.chars().filter(|c| !is_dropped(*c)).collect();
    plain.is_empty() && !segment.is_empty() || is_dots(&plain) || segment.split(is_dropped).any(is_dots)
}

/// Whether a segment starts with `~`, as in `~user`, or has a short name, as in `PROGRA~1`.
fn has_tilde_expansion(text: &str) -> bool {
    text.split('/').any(|segment| {
        let before_digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        segment.starts_with('~') || segment.split('~').skip(1).any(before_digit)
    })
}

/// Whether the text has `%2e`, the older `%u002e`, `%TEMP%`, or a batch parameter such as `%1` or `%~d0`.
fn has_percent_expansion(text: &str) -> bool {
    let is_parameter = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '~' | '*'));
    text.matches('%').count() > 1 || has_percent_escape(text) || text.split('%').skip(1).any(is_parameter)
}

/// Whether a shell can remove this character from a name, or group by it, without the name becoming `..`.
pub(super) fn is_shell_syntax(c: char) -> bool {
    matches!(c, '\'' | '^' | '(' | ')' | '&' | '!' | '#' | '%' | '=' | ',' | '+' | ' ')
}

fn ambiguous_char_reason(c: char) -> Option<&'static str> {
    match c {
        '\\' => Some("the path has a backslash, which is a separator on some systems"),
        '$' | '`' => Some("the path has a variable or a command, which a shell expands"),
        '*' | '?' | '[' | ']' | '{' | '}' => Some("the path has a pattern, which a shell expands"),
        '<' | '>' | '|' | ';' | '"' => Some("the path has a character that ends a name in a shell or a URL"),
        c if c.is_control() => Some("the path has a control character"),
        c if is_hidden(c) => Some("the path has an invisible character"),
        // Compatibility normalisation, or conversion to a legacy character set, turns these into separators, dots, `~` or `%`.
        '\u{2044}'
        | '\u{2215}'
        | '\u{2216}'
        | '\u{29f5}'
        | '\u{29f8}'
        | '\u{29f9}'
        | '\u{ff0f}'
        | '\u{ff3c}'
        | '\u{fe68}'
        | '\u{2024}'..='\u{2026}'
        | '\u{fe19}'
        | '\u{fe30}'
        | '\u{fe52}'
        | '\u{ff0e}'
        | '\u{ff61}'
        | '\u{3002}'
        | '\u{ff05}'
        | '\u{fe6a}'
        | '\u{ff5e}'
        | '\u{2100}'
        | '\u{2101}'
        | '\u{2105}'
        | '\u{2106}'
        | '\u{a5}'
        | '\u{20a9}'
        | '\u{ffe5}'
        | '\u{ffe6}'
        | '\u{ff1a}'
        | '\u{fe55}'
        | '\u{ff02}'
        | '\u{ff04}'
        | '\u{ff0a}'
        | '\u{ff1b}'
        | '\u{ff1f}'
        | '\u{ff3b}'
        | '\u{ff3d}'
        | '\u{ff40}'
        | '\u{ff5b}'
        | '\u{ff5d}'
        | '\u{fe54}'
        | '\u{fe56}'
        | '\u{fe5b}'
        | '\u{fe5c}'
        | '\u{fe61}'
        | '\u{fe69}'
        | '\u{2488}'..='\u{249b}' => Some(
            "the path has a character that some programs convert to a special one, such as a separator or a dot",
        ),
        char::REPLACEMENT_CHARACTER => Some("the path has a character that was lost in a conversion"),
        _ => None,
    }
}

/// Whether this is a full-width, mathematical, enclosed, superscript or old-style letter or digit.
fn is_compatibility_letter(c: char) -> bool {
    matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' | '\u{2460}'..='\u{24ff}' | '\u{2070}'..='\u{209c}'
        | '\u{2100}'..='\u{218b}' | '\u{fb00}'..='\u{fb06}' | '\u{1f100}'..='\u{1f16f}' | '\u{1d2c}'..='\u{1d6a}'
        | '\u{17f}' | '\u{aa}' | '\u{ba}' | '\u{b2}' | '\u{b3}' | '\u{b9}')
}

/// Whether the text has `%2e` or the older `%u002e`.
fn has_percent_escape(text: &str) -> bool {
    text.split('%').skip(1).any(|rest| {
        let digits = rest.strip_prefix(['u', 'U']).unwrap_or(rest).bytes().take(2);
        digits.filter(u8::is_ascii_hexdigit).count() == 2
    })
}

#[cfg(test)]
mod tests;
