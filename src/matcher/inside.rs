//! `inside`: whether a path lies under a directory, by its text alone.
//!
//! The path is judged as a program on a POSIX system hands it to the kernel: symlinks not resolved, `.`, `..`, `//` and a trailing `/`
//! normalised away, `..` at the root stays at the root. Text that some program on the way may rewrite first is undecided: what a
//! shell expands (`$HOME`, `~`, `*`, `{a,b}`, backquotes), what Windows does (`%TEMP%`, backslashes, `PROGRA~1`), what a URL decoder
//! does (percent-escapes, `;`, `#`), look-alike characters, and names that differ in case only.

use super::Undecided;
use crate::text::is_hidden;

/// A directory, with the one that relative paths start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    segments: Vec<String>,
    base: Option<Vec<String>>,
}

impl Directory {
    /// Reads the operand of `inside` and, where there is one, of `base`.
    ///
    /// `base` must be absolute; `text` too, unless there is a base to resolve it against. Everything that would be
    /// undecided as a path (`~`, backslashes, drives, URLs, percent-escapes, control characters) is an error here.
    ///
    /// ```
    /// use callgate::matcher::Directory;
    /// let data = Directory::parse("/srv/data", None).unwrap();
    /// assert_eq!(data.contains("/srv/data/a.txt"), Ok(true));
    /// assert_eq!(data.contains("/srv/data/../secret"), Ok(false));
    /// assert!(data.contains("%2e%2e/secret").is_err());
    /// ```
    pub fn parse(text: &str, base: Option<&str>) -> Result<Self, String> {
        let read = |text: &str, from: Option<&[String]>| {
            resolve(text, from).map_err(|Undecided(reason)| {
                format!("`{}` is no directory to test: {reason}", crate::text::inert(text))
            })
        };
        let base = base.map(|base| read(base, None)).transpose()?;
        Ok(Self { segments: read(text, base.as_deref())?, base })
    }

    /// Whether a path is this directory or lies under it.
    pub fn contains(&self, path: &str) -> Result<bool, Undecided> {
        let path = resolve(path, self.base.as_deref())?;
        for (index, expected) in self.segments.iter().enumerate() {
            match path.get(index) {
                Some(found) if found == expected => {}
                // Some file systems take several spellings of an accented letter for one name.
                Some(found) if !found.is_ascii() && !expected.is_ascii() => {
                    return Err(Undecided("names that are not ASCII can be one name in two spellings"));
                }
                Some(found) if found.eq_ignore_ascii_case(expected) => {
                    return Err(Undecided("names that differ in case only are one name on some systems"));
                }
                Some(found) if found.contains(is_shell_syntax) => {
                    return Err(Undecided("the path has characters that a shell rewrites"));
                }
                Some(found) if found.contains(is_compatibility_letter) => {
                    return Err(Undecided("the path has letters that some programs turn into plain ones"));
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The segments of the absolute path that a text names.
fn resolve(text: &str, base: Option<&[String]>) -> Result<Vec<String>, Undecided> {
    check(text)?;
    let mut segments = match (text.starts_with('/'), base) {
        (true, _) => Vec::new(),
        (false, Some(base)) => base.to_vec(),
        (false, None) => return Err(Undecided("the path is relative, and `base` does not say to what")),
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

/// Refuses text whose meaning depends on who reads it.
fn check(text: &str) -> Result<(), Undecided> {
    if text.is_empty() {
        return Err(Undecided("the path is empty"));
    }
    if text.trim() != text {
        return Err(Undecided("the path has white space around it"));
    }
    if let Some(reason) = text.chars().find_map(misleading) {
        return Err(Undecided(reason));
    }
    if text.starts_with("//") {
        return Err(Undecided("two slashes at the start name another computer on some systems"));
    }
    if text.starts_with(['=', '#']) {
        return Err(Undecided("the path starts with a character that a shell rewrites"));
    }
    if has_tilde_expansion(text) {
        return Err(Undecided("`~` means somebody's home directory, or a short name of Windows"));
    }
    if has_percent_expansion(text) {
        return Err(Undecided("the path has a percent-escape or a variable, which some programs expand"));
    }
    if text.matches('!').count() > 1 {
        return Err(Undecided("the path has a variable between `!`, which some shells expand"));
    }
    if text.split_once('#').is_some_and(|(_, fragment)| fragment.split('/').any(|segment| segment == "..")) {
        return Err(Undecided("the path has a `#`, behind which a URL ends"));
    }
    // `C:/x`, `file:///x`, `file:x`: a drive or a URL, not a relative path.
    if text.split('/').next().is_some_and(|first| first.contains(':')) {
        return Err(Undecided("the path starts with a drive or a URL scheme"));
    }
    // Windows drops trailing dots and spaces, shells drop quotes and split at spaces, and `+` is a space in some URLs: `...`, `.. `
    // and `.'.'` can mean `..`.
    if text.split('/').any(hides_dots) {
        return Err(Undecided("the path has a segment that some programs take for `..`"));
    }
    Ok(())
}

fn hides_dots(segment: &str) -> bool {
    let is_dropped = |c: char| matches!(c, ' ' | '+' | '\'' | '^');
    let is_dots = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte == b'.');
    if matches!(segment, "." | "..") || !segment.contains(|c: char| c == '.' || is_dropped(c)) {
        return false;
    }
    let plain: String = segment.chars().filter(|c| !is_dropped(*c)).collect();
    plain.is_empty() && !segment.is_empty() || is_dots(&plain) || segment.split(is_dropped).any(is_dots)
}

/// `~user` at the start of a segment, and `PROGRA~1`.
fn has_tilde_expansion(text: &str) -> bool {
    text.split('/').any(|segment| {
        let before_digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        segment.starts_with('~') || segment.split('~').skip(1).any(before_digit)
    })
}

/// `%2e`, the older `%u002e`, `%TEMP%`, and `%1` or `%~d0` of batch files.
fn has_percent_expansion(text: &str) -> bool {
    let is_parameter = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '~' | '*'));
    text.matches('%').count() > 1 || has_percent_escape(text) || text.split('%').skip(1).any(is_parameter)
}

/// What a shell can take out of a name, or group in it, without making `..` of it.
fn is_shell_syntax(c: char) -> bool {
    matches!(c, '\'' | '^' | '(' | ')' | '&' | '!' | '#' | '%' | '=' | ',' | '+' | ' ')
}

fn misleading(c: char) -> Option<&'static str> {
    match c {
        '\\' => Some("the path has a backslash, which is a separator or a letter"),
        '$' | '`' => Some("the path has a variable or a command, which a shell expands"),
        '*' | '?' | '[' | ']' | '{' | '}' => Some("the path has a pattern, which a shell expands"),
        '<' | '>' | '|' | ';' | '"' => {
            Some("the path has a character that a shell or a URL takes for the end of a name")
        }
        c if c.is_control() => Some("the path has a control character"),
        c if is_hidden(c) => Some("the path has an invisible character"),
        // Compatibility normalisation, or a conversion to an older character set, makes separators, dots, `~` or `%` of
        // these.
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
            "the path has a character that some programs turn into one with a meaning, such as a separator or a dot",
        ),
        char::REPLACEMENT_CHARACTER => Some("the path has a character that was lost in a conversion"),
        _ => None,
    }
}

/// Full-width, mathematical, enclosed, raised and old-style letters and digits.
fn is_compatibility_letter(c: char) -> bool {
    matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' | '\u{2460}'..='\u{24ff}' | '\u{2070}'..='\u{209c}'
        | '\u{2100}'..='\u{218b}' | '\u{fb00}'..='\u{fb06}' | '\u{1f100}'..='\u{1f16f}' | '\u{1d2c}'..='\u{1d6a}'
        | '\u{17f}' | '\u{aa}' | '\u{ba}' | '\u{b2}' | '\u{b3}' | '\u{b9}')
}

/// `%2e`, or the older `%u002e`.
fn has_percent_escape(text: &str) -> bool {
    text.split('%').skip(1).any(|rest| {
        let digits = rest.strip_prefix(['u', 'U']).unwrap_or(rest).bytes().take(2);
        digits.filter(u8::is_ascii_hexdigit).count() == 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn judges_plain_paths_and_nothing_else() {
        let data = Directory::parse("/srv/data/", None).unwrap();
        for (path, expected) in [
            ("/srv/data", Some(true)),
            ("/srv/data/", Some(true)),
            ("/srv/data/a/b.txt", Some(true)),
            ("//srv/data/a", None),
            ("/srv///data//a", Some(true)),
            ("/srv/./data/./a", Some(true)),
            ("/srv/data/x/../a", Some(true)),
            ("/../../srv/data/a", Some(true)),
            ("/etc/../srv/data/a", Some(true)),
            ("/srv/data/..hidden", Some(true)),
            ("/srv/data/100%/a:b", Some(true)),
            ("/srv/data/José", Some(true)),
            ("/srv/database", Some(false)),
            ("/srv/data/..", Some(false)),
            ("/srv/data/../secret", Some(false)),
            ("/srv/data/a/../../secret", Some(false)),
            ("/srv/data/../data2/a", Some(false)),
            ("/srv/DATA/a", None),
            ("/srv/data/DATA", Some(true)),
            ("/srv/datá", Some(false)),
            ("/srv", Some(false)),
            ("/srv/報告/a", Some(false)),
            ("/srv/data/報告（最終）", Some(true)),
            ("/srv/ｄata/a", None),
            ("/", Some(false)),
            ("", None),
            ("srv/data/a", None),
            ("./a", None),
            ("../srv/data", None),
            ("~/a", None),
            ("~root/a", None),
            (" /srv/data/a", None),
            ("/srv/data/a ", None),
            ("/srv/data/a\n", None),
            ("/srv/data/\0/../../etc", None),
            ("/srv/data/%2e%2e/etc", None),
            ("/srv/data/%2E./etc", None),
            ("/srv/data/..%2fetc", None),
            ("/srv/data/%252e%252e/etc", None),
            ("/srv/data/%u002e%u002e/etc", None),
            ("/srv/data/%c0%ae%c0%ae/etc", None),
            ("/srv/data/..\\..\\etc", None),
            ("C:/srv/data", None),
            ("C:\\srv\\data", None),
            ("file:///srv/data/a", None),
            ("file:/srv/data/a", None),
            ("https://x/srv/data", None),
            ("/srv/data/\u{ff0f}etc", None),
            ("/srv/data/..\u{2215}etc", None),
            ("/srv/data/\u{2024}\u{2024}/etc", None),
            ("/srv/data/\u{2025}/etc", None),
            ("/srv/data/\u{ff0e}\u{ff0e}/etc", None),
            ("/srv/data/.\u{200b}./etc", None),
            ("/srv/data/.../etc", None),
            ("/srv/data/.. /etc", None),
            ("/srv/data/a\u{202e}txt", None),
            ("/srv/data/\u{fffd}", None),
        ] {
            assert_eq!(data.contains(path).ok(), expected, "{path:?}");
        }
    }

    /// Every spelling that a shell, Windows or a decoder of URLs makes another path of.
    #[test]
    fn what_is_expanded_somewhere_is_undecided() {
        let directories = [
            Directory::parse("/srv/data", None).unwrap(),
            Directory::parse(".", Some("/srv/data")).unwrap(),
            Directory::parse("/etc", Some("/srv/data")).unwrap(),
        ];
        for part in [
            "$HOME",
            "${HOME}",
            "$(pwd)",
            "`pwd`",
            "$X/..",
            "$1",
            "${IFS}",
            "$env:TEMP",
            "$'..'",
            "%USERPROFILE%",
            "%TEMP:~0,3%",
            "%1",
            "%~dp0",
            "%*",
            "!TEMP!",
            "~",
            "~user",
            "~+",
            "PROGRA~1",
            "*",
            "?",
            ".?",
            ".*",
            "[.].",
            "{.,.}.",
            "{a,..}",
            "@(..)|x",
            "..;",
            "..;a",
            "\"..\"",
            "\"",
            "'..'",
            ".'.'",
            ".''.",
            "^.^.",
            ".^.",
            "..+",
            "+..",
            ".. ",
            "a ..",
            " ..",
            "..%2f",
            "%2e%2e",
            "%252e",
            "<x",
            ">x",
            "|x",
            "a;b",
            "..\\",
            "a\\..",
            "＄HOME",
            "＊",
            "？",
            "｀",
            "［a］",
            "｛a｝",
            "；",
            "．．",
            "…",
            "~1",
            "#/..",
            "#a/../..",
        ] {
            for path in [
                format!("/srv/data/{part}/x"),
                format!("/{part}/x"),
                format!("{part}/x"),
                format!("a/{part}/x"),
                format!("/srv/data/{part}"),
            ] {
                for directory in &directories {
                    assert!(directory.contains(&path).is_err(), "{path:?} {directory:?}");
                }
            }
        }
        for path in [
            "=ls",
            "#x",
            "//host/share",
            "/et(c)/passwd",
            "/ETC/passwd",
            "/e'tc'/passwd",
            "/et^c/passwd",
            "/etc /x",
            "/etc&/x",
        ] {
            assert!(directories[2].contains(path).is_err(), "{path:?}");
        }
        // Names that people use.
        for name in [
            "a.txt",
            "a b.txt",
            "Bob's file.txt",
            "(group)",
            "Copy (2).txt",
            "R&D",
            "C#",
            "100%",
            "a+b",
            "c++",
            "x=1",
            "a,b",
            "@types",
            "a@b",
            "-v",
            "file~",
            "Hi!.txt",
            "a:b",
            "..hidden",
            "a..b",
            "報告（最終）",
            "x^2",
            "José",
        ] {
            assert_eq!(directories[0].contains(&format!("/srv/data/{name}/x")), Ok(true), "{name:?}");
        }
    }

    #[test]
    fn the_root_contains_every_absolute_path() {
        let root = Directory::parse("/", None).unwrap();
        assert_eq!((root.contains("/a/../.."), root.contains("/etc/passwd")), (Ok(true), Ok(true)));
        assert!(root.contains("a").is_err());
    }

    #[test]
    fn relative_paths_start_from_the_base() {
        let work = Directory::parse("out", Some("/home/agent")).unwrap();
        for (path, expected) in [
            ("out/a", Some(true)),
            ("./out", Some(true)),
            ("/home/agent/out/a", Some(true)),
            ("a", Some(false)),
            (".", Some(false)),
            ("out/../../secret", Some(false)),
            ("../../../../home/agent/out", Some(true)),
            ("~/out", None),
            ("out\\..", None),
            ("out/%2e%2e", None),
            ("file:out", None),
            ("c:out", None),
        ] {
            assert_eq!(work.contains(path).ok(), expected, "{path:?}");
        }
    }

    #[test]
    fn one_name_in_two_spellings_is_undecided() {
        let directory = Directory::parse("/srv/daté", None).unwrap();
        assert_eq!(directory.contains("/srv/daté/a"), Ok(true));
        assert!(directory.contains("/srv/date\u{301}/a").is_err());
        assert_eq!(directory.contains("/srv/date/a"), Ok(false));
    }

    #[test]
    fn operands_are_plain_absolute_directories() {
        for (text, base) in [
            ("srv", None),
            ("", None),
            ("~", None),
            ("C:/x", None),
            ("/a\\b", None),
            ("/a\0", None),
            ("file:///a", None),
            ("/%61", None),
            ("/a", Some("b")),
            ("/$HOME", None),
            ("//host/share", None),
            ("/a*", None),
            ("a", Some("~")),
        ] {
            assert!(Directory::parse(text, base).is_err(), "{text:?} {base:?}");
        }
    }

    /// Walks a tree as a kernel without symlinks does.
    fn reference(path: &str) -> Vec<&str> {
        let mut place = Vec::new();
        for step in path.split('/').filter(|step| !step.is_empty() && *step != ".") {
            if step == ".." {
                place.truncate(place.len().saturating_sub(1));
            } else {
                place.push(step);
            }
        }
        place
    }

    proptest! {
        #[test]
        fn agrees_with_a_walk_through_the_tree(path in "(/|/a|/b|/\\.\\.|/\\.|/\\.\\.\\.|a|b|/ab|\\.\\.|%2e|~| |\\\\){0,12}") {
            let directory = Directory::parse("/a/b", None).unwrap();
            if let Ok(inside) = directory.contains(&path) {
                prop_assert_eq!(inside, reference(&path).starts_with(&["a", "b"]), "{}", path);
            }
        }

        #[test]
        fn never_panics(text in "\\PC*|[./~%:a\\\\\u{0}-\u{20}]*", base in "\\PC*") {
            let _ = Directory::parse(&text, Some(&base));
            let directory = Directory::parse("/a", Some("/b")).unwrap();
            let _ = directory.contains(&text);
        }
    }
}
