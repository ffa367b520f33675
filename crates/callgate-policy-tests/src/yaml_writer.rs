//! Formats JSON values as readable YAML: on one line if short, else one member per line.

use callgate::json::Value;
use callgate::safe_text::is_hidden;

/// Words that a version of YAML does not read as strings.
const NON_STRING_WORDS: [&str; 11] =
    ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "infinity"];

/// The value in lines of at most `width` characters, as far as its strings allow.
pub fn lines(value: &Value, width: usize) -> Vec<String> {
    let flow = flow(value);
    if flow.chars().count() <= width {
        return vec![flow];
    }
    let room = width.saturating_sub(2);
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().flat_map(|(key, value)| entry(key, value, width)).collect()
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().flat_map(|item| list_item(lines(item, room))).collect()
        }
        _ => vec![flow],
    }
}

/// `key: value` on one line, or the value below its key.
pub fn entry(key: &str, value: &Value, width: usize) -> Vec<String> {
    let key = quoted_string(key);
    let room = width.saturating_sub(key.chars().count() + 2);
    let inline = flow(value);
    let is_nested = matches!(value, Value::Object(_) | Value::Array(_));
    if !is_nested || inline.chars().count() <= room {
        return vec![format!("{key}: {inline}")];
    }
    let below = lines(value, width.saturating_sub(2));
    std::iter::once(format!("{key}:")).chain(below.into_iter().map(|line| format!("  {line}"))).collect()
}

/// The lines as a list item.
pub fn list_item(lines: Vec<String>) -> Vec<String> {
    let mark = |index: usize| if index == 0 { "- " } else { "  " };
    lines.into_iter().enumerate().map(|(index, line)| format!("{}{line}", mark(index))).collect()
}

/// The value on one line.
pub fn flow(value: &Value) -> String {
    match value {
        Value::String(string) => quoted_string(string),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members =
                members.iter().map(|(key, value)| format!("{}: {}", quoted_string(key), flow(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A string, in quotes if it needs them.
fn quoted_string(string: &str) -> String {
    let rest = string.strip_prefix("$.").unwrap_or(string);
    let starts = rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = |c: char| c.is_alphanumeric() || "_-./@+$()%=".contains(c) || c == ' ';
    let is_word = NON_STRING_WORDS.iter().any(|word| string.eq_ignore_ascii_case(word));
    if starts && !is_word && !string.ends_with(' ') && string.chars().all(plain) {
        return string.to_owned();
    }
    // As in JSON, with invisible characters as numeric escapes.
    Value::from(string).to_string().chars().fold(String::new(), |mut quoted, c| {
        match u32::from(c) {
            code if !(c.is_control() || is_hidden(c)) || code < 0x20 => quoted.push(c),
            code if code <= 0xFFFF => quoted.push_str(&format!("\\u{code:04x}")),
            code => quoted.push_str(&format!("\\U{code:08x}")),
        }
        quoted
    })
}

#[cfg(test)]
mod tests {
    use callgate::json::json;
    use proptest::prelude::*;

    use super::*;

    use callgate::source;

    /// The value that the reader of rules files returns.
    fn read(lines: &[String]) -> Value {
        let text =
            format!("value:\n{}\n", lines.iter().map(|line| format!("  {line}\n")).collect::<String>());
        let loaded = source::load_texts([("a.yaml", text.as_str())]);
        assert!(loaded.diagnostics.is_empty(), "{text}\n{:?}", loaded.diagnostics);
        loaded.files[0].root.get("value").unwrap().to_json()
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e30..1e30).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[ -~]{0,12}".prop_map(Value::from),
            prop_oneof![
                Just("~"),
                Just("No"),
                Just("1e3"),
                Just("<<"),
                Just("---"),
                Just("a "),
                Just("0x1F"),
                Just("0777"),
                Just("1_000"),
                Just("NaN"),
                Just("-Infinity"),
                Just("b c")
            ]
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ -~é]{0,8}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_values_round_trip(value in any_json(), width in 0_usize..80) {
            let lines = lines(&value, width);
            prop_assert!(read(&lines) == value, "{}", lines.join("\n"));
        }
    }

    #[test]
    fn formats_short_values_on_one_line() {
        let order = json!({ "id": "#W1", "items": [{ "name": "Desk Lamp", "price": 80.0 }], "to": "Nina Okafor", "note": "yes" });
        assert_eq!(
            lines(&order, 44),
            ["id: \"#W1\"", "items: [{ name: Desk Lamp, price: 80.0 }]", "to: Nina Okafor", "note: \"yes\""]
        );
        assert_eq!(lines(&order["items"], 20), ["- name: Desk Lamp", "  price: 80.0"]);
        assert_eq!(flow(&json!("a\u{202e}\u{7f}\n\u{e0001}")), r#""a\u202e\u007f\n\U000e0001""#);
    }
}
