//! Principals: the name of a caller or approver → [`Principal`]. All comparisons of principals use this type.
//!
//! Two names are one principal if their canonical forms are equal: Unicode's NFKC_Casefold (compatibility normalization, full case
//! folding, default-ignorable code points removed), without white space at the ends. So `Bob` is `bob`, and so are full-width
//! letters, a soft hyphen or a zero-width space inside the name, and a no-break space behind it. Letters of different scripts that
//! look alike are different: Cyrillic `а` is not Latin `a`.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::json::{JsonType, Value};
use crate::unicode;

/// The comparison of principals (`defaults.principals`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalComparison {
    /// By their canonical form.
    #[default]
    Canonical,
    /// Code point by code point, for identity providers whose names differ in case or form only.
    Exact,
}

impl PrincipalComparison {
    /// Whether this is the comparison by canonical form.
    pub fn is_canonical(&self) -> bool {
        *self == Self::Canonical
    }
}

/// A caller or an approver. Two are equal if their keys are: the same canonical form, or the same name, as [`PrincipalComparison`] says.
#[derive(Clone, Debug)]
pub struct Principal {
    name: String,
    key: String,
}

impl Principal {
    /// Parses a name. Returns `None` if its canonical form is empty or contains a control character, whatever the comparison.
    ///
    /// ```
    /// use callgate::principal::{Principal, PrincipalComparison};
    ///
    /// let principal = |name| Principal::parse(name, PrincipalComparison::Canonical);
    /// assert_eq!(principal("Ana\u{a0}"), principal("ana"));
    /// assert_ne!(Principal::parse("Ana", PrincipalComparison::Exact), Principal::parse("ana", PrincipalComparison::Exact));
    /// assert_eq!(principal(" \u{200b}"), None);
    /// ```
    pub fn parse(name: &str, comparison: PrincipalComparison) -> Option<Self> {
        let canonical = unicode::casefold(name);
        if canonical.is_empty() || canonical.contains(char::is_control) {
            return None;
        }
        let key = match comparison {
            PrincipalComparison::Canonical => canonical.into_owned(),
            PrincipalComparison::Exact => name.to_owned(),
        };
        Some(Self { name: name.to_owned(), key })
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The form that is compared: the same string for the same principal.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// The meaning of a value that should name a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrincipalValue {
    /// It names this principal.
    Principal(Principal),
    /// It is absent, null or blank.
    Missing,
    /// It is not a valid name; the string describes what it is instead.
    Invalid(&'static str),
}

impl PrincipalValue {
    /// Interprets a value.
    pub fn from_value(value: Option<&Value>, comparison: PrincipalComparison) -> Self {
        match value {
            None | Some(Value::Null) => Self::Missing,
            Some(Value::String(name)) => match Principal::parse(name, comparison) {
                Some(principal) => Self::Principal(principal),
                None if unicode::casefold(name).is_empty() => Self::Missing,
                None => Self::Invalid("a string with control characters"),
            },
            Some(other) => Self::Invalid(JsonType::from_value(other).with_article()),
        }
    }

    /// Interprets `principal` of a call's context.
    pub fn from_context(context: &Value, comparison: PrincipalComparison) -> Self {
        match context {
            Value::Null | Value::Object(_) => Self::from_value(context.get("principal"), comparison),
            other => Self::Invalid(JsonType::from_value(other).with_article()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;
    use proptest::prelude::*;

    use super::*;

    fn is_one(a: &str, b: &str) -> bool {
        let principal = |name| Principal::parse(name, PrincipalComparison::Canonical).unwrap();
        principal(a) == principal(b)
    }

    #[test]
    fn spellings_of_one_principal_are_equal() {
        for (a, b) in [
            ("Bob", "bob"),
            ("ana", "ana\u{a0}"),
            ("ana", "\u{3000}ana\u{2003}\n"),
            ("ana", "a\u{ad}n\u{200b}a\u{feff}"),
            ("ana", "\u{202e}ana\u{2066}\u{e0020}"),
            ("\u{ff21}\u{ff4e}\u{ff41}", "ana"),
            ("\u{1d4d0}na", "ana"),
            ("stra\u{df}e", "STRASSE"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("\u{3c2}igma", "\u{3a3}IGMA"),
            ("\u{fb01}nn", "FINN"),
            ("\u{212a}im", "kim"),
            ("\u{1e9e}", "ss"),
            ("a\u{345}\u{301}", "a\u{301}\u{345}"),
            ("ana@example.com", "Ana@Example.COM"),
        ] {
            assert!(is_one(a, b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn names_of_different_principals_differ() {
        for (a, b) in [
            ("ana", "\u{430}na"),
            ("jose", "jos\u{e9}"),
            ("i", "\u{131}"),
            ("ana b", "anab"),
            ("0live", "olive"),
            ("ana", "ana@example.com"),
        ] {
            assert!(!is_one(a, b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn rejects_blank_names_and_names_with_control_characters() {
        for comparison in [PrincipalComparison::Canonical, PrincipalComparison::Exact] {
            for name in [
                "",
                " ",
                "\t\n",
                "\u{a0}\u{200b}",
                "\u{3164}",
                "\u{2060}\u{fe0f}",
                "a\u{0}b",
                "a\nb",
                "\u{7}",
            ] {
                assert_eq!(Principal::parse(name, comparison), None, "{name:?}");
            }
        }
    }

    #[test]
    fn only_strings_name_a_principal() {
        for (value, expected) in [
            (json!(null), Some(PrincipalValue::Missing)),
            (json!(""), Some(PrincipalValue::Missing)),
            (json!(" \u{200d}"), Some(PrincipalValue::Missing)),
            (json!(42), None),
            (json!(true), None),
            (json!(["ana"]), None),
            (json!({ "name": "ana" }), None),
            (json!("a\u{1}b"), None),
        ] {
            for comparison in [PrincipalComparison::Canonical, PrincipalComparison::Exact] {
                let named = PrincipalValue::from_value(Some(&value), comparison);
                match &expected {
                    Some(expected) => assert_eq!(named, *expected, "{value}"),
                    None => assert!(matches!(named, PrincipalValue::Invalid(_)), "{value}"),
                }
                assert_eq!(
                    PrincipalValue::from_context(&json!({ "principal": value }), comparison),
                    named,
                    "{value}"
                );
            }
        }
        assert_eq!(
            PrincipalValue::from_context(&json!(null), PrincipalComparison::Canonical),
            PrincipalValue::Missing
        );
        assert!(matches!(
            PrincipalValue::from_context(&json!("ana"), PrincipalComparison::Canonical),
            PrincipalValue::Invalid(_)
        ));
    }

    #[test]
    fn the_canonical_form_of_every_character_is_stable() {
        let all: Vec<char> = (0..=u32::from(char::MAX)).filter_map(char::from_u32).collect();
        for block in all.chunks(1024) {
            let names: String = block.iter().flat_map(|c| ['x', *c]).collect();
            let form = unicode::casefold(&names).into_owned();
            assert_eq!(unicode::casefold(&form), form, "from {:?}", block.first());
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_stable(name in "\\PC{0,8}", mark in "[\u{300}-\u{345}\u{200b}\u{ad}A-Z \u{a0}\u{ff21}]{0,6}") {
            let form = unicode::casefold(&format!("{name}{mark}")).into_owned();
            prop_assert_eq!(unicode::casefold(&form), form.as_str());
        }
    }
}
