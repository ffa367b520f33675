//! Reads the servers of a TOML config file: tables, inline tables, or dotted keys.

use std::ops::Range;

use toml_edit::{Document, Item, Key, TableLike, Value};

use super::clients::ClientProperties;
use super::server_entry::{ConfigFileError, MemberValue, ParsedMember, ServerEntry};

pub(super) fn read(text: &str, facts: &ClientProperties) -> Result<Vec<ServerEntry>, ConfigFileError> {
    let document = Document::parse(text).map_err(|error| {
        ConfigFileError::new(error.span().map_or(0, |span| span.start), error.message().replace('\n', " "))
    })?;
    let mut entries = Vec::new();
    for table in facts.server_paths {
        let mut found: Option<&dyn TableLike> = Some(document.as_table());
        let mut path = Vec::new();
        for step in *table {
            let Some((key, item)) = found.and_then(|found| found.get_key_value(step)) else {
                found = None;
                break;
            };
            path.push((*step).to_owned());
            found = Some(as_table(key, item)?);
        }
        let Some(servers) = found else { continue };
        for (key, item) in members(servers) {
            let server = as_table(key, item)?;
            let inline = item.as_inline_table();
            if inline.is_some_and(|table| table.is_dotted()) {
                let message = format!("write `{0}` as a table, `[mcp_servers.{0}]` or `{{ … }}`", key.get());
                return Err(ConfigFileError::new(start(key), message));
            }
            let mut path = path.clone();
            path.push(key.get().to_owned());
            let found = members(server).map(|(key, item)| parse_member(key, item)).collect();
            entries.push(ServerEntry::new(path, inline.is_some(), found, facts)?);
        }
    }
    Ok(entries)
}

fn as_table<'i>(key: &Key, item: &'i Item) -> Result<&'i dyn TableLike, ConfigFileError> {
    item.as_table_like()
        .ok_or_else(|| ConfigFileError::new(start(key), format!("`{}` must be a table", key.get())))
}

fn members(table: &dyn TableLike) -> impl Iterator<Item = (&Key, &Item)> {
    table.iter().filter_map(|(name, _)| table.get_key_value(name))
}

fn parse_member(key: &Key, item: &Item) -> ParsedMember {
    let shape = match item {
        Item::Value(Value::String(text)) => MemberValue::String(text.value().clone()),
        Item::Value(Value::Array(list)) if list.is_empty() => MemberValue::Empty,
        Item::Value(Value::Array(list)) => MemberValue::Array(
            list.iter()
                .map(|value| (value.span().unwrap_or_default(), value.as_str().map(str::to_owned)))
                .collect(),
        ),
        item if item.as_table_like().is_some_and(TableLike::is_empty) => MemberValue::Empty,
        item => match item.as_table_like() {
            Some(table) => MemberValue::Object(
                table
                    .iter()
                    .map(|(name, item)| (name.to_owned(), item.as_str().map(str::to_owned)))
                    .collect(),
            ),
            None => MemberValue::Other,
        },
    };
    ParsedMember { name: key.get().to_owned(), key: span(key.span()), span: span(item.span()), kind: shape }
}

/// The range of a parsed item; empty for a table spread over the file, which has none and is not edited.
fn span(span: Option<Range<usize>>) -> Range<usize> {
    span.unwrap_or_default()
}

fn start(key: &Key) -> usize {
    span(key.span()).start
}
