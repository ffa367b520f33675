//! Replaces `$.result` in an output: whatever form the output has, it contains the new value afterwards and not the old one.

use super::mcp_result::{
    CONTENT, McpContent, STRUCTURED_CONTENT, WITHOUT_TEXT, WRAPPED, text_of_part, text_part,
};
use super::{ResultDeclaration, ResultFormat, ToolResult};
use crate::json::{Value, json, to_string};

/// The new value cannot take the place of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplacementError {
    /// The structured content of an MCP result is an object.
    #[error("the structured content of a result must stay an object")]
    NotAnObject,
    /// The result has several texts.
    #[error("a result of several texts must stay an array of strings")]
    NotTexts,
    /// The result has no content that could be replaced.
    #[error("the tool's result has no text and no structured content")]
    NoResult,
}

/// Replaces the result of an output. Structured content and every text beside it are replaced together, because a text may repeat
/// what the structured content no longer has. Images stay; embedded resources and
/// `_meta` do not, because they may repeat it, too.
///
/// # Errors
/// The new value does not fit the form of the output, which is unchanged then.
pub fn replace(
    output: &mut Value,
    new: Value,
    declaration: impl Into<ResultDeclaration>,
) -> Result<(), ReplacementError> {
    let ResultDeclaration { format, is_wrapped } = declaration.into();
    match McpContent::from_output(output, is_wrapped) {
        Some(McpContent::Wrapped(old, _)) => {
            let new = match old.as_str() {
                Some(old) => Value::from(text_for(old, &new, format)),
                None => new,
            };
            let text = new.as_str().map_or_else(|| serialized(&new), str::to_owned);
            set_texts(output, &[text]);
            remove_hidden(output);
            mark_as_wrapped(output);
            if let Some(content) = output.get_mut(STRUCTURED_CONTENT).and_then(|all| all.get_mut(WRAPPED)) {
                *content = new;
            }
        }
        Some(McpContent::Structured(..)) => {
            if !new.is_object() {
                return Err(ReplacementError::NotAnObject);
            }
            let text = serialized(&new);
            set_texts(output, &[text]);
            remove_hidden(output);
            if let Some(content) = output.get_mut(STRUCTURED_CONTENT) {
                *content = new;
            }
        }
        Some(McpContent::Text(old)) => {
            let text = text_for(old, &new, format);
            set_texts(output, &[text]);
            remove_hidden(output);
        }
        Some(McpContent::Texts(_)) => {
            let texts =
                new.as_array().map(|items| items.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
            let texts = texts.flatten().ok_or(ReplacementError::NotTexts)?;
            let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
            set_texts(output, &texts);
            remove_hidden(output);
        }
        Some(McpContent::Other | McpContent::Unreadable) => return Err(ReplacementError::NoResult),
        None => {
            *output = match output.as_str() {
                Some(old) => text_for(old, &new, format).into(),
                None => new,
            };
        }
    }
    Ok(())
}

/// The text for a new value in place of an old text: a string stays one where the old text was not parsed. JSON is YAML, too.
fn text_for(old: &str, new: &Value, format: ResultFormat) -> String {
    let was_parsed = ToolResult::from_text(old, format).is_some();
    match new.as_str() {
        Some(text) if !was_parsed => text.to_owned(),
        _ => serialized(new),
    }
}

fn serialized(value: &Value) -> String {
    to_string(value).unwrap_or_default()
}

/// Replaces the text parts of an MCP result. The first text part stays where it is; further texts follow it.
fn set_texts(output: &mut Value, texts: &[String]) {
    let Some(Value::Array(parts)) = output.get_mut(CONTENT) else { return };
    let Some(position) = parts.iter().position(|part| text_of_part(part).is_some()) else { return };
    parts.retain(|part| text_of_part(part).is_none());
    let position = position.min(parts.len());
    parts.splice(position..position, texts.iter().map(|text| text_part(text)));
}

/// Removes what may repeat the old value beside the texts: `_meta`, and parts with texts of their own.
fn remove_hidden(output: &mut Value) {
    let Value::Object(members) = output else { return };
    members.remove("_meta");
    if let Some(Value::Array(parts)) = members.get_mut(CONTENT) {
        let has_no_text = |part: &Value| {
            part.get("type").and_then(Value::as_str).is_some_and(|kind| WITHOUT_TEXT.contains(&kind))
        };
        parts.retain(|part| text_of_part(part).is_some() || has_no_text(part));
    }
}

/// Says that the structured content wraps a value, for whoever reads the result next.
fn mark_as_wrapped(output: &mut Value) {
    if let Value::Object(members) = output {
        members.insert("_meta", json!({ "fastmcp": { "wrap_result": true } }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(mut output: Value, new: Value) -> Result<Value, ReplacementError> {
        replace(&mut output, new, ResultFormat::Auto).map(|()| output)
    }

    #[test]
    fn the_old_value_is_in_no_form_of_the_output() {
        let new = json!({"name": "Ana"});
        let text = r#"{"name":"Ana"}"#;
        let secret = r#"{"name":"Ana","iban":"DE02"}"#;
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        let text_part = json!({"type": "text", "text": text});
        for (output, expected) in [
            (json!({"name": "Ana", "iban": "DE02"}), new.clone()),
            (secret.into(), text.into()),
            (
                json!({"content": [image, {"type": "text", "text": secret}], "isError": false}),
                json!({"content": [image, text_part], "isError": false}),
            ),
            (
                json!({
                    "content": [{"type": "text", "text": "IBAN DE02"}, image, {"type": "text", "text": "DE02"}],
                    "structuredContent": {"name": "Ana", "iban": "DE02"},
                    "_meta": {"raw": "DE02"},
                }),
                json!({"content": [text_part, image], "structuredContent": new}),
            ),
        ] {
            assert_eq!(replaced(output, new.clone()), Ok(expected));
        }
    }

    #[test]
    fn wrapped_value_stays_wrapped() {
        let part = |text: &str| json!({"type": "text", "text": text});
        let mark = json!({"fastmcp": {"wrap_result": true}});
        for (old, text, new, new_old, new_text) in [
            (json!([1, 2]), "[1,2]", json!([1]), json!([1]), "[1]"),
            (json!("{\"a\":1}"), "{\"a\":1}", json!({"b": 2}), json!("{\"b\":2}"), "{\"b\":2}"),
            (json!("a DE02"), "a DE02", json!("a"), json!("a"), "a"),
        ] {
            let output = json!({"content": [part(text)], "structuredContent": {"result": old}});
            let expected =
                json!({"content": [part(new_text)], "structuredContent": {"result": new_old}, "_meta": mark});
            assert_eq!(replaced(output, new), Ok(expected));
        }
    }

    #[test]
    fn strings_stay_strings() {
        assert_eq!(replaced("hello DE02".into(), "hello".into()), Ok("hello".into()));
        let several = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        let one = json!({"content": [{"type": "text", "text": "b"}]});
        assert_eq!(replaced(several.clone(), json!(["b"])), Ok(one));
        assert_eq!(replaced(several, json!([{"a": 1}])), Err(ReplacementError::NotTexts));
        let structured = json!({"structuredContent": {"a": 1}});
        assert_eq!(replaced(structured, json!("a")), Err(ReplacementError::NotAnObject));
    }
}
