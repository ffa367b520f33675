//! Properties of tokens in any text.

use proptest::prelude::*;

use super::*;

/// In quadratic time, this would take hours.
#[test]
fn long_hostile_texts_are_read_in_linear_time() {
    let hostile = [
        "a@",
        "@a.b",
        "a://",
        "//:@",
        "a.b/",
        "https://a.b(",
        "(",
        "\"a",
        "\"a\" ",
        "'a ",
        "1",
        "1 ",
        "1,",
        "1 234 ",
        "DE89 ",
        "DE89370400440532013000",
        "-",
        "\u{200b}",
        "e\u{301}",
        "\u{301}",
        "a's ",
        "A$1",
        "«a",
        "./",
    ];
    for part in hostile {
        let text = part.repeat(100_000 / part.len());
        let source = Value::from(text.as_str());
        for kind in TokenKind::ALL {
            let _ = TokenFormat::new(kind).is_mentioned(TokenSubject::Text(&text), [&source]);
        }
        let _ = TokenFormat::new(TokenKind::Number).extract_amounts(&text);
    }
}

/// Subjects that are one token of a kind.
fn token() -> impl Strategy<Value = (TokenKind, String)> {
    let of = |kind, pattern| {
        proptest::string::string_regex(pattern).unwrap().prop_map(move |text: String| (kind, text))
    };
    prop_oneof![
        of(TokenKind::Email, "[a-zа-яα-ω0-9_][a-z0-9.+'-]{0,8}@[a-zа-я0-9-]{1,6}\\.[a-z.]{2,6}"),
        of(TokenKind::Url, "(https?|ftp)://[a-z0-9.-]{3,8}(:[0-9]{2})?(/[a-zа-я.()?=&,;]{0,5}){0,2}"),
        of(TokenKind::Host, "[a-z0-9-]{1,5}(\\.[a-zа-я0-9-]{1,5}){1,3}"),
        of(TokenKind::Iban, "DE89 3704 0044 0532 0130 00"),
        of(TokenKind::Number, "-?[1-9][0-9]{0,2}([ .,'][0-9]{3}){0,2}([.,][0-9]{1,2})?[1-9]"),
        of(TokenKind::Path, "[a-zäа-я/'(), .-]{1,12}"),
        of(TokenKind::Word, "[a-zа-я][a-zäа-яक-हा-ू'@.: -]{0,10}[a-z]"),
    ]
}

proptest! {
    #[test]
    fn proper_part_of_a_token_is_never_mentioned((kind, text) in token(), from in 0usize..12, length in 1usize..24) {
        let format = TokenFormat::new(kind);
        let part: String = text.chars().skip(from).take(length).collect();
        let is_whole = |text: &str| is_mentioned(format, text, text) == YES;
        let is_phrase = kind == TokenKind::Word && format.extract(&text).unwrap().len() > 1;
        // A phrase contains phrases; another spelling of a token is the same token.
        if part != text && is_whole(&text) && is_whole(&part) && !is_phrase {
            let is_same = is_mentioned(format, &text, &part) == YES;
            prop_assert!(is_same || is_mentioned(format, &part, &text) != YES, "{:?} in {:?}", part, text);
        }
    }

    #[test]
    fn token_is_mentioned_between_boundaries((kind, text) in token()) {
        let format = TokenFormat::new(kind);
        if is_mentioned(format, &text, &text) == YES {
            let has_space = kind == TokenKind::Path && text.contains([' ', '\'']);
            let quoted = if has_space { format!("x \"{text}\" y") } else { format!("x {text}\ny") };
            prop_assert_eq!(is_mentioned(format, &text, &quoted), YES, "{:?}", quoted);
            let hidden = format!(" \u{200b}{text}\u{200b} ");
            prop_assert_ne!(is_mentioned(format, &text, &hidden), YES, "{:?}", hidden);
        }
    }

    #[test]
    fn never_panics(subject in "\\PC*", source in "[\\PC\u{0}-\u{ff}]{0,60}", ascii in "[ -~]{0,40}") {
        for kind in TokenKind::ALL {
            let format = TokenFormat::new(kind).with_decimal(DecimalMark::Comma);
            for text in [&subject, &source, &ascii] {
                let _ = format.extract(text);
                let _ = TokenFormat::new(kind).extract_amounts(text);
                let _ = is_mentioned(format, &subject, text);
                // Each token of a text is in its index.
                let _ = is_mentioned(format, text, text);
            }
        }
    }
}
