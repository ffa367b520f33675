//! Reads JSON text and refuses an object that has a key twice: readers differ on which of the two counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads one JSON value. Errors (with line and column): text that is not JSON, a doubled key, nesting deeper than
/// [`MAX_DEPTH`](super::MAX_DEPTH), anything after the value.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut value = Strict.deserialize(&mut deserializer)?;
    deserializer.end()?;
    let mut written = numbers(text).filter(|number| number.contains(['e', 'E'])).peekable();
    if written.peek().is_some() {
        restore(&mut value, &mut numbers(text));
    }
    Ok(value)
}

/// The numbers of a text that is JSON, in order, as they are written.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            rest = rest.get(start..)?;
            if !rest.starts_with('"') {
                let end =
                    rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(rest.len());
                let (number, after) = rest.split_at_checked(end)?;
                rest = after;
                return Some(number);
            }
            rest = rest.get(1..)?;
            while !rest.starts_with('"') {
                let end = rest.find(['"', '\\'])?;
                // An escape is the backslash and what follows it.
                let is_escape = rest.get(end..)?.starts_with('\\');
                rest = rest.get(end..)?;
                if is_escape {
                    let mut chars = rest.chars();
                    chars.by_ref().take(2).for_each(drop);
                    rest = chars.as_str();
                }
            }
            rest = rest.get(1..)?;
        }
    })
}

/// Gives numbers back the spelling of their exponents, which `serde_json` makes one: whoever passes JSON on changes nothing in it.
fn restore<'t>(value: &mut Value, written: &mut impl Iterator<Item = &'t str>) {
    match value {
        Value::Number(number) => {
            if let Some(written) = written.next()
                && written.contains(['e', 'E'])
            {
                *number = Number::from_string_unchecked(written.to_owned());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| restore(item, written)),
        Value::Object(members) => members.values_mut().for_each(|member| restore(member, written)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

struct Strict;

/// The key under which `serde_json` hands an exact number to a visitor.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key == NUMBER_TOKEN {
                let text = entries.next_value::<String>()?;
                let number: Number = text.parse().map_err(|_| A::Error::custom("invalid number"))?;
                return Ok(Value::Number(number));
            }
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` stands twice in one object")));
            }
            let value = entries.next_value_seed(Strict)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_json_and_keeps_the_text_of_numbers() {
        let text = r#"{"z":[1,1.0,1E400,12345678901234567890123],"a":{"b":null,"c":true}}"#;
        assert_eq!(parse(text).unwrap().to_string(), text);
        let text = r#"{"1e5":"2e5 \" 3E5","a\\":[-1e5,2E-7,[1e+5,{"b":-0.5e05}]],"c":0}"#;
        assert_eq!(parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn refuses_doubled_keys_however_deep_and_spelled() {
        for text in [r#"{"a":1,"a":2}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("`a` stands twice"), "{error}");
        }
    }

    #[test]
    fn refuses_trailing_text_and_bottomless_nesting() {
        assert!(parse("{} {}").is_err());
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
