//! Reads the servers of a JSON config file; comments and trailing commas are accepted.

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};

use super::clients::ClientProperties;
use super::server_entry::{ConfigFileError, MemberValue, ParsedMember, ServerEntry};
use crate::edited_file::json_options;

pub(super) fn read(text: &str, facts: &ClientProperties) -> Result<Vec<ServerEntry>, ConfigFileError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &json_options()).map_err(|error| {
        let message = error.kind().to_string();
        let mut letters = message.chars();
        let first = letters.next().map(|first| first.to_ascii_lowercase());
        ConfigFileError::new(error.range().start, first.into_iter().chain(letters).collect::<String>())
    })?;
    let mut entries = Vec::new();
    if let Some(root) = &parsed.value {
        for table in facts.server_paths {
            read_servers_at(root, table, &mut Vec::new(), facts, &mut entries)?;
        }
    }
    Ok(entries)
}

/// Follows a key path to the objects that contain servers. Recursion is limited by the length of the path.
fn read_servers_at(
    value: &Value<'_>,
    way: &[&str],
    path: &mut Vec<String>,
    facts: &ClientProperties,
    entries: &mut Vec<ServerEntry>,
) -> Result<(), ConfigFileError> {
    let object = object(value, path.last())?;
    match way.split_first() {
        None => {
            for member in unique_members(object)? {
                let mut path = path.clone();
                path.push(member.name.as_str().to_owned());
                let server = self::object(&member.value, path.last())?;
                entries.push(ServerEntry::new(
                    path,
                    true,
                    server.properties.iter().map(parse_member).collect(),
                    facts,
                )?);
            }
        }
        Some((&step, rest)) => {
            for member in unique_members(object)? {
                let name = member.name.as_str();
                if step == name || step == "*" {
                    path.push(name.to_owned());
                    read_servers_at(&member.value, rest, path, facts, entries)?;
                    path.pop();
                }
            }
        }
    }
    Ok(())
}

fn object<'v, 't>(value: &'v Value<'t>, name: Option<&String>) -> Result<&'v Object<'t>, ConfigFileError> {
    value.as_object().ok_or_else(|| {
        let subject = name.map_or("the file".to_owned(), |name| format!("`{name}`"));
        ConfigFileError::new(value.start(), format!("{subject} must be an object, `{{ … }}`"))
    })
}

/// The members of an object. Duplicate keys are an error, because clients differ in which one they use.
fn unique_members<'v, 't>(object: &'v Object<'t>) -> Result<&'v [ObjectProp<'t>], ConfigFileError> {
    let mut known = std::collections::HashSet::new();
    for member in &object.properties {
        if !known.insert(member.name.as_str()) {
            let message = format!("duplicate key `{}`; remove one", member.name.as_str());
            return Err(ConfigFileError::new(member.start(), message));
        }
    }
    Ok(&object.properties)
}

fn parse_member(member: &ObjectProp<'_>) -> ParsedMember {
    let shape = match &member.value {
        Value::StringLit(text) => MemberValue::String(text.value.to_string()),
        Value::Array(list) if list.elements.is_empty() => MemberValue::Empty,
        Value::Array(list) => MemberValue::Array(
            list.elements
                .iter()
                .map(|element| (span(element), element.as_string_lit().map(|text| text.value.to_string())))
                .collect(),
        ),
        Value::Object(object) if object.properties.is_empty() => MemberValue::Empty,
        Value::Object(object) => MemberValue::Object(
            object
                .properties
                .iter()
                .map(|member| {
                    let value = member.value.as_string_lit().map(|text| text.value.to_string());
                    (member.name.as_str().to_owned(), value)
                })
                .collect(),
        ),
        _ => MemberValue::Other,
    };
    ParsedMember {
        name: member.name.as_str().to_owned(),
        key: span(&member.name),
        span: span(&member.value),
        kind: shape,
    }
}

fn span(node: &impl Ranged) -> Range<usize> {
    node.start()..node.end()
}
