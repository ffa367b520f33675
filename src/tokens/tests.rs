mod identifiers;
mod numbers;
mod paths_and_words;
mod properties;

use super::*;
use crate::json::Value;

/// Whether a subject is mentioned in a source: `None` for undecided.
fn is_mentioned(format: TokenFormat, subject: &str, source: &str) -> Option<bool> {
    format.is_mentioned(TokenSubject::Text(subject), [&Value::from(source)]).ok()
}

/// Checks rows of subject, source and result.
fn check(kind: TokenKind, rows: &[(&str, &str, Option<bool>)]) {
    for (subject, source, expected) in rows {
        let found = is_mentioned(TokenFormat::new(kind), subject, source);
        assert_eq!(found, *expected, "{}: {subject:?} in {source:?}", kind.name());
    }
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
const UNDECIDED: Option<bool> = None;

#[test]
fn sources_are_strings_at_any_depth() {
    let words = TokenFormat::new(TokenKind::Word);
    let source = crate::json::json!({ "a": [ { "b": "Anna" }, 7, null ], "Bob": true });
    assert_eq!(words.is_mentioned(TokenSubject::Text("anna"), [&source]), Ok(true));
    assert_eq!(words.is_mentioned(TokenSubject::Text("bob"), [&source]), Ok(false));
    let halves = [Value::from("anna"), Value::from("meier")];
    assert_eq!(words.is_mentioned(TokenSubject::Text("anna meier"), &halves), Ok(false));
    assert_eq!(words.is_mentioned(TokenSubject::Text("meier"), &halves), Ok(true));
    let half = Value::from("x".repeat(MAX_SOURCE_BYTES / 2 + 1));
    assert_eq!(words.is_mentioned(TokenSubject::Text("anna"), [&half]), Ok(false));
    assert_eq!(words.is_mentioned(TokenSubject::Text("anna"), [&half, &half]), Err(TokenError::TooLong));
    let long = "x".repeat(MAX_SOURCE_BYTES + 1);
    assert_eq!(words.is_mentioned(TokenSubject::Text(&long), []), Err(TokenError::TooLong));
}

#[test]
fn extracts_tokens_in_normal_form() {
    let text = "Ana@Example.com paid €1.500,50 and 20 USD to de89 3704 0044 0532 0130 00; see example.org and /srv/./a.";
    let extract = |kind| TokenFormat::new(kind).extract(text);
    assert_eq!(extract(TokenKind::Email).unwrap(), ["ana@example.com"]);
    assert_eq!(extract(TokenKind::Url).unwrap(), ["http://example.org/", "https://example.org/"]);
    assert_eq!(extract(TokenKind::Host).unwrap(), ["example.org"]);
    assert_eq!(extract(TokenKind::Iban).unwrap(), ["DE89370400440532013000"]);
    assert!(extract(TokenKind::Path).unwrap().contains(&"/srv/a".to_owned()));
    assert_eq!(
        TokenFormat::new(TokenKind::Word).extract("Anna's E-Mail, O\u{2019}Neil").unwrap(),
        ["anna", "e-mail", "o'neil"]
    );
    assert_eq!(
        TokenFormat::new(TokenKind::Number).extract("1.5 2,000,000 -3").unwrap(),
        ["1.5", "2000000", "-3"]
    );
    assert_eq!(TokenFormat::new(TokenKind::Number).extract("1.500"), Err(TokenError::AmbiguousNumber));
}

#[test]
fn extracts_amounts_with_their_currency() {
    let amounts = |text| {
        let found = TokenFormat::new(TokenKind::Number).extract_amounts(text);
        found.map(|found| {
            found
                .iter()
                .map(|amount| format!("{} {}", amount.value.text(), amount.currency))
                .collect::<Vec<_>>()
        })
    };
    for (text, expected) in [
        ("€100", &["100 EUR"][..]),
        ("100 EUR and 5 items", &["100 EUR"]),
        ("EUR 100 USD 200", &["100 EUR", "200 USD"]),
        ("100 EUR 200 USD", &["100 EUR", "200 USD"]),
        ("-€1.5, US$2, $3, 4£, R$ 5", &["-1.5 EUR", "2 USD", "3 $", "4 £", "5 BRL"]),
        ("12\u{202f}345,60\u{a0}€", &["12345.6 EUR"]),
        ("100 Euro, 5 ABC, EURO 7", &[]),
        ("1,234 items for 5 EUR", &["5 EUR"]),
    ] {
        assert_eq!(amounts(text).unwrap(), expected, "{text}");
    }
    assert_eq!(amounts("1,234 EUR"), Err(TokenError::AmbiguousNumber));
}
