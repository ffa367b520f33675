//! Generators of JSON: values, and documents in every notation that JSON allows.

use callgate::json::{Map, Number, Value};
use proptest::prelude::*;

/// Keys with a meaning to libraries that parse JSON, which must have none here.
pub const TOKENS: [&str; 5] = [
    "$serde_json::private::Number",
    "$serde_json::private::RawValue",
    "$callgate::json::Value",
    "$__toml_private_datetime",
    "__proto__",
];

pub fn number() -> impl Strategy<Value = Number> {
    "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,4})?".prop_map(|text| text.parse().unwrap())
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,3}",
        2 => "\\PC{0,12}",
        1 => any::<String>(),
        1 => prop::sample::select(&TOKENS[..]).prop_map(str::to_owned),
    ]
}

pub fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        4 => number().prop_map(Value::from),
        3 => string().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((string(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

pub fn object() -> impl Strategy<Value = Map> {
    prop::collection::vec((string(), value()), 0..8).prop_map(|members| members.into_iter().collect())
}

/// Writes a value with whitespace and with escaped characters in its strings; `choices` selects them.
pub fn spelled(value: &Value, choices: &[u8]) -> String {
    let mut spelling = Spelling { choices: choices.iter().cycle(), text: String::new() };
    spelling.value(value);
    spelling.text
}

struct Spelling<'c> {
    choices: std::iter::Cycle<std::slice::Iter<'c, u8>>,
    text: String,
}

impl Spelling<'_> {
    fn choice(&mut self) -> u8 {
        self.choices.next().copied().unwrap_or_default()
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\n", "\t", "\r\n", "  "][usize::from(self.choice() % 8)];
        self.text.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::Array(items) => self.list('[', ']', items.iter().map(|item| (None, item))),
            Value::Object(members) => {
                self.list('{', '}', members.iter().map(|(key, member)| (Some(key.as_str()), member)));
            }
            Value::String(text) => self.string(text),
            other => self.text.push_str(&other.to_string()),
        }
        self.space();
    }

    fn list<'v>(
        &mut self,
        open: char,
        close: char,
        parts: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
    ) {
        self.text.push(open);
        self.space();
        for (index, (key, value)) in parts.enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            if let Some(key) = key {
                self.space();
                self.string(key);
                self.space();
                self.text.push(':');
            }
            self.value(value);
        }
        self.text.push(close);
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            let needed = c < ' ' || c == '"' || c == '\\';
            match self.choice() % 8 {
                0 => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.text.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                1 if c == '/' => self.text.push_str("\\/"),
                _ if needed => {
                    let written = Value::from(c.to_string()).to_string();
                    self.text.push_str(
                        written
                            .trim_start_matches('"')
                            .strip_suffix('"')
                            .filter(|_| c != '"')
                            .unwrap_or("\\\""),
                    );
                }
                _ => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}
