//! JSON values in Rust types: Callgate's serializer and deserializer are lossless, other formats get exact numbers or an error, and
//! no data can trigger the private protocol between the two.

use std::collections::{BTreeMap, HashMap};

use callgate::json::{self, Map, Number, Value, from_str, from_value, json, to_string, to_value};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::generated;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    value: Value,
    #[serde(default)]
    maybe: Option<Value>,
    map: Map,
    number: Number,
    list: Vec<Value>,
    named: BTreeMap<String, Value>,
    choice: Choice,
    pair: (Value, u8),
    newtype: Newtype,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Newtype(Value);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Choice {
    Unit,
    One(Value),
    Two(Value, Value),
    Members { value: Value },
}

proptest! {
    #[test]
    fn values_in_rust_types_round_trip(
        value in generated::value(), map in generated::object(), number in generated::number(), other in generated::value(), which in 0..4,
    ) {
        let choice = match which {
            0 => Choice::Unit,
            1 => Choice::One(value.clone()),
            2 => Choice::Two(value.clone(), other.clone()),
            _ => Choice::Members { value: other.clone() },
        };
        let held = Held {
            maybe: Some(other.clone()).filter(|other| !other.is_null()),
            list: vec![value.clone(), other.clone()],
            named: map.clone().into_iter().map(|(key, value)| (key.into(), value)).collect(),
            pair: (other.clone(), 7),
            newtype: Newtype(other),
            value, map, number, choice,
        };
        let text = to_string(&held).unwrap();
        let read: Held = from_str(&text).unwrap();
        prop_assert_eq!(to_string(&read).unwrap(), text.as_str());
        prop_assert_eq!(&read, &held);
        let as_value = to_value(&held).unwrap();
        prop_assert_eq!(as_value.to_string(), text);
        prop_assert_eq!(from_value::<Held>(as_value).unwrap(), held);
    }

    /// A value keeps its JSON through `Value` itself, with any strings and keys.
    #[test]
    fn values_round_trip_through_value(value in generated::value()) {
        prop_assert_eq!(to_value(&value).unwrap().to_string(), value.to_string());
        prop_assert_eq!(from_value::<Value>(value.clone()).unwrap().to_string(), value.to_string());
        prop_assert_eq!(json!({ "a": [value], "b": &value }).to_string(), format!(r#"{{"a":[{value}],"b":{value}}}"#));
    }

    /// Conversion to `serde_json` and back results in an equal value, or an error.
    #[test]
    fn conversion_to_serde_json_is_exact_or_an_error(value in generated::value()) {
        if let Ok(theirs) = serde_json::Value::try_from(value.clone()) {
            prop_assert_eq!(Value::from(theirs), value.clone());
        }
        if let Ok(theirs) = serde_json::to_value(&value) {
            prop_assert_eq!(Value::from(theirs), value.clone());
        }
        if let Ok(text) = serde_json::to_string(&value) {
            prop_assert_eq!(json::parse(&text).unwrap(), value);
        }
    }

    /// `serde_json` parses `Value` to the same values as its own type.
    #[test]
    fn values_read_by_serde_json_equal_its_own(value in generated::value()) {
        let text = value.to_string();
        match (serde_json::from_str::<Value>(&text), serde_json::from_str::<serde_json::Value>(&text)) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, Value::from(theirs)),
            // Its private key is indistinguishable from a number of a build with `arbitrary_precision`.
            (Err(error), Ok(_)) => prop_assert!(error.to_string().contains("private key"), "{}", error),
            (_, Err(_)) => {}
        }
    }
}

/// The private names of the serde protocol have no meaning in data: as keys, strings or variant names.
#[test]
fn private_serde_names_are_plain_data() {
    for token in generated::TOKENS {
        let texts = [
            format!(r#"{{"{token}":"5"}}"#),
            format!(r#"{{"{token}":{{"{token}":[1.50]}},"a":"{token}"}}"#),
            format!(r#"["{token}"]"#),
        ];
        for text in texts {
            let value: Value = from_str(&text).unwrap();
            assert_eq!(value.to_string(), text);
            assert_eq!(to_string(&value).unwrap(), text);
            let map: HashMap<String, Newtype> = from_str(&format!(r#"{{"x":{text}}}"#)).unwrap();
            assert_eq!(to_string(&map["x"]).unwrap(), text);
        }
        assert!(from_str::<Choice>(&format!(r#"{{"{token}":1}}"#)).is_err());
        assert!(from_str::<Number>(&format!(r#"{{"{token}":"1"}}"#)).is_err());
        assert!(from_str::<u8>(&format!(r#"{{"{token}":"1"}}"#)).is_err());
    }
}

/// serde buffers the content of such enums in its own form, in which numbers are primitives.
#[test]
fn buffered_content_has_exact_numbers_or_fails() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Some { value: Value },
    }
    let read = |number: &str| from_str::<Tagged>(&format!(r#"{{"kind":"Some","value":[{number}]}}"#));
    for number in [
        "5",
        "-5",
        "12.5",
        "12.50",
        "1e22",
        "18446744073709551615",
        "170141183460469231731687303715884105727",
    ] {
        if let Ok(Tagged::Some { value }) = read(number) {
            assert_eq!(value, Value::from([number.parse::<Number>().unwrap()]), "{number}");
        }
    }
    assert!(read("12.50").is_ok());
    for number in ["0.10000000000000000001", "1e400", "-340282366920938463463374607431768211456.5"] {
        assert!(read(number).is_err(), "{number}");
    }
}

#[test]
fn errors_report_their_position() {
    #[derive(Debug, Deserialize)]
    struct Tool {
        #[serde(rename = "name")]
        _name: String,
    }
    for (text, expected) in [
        (
            "[{\"name\": \"a\"},\n  {\"name\": 5}]",
            "invalid type: integer `5`, expected a string at line 2 column 12",
        ),
        ("[{\"name\": \"a\"},\n  {}]", "missing field `name` at line 2 column 3"),
        ("[5]", "invalid type: integer `5`, expected struct Tool at line 1 column 2"),
        ("[", "unexpected end of the text at line 1 column 2"),
    ] {
        assert_eq!(from_str::<Vec<Tool>>(text).unwrap_err().to_string(), expected);
    }
    let error = from_value::<HashMap<String, Vec<u8>>>(json!({ "a": [1, 2], "b": [1, "x"] })).unwrap_err();
    assert_eq!(error.to_string(), "invalid type: string \"x\", expected u8 at `b[1]`");
}
