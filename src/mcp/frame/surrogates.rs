//! Halves of characters: escapes of UTF-16 surrogates that are no pair. Writers of JSON that count UTF-16 cut texts there, and no
//! text of ours can hold one.

use std::borrow::Cow;

/// The length of an escape of four digits.
const ESCAPE: usize = r"\uffff".len();

/// JSON text in which `\ufffd` stands for each escape of half a character; lengths and all else stay as they are.
pub(super) fn replaced(text: &str) -> Cow<'_, str> {
    let mut whole = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        at = match surrogate(text, escape) {
            Some(Half::First) if surrogate(text, escape + ESCAPE) == Some(Half::Second) => {
                escape + 2 * ESCAPE
            }
            Some(_) => {
                whole.push_str(text.get(kept..escape).unwrap_or_default());
                whole.push_str(r"\ufffd");
                kept = escape + ESCAPE;
                kept
            }
            // What a backslash stands before begins no escape of its own.
            None => {
                escape
                    + 1
                    + text.get(escape + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
            }
        };
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    whole.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(whole)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

/// The half that the escape at a place is of.
fn surrogate(text: &str, at: usize) -> Option<Half> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix(r"\u")?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    match u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else_is() {
        let cases = [
            (r#""hello \ud83d""#, r#""hello \ufffd""#),
            (r#""\uD83D\uDE00\uD800""#, r#""\uD83D\uDE00\ufffd""#),
            (r#""\udE00\uD83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\ud83d \ude00""#, r#""\ufffd \ufffd""#),
            (r#""\ud83dude00""#, r#""\ufffdude00""#),
            (r#""\ud83d\\ude00""#, r#""\ufffd\\ude00""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#"{"\udfff":"\\"}"#, r#"{"\ufffd":"\\"}"#),
            (r"\ud800", r"\ufffd"),
        ];
        for (text, expected) in cases {
            assert_eq!(replaced(text), expected, "{text}");
        }
        for text in [
            "",
            "plain",
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#""\\\\ud83d""#,
            r#""\ud7ff\ue000""#,
            r#""\u+d80""#,
            r#""\ud80""#,
            r#""\Ud800""#,
            r#""\é\ude""#,
            r"\",
            r"\u",
            r"\ud83",
            r#""\ud83d\ude00\"#,
            "\"\\u\u{e9}d8\"",
        ] {
            assert!(matches!(replaced(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
