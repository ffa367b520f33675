//! Normalises the tools of Cline from version 3.0: one use can run several commands or read several files, each a call of its own.
//!
//! Cline accepts several forms of these inputs. A form that is not known here is an error, so it is denied.

use callgate::json::{Map, Value, json};

use crate::event_error::EventError;
use crate::event_reader::EventReader;
use crate::patch_paths;
use crate::tool_use::{NormalizedCall, ToolRule, ToolUse};

const TOOLS: [ToolRule; 1] = [ToolRule::new("editor", "Edit", "file_path", &["path"])];

/// The members that can hold the items of an input. Cline reads only one of them.
const COMMANDS: [&str; 3] = ["commands", "command", "cmd"];
const FILES: [&str; 6] = ["files", "file_paths", "paths", "path", "file_path", "filePath"];

const COMMAND_FORM: &str = "a command, or an array of commands";
const FILE_FORM: &str = "a path, or an array of paths";
const PATCH_FORM: &str = "a patch";

pub(crate) fn normalize(native: &str, input: &Value) -> Result<ToolUse, EventError> {
    let calls = match native {
        "run_commands" => items(input, &COMMANDS, COMMAND_FORM)?
            .into_iter()
            .map(|item| Ok(call("Bash", json!({ "command": command_text(item)? }))))
            .collect::<Result<Vec<_>, EventError>>()?,
        "read_files" => items(input, &FILES, FILE_FORM)?
            .into_iter()
            .map(|item| Ok(call("Read", file_input(item)?)))
            .collect::<Result<Vec<_>, EventError>>()?,
        "apply_patch" => {
            let patch = input.as_str().or_else(|| input.get("input")?.as_str());
            let patch = patch.ok_or_else(|| wrong("input", PATCH_FORM))?;
            let edit = |path: String| call("Edit", json!({ "file_path": path, "patch": patch }));
            patch_paths::read(patch)?.into_iter().map(edit).collect()
        }
        _ => return other_tool(native, input),
    };
    // A patch is not made again of the input of one file.
    let input = if native == "apply_patch" { Value::Null } else { input.clone() };
    Ok(ToolUse { calls, ..ToolUse::unchanged(native, native, input) })
}

/// A tool with one call. MCP tools are named `server__tool`.
fn other_tool(native: &str, input: &Value) -> Result<ToolUse, EventError> {
    let members = EventReader::new(input).map_err(|_| wrong("input", "an object"))?.to_value();
    match native.split_once("__") {
        Some(_) => Ok(ToolUse::unchanged(native, format!("mcp__{native}"), members)),
        None => ToolUse::normalized(native, members, &TOOLS),
    }
}

fn call(tool: &str, input: Value) -> NormalizedCall {
    NormalizedCall { tool: tool.to_owned(), input }
}

fn wrong(member: &str, form: &'static str) -> EventError {
    EventError::Member(member.to_owned(), form)
}

/// The items of an input: an array, or an object with one of `members`, whose value is one item or an array of them.
fn items<'i>(input: &'i Value, members: &[&str], form: &'static str) -> Result<Vec<&'i Value>, EventError> {
    let first = members.first().copied().unwrap_or_default();
    let items = match input {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) => {
            let mut present = members.iter().filter(|name| object.contains_key(name));
            match (present.next(), present.next()) {
                (Some(one), Some(other)) => {
                    return Err(EventError::Ambiguous((*one).to_owned(), (*other).to_owned()));
                }
                (Some(name), None) => match object.get(name) {
                    Some(Value::Array(items)) => items.iter().collect(),
                    // An item with more members, such as the arguments of a command.
                    Some(Value::String(_)) => vec![input],
                    Some(item) => vec![item],
                    None => Vec::new(),
                },
                (None, _) => Vec::new(),
            }
        }
        item => vec![item],
    };
    if items.is_empty() { Err(wrong(first, form)) } else { Ok(items) }
}

/// A command as shell text. Cline starts a program with arguments without a shell, so they are quoted.
fn command_text(item: &Value) -> Result<String, EventError> {
    let error = || wrong("commands", COMMAND_FORM);
    let Value::Object(members) = item else { return item.as_str().map(str::to_owned).ok_or_else(error) };
    let text = COMMANDS.iter().find_map(|name| members.get(name)?.as_str()).ok_or_else(error)?;
    match members.get("args") {
        None => Ok(text.to_owned()),
        Some(Value::Array(arguments)) => {
            let words = std::iter::once(Some(text)).chain(arguments.iter().map(Value::as_str));
            let quoted: Option<Vec<String>> = words.map(|word| Some(quote(word?))).collect();
            quoted.map(|words| words.join(" ")).ok_or_else(error)
        }
        Some(_) => Err(error()),
    }
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The input of a read: its path under the normalised name, and the lines to read.
fn file_input(item: &Value) -> Result<Value, EventError> {
    let error = || wrong("files", FILE_FORM);
    let Value::Object(members) = item else {
        return item.as_str().map(|path| json!({ "file_path": path })).ok_or_else(error);
    };
    let mut paths = FILES.iter().filter_map(|name| members.get(name));
    let (Some(path), None) = (paths.next().and_then(Value::as_str), paths.next()) else {
        return Err(error());
    };
    let lines = members.iter().filter(|(name, _)| !FILES.contains(&name.as_str()));
    let lines = lines.map(|(name, value)| (name.clone(), value.clone()));
    Ok(Value::Object(std::iter::once(("file_path".into(), path.into())).chain(lines).collect::<Map>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(native: &str, input: Value) -> Result<Vec<Value>, EventError> {
        Ok(normalize(native, &input)?.calls.into_iter().map(|call| call.input).collect())
    }

    #[test]
    fn every_form_of_commands_is_read() {
        for (input, commands) in [
            (json!({ "commands": ["a", "b"] }), vec!["a", "b"]),
            (json!({ "commands": "a b" }), vec!["a b"]),
            (json!({ "command": "a b" }), vec!["a b"]),
            (json!({ "cmd": "a b" }), vec!["a b"]),
            (json!(["a", "b"]), vec!["a", "b"]),
            (json!("a b"), vec!["a b"]),
            (json!({ "command": "rm", "args": ["-rf", "it's"] }), vec![r"'rm' '-rf' 'it'\''s'"]),
            (json!({ "commands": { "command": "rm", "args": ["x"] } }), vec!["'rm' 'x'"]),
            (json!({ "commands": ["a", { "command": "rm", "args": ["x"] }] }), vec!["a", "'rm' 'x'"]),
        ] {
            let expected: Vec<Value> = commands.iter().map(|text| json!({ "command": text })).collect();
            assert_eq!(inputs("run_commands", input.clone()), Ok(expected), "{input}");
        }
    }

    #[test]
    fn every_form_of_files_is_read() {
        let file = |path: &str| json!({ "file_path": path });
        for (input, files) in [
            (
                json!({ "files": [{ "path": "a", "start_line": 2 }] }),
                vec![json!({ "file_path": "a", "start_line": 2 })],
            ),
            (json!({ "files": ["a", { "filePath": "b" }] }), vec![file("a"), file("b")]),
            (json!({ "files": { "path": "a" } }), vec![file("a")]),
            (json!({ "file_paths": "a" }), vec![file("a")]),
            (json!({ "paths": ["a"] }), vec![file("a")]),
            (json!({ "file_path": "a" }), vec![file("a")]),
            (json!([{ "path": "a" }, "b"]), vec![file("a"), file("b")]),
            (json!("a"), vec![file("a")]),
        ] {
            assert_eq!(inputs("read_files", input.clone()), Ok(files), "{input}");
        }
    }

    #[test]
    fn inputs_that_could_be_read_in_two_ways_are_errors() {
        for (native, input) in [
            ("run_commands", json!({})),
            ("run_commands", json!({ "commands": [] })),
            ("run_commands", json!({ "commands": ["ls"], "command": "rm" })),
            ("run_commands", json!({ "commands": [{ "command": "rm", "args": "x" }] })),
            ("run_commands", json!({ "commands": [1] })),
            ("run_commands", json!(null)),
            ("read_files", json!({ "files": ["a"], "paths": ["b"] })),
            ("read_files", json!({ "files": [{ "path": "a", "filePath": "b" }] })),
            ("read_files", json!({ "files": [{ "start_line": 1 }] })),
            ("apply_patch", json!({ "input": "rm" })),
            ("apply_patch", json!({})),
            ("editor", json!("a")),
        ] {
            assert!(normalize(native, &input).is_err(), "{native} {input}");
        }
    }
}
