//! The JSON files that commands take beside rules.

use std::path::Path;

use super::exit::Stop;
use crate::json::{self, Map, Value};
use crate::tools::{self, ToolDescriptor, ToolsError};

/// Reads `--tools`: a JSON list of tools, or the result of an MCP `tools/list`.
pub(super) fn read_tools(path: &Path) -> Result<Vec<ToolDescriptor>, Stop> {
    tools::read_list(&read(path)?).map_err(|error| match error {
        ToolsError::Json(error) => misplaced(path, &error),
        ToolsError::NotAList => Stop::trouble(format!("`{}` is {error}", path.display())),
    })
}

/// Reads `--context`: a JSON object.
pub(super) fn read_context(path: &Path) -> Result<Map, Stop> {
    match parse(path, &read(path)?)? {
        Value::Object(members) => Ok(members),
        other => Err(Stop::trouble(format!(
            "`{}` must be a JSON object such as `{{\"principal\": \"ana\"}}`, this is {}",
            path.display(),
            json::JsonType::of(&other)
        ))),
    }
}

fn read(path: &Path) -> Result<String, Stop> {
    std::fs::read_to_string(path)
        .map_err(|error| Stop::trouble(format!("`{}` can't be read: {error}", path.display())))
}

fn parse(path: &Path, text: &str) -> Result<Value, Stop> {
    json::parse(text).map_err(|error| misplaced(path, &error.into()))
}

fn misplaced(path: &Path, error: &json::Error) -> Stop {
    let place = error.position().map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
    Stop::trouble(format!("{}{place}: {}", path.display(), error.message()))
}
