//! JSON input files of commands: `--tools` and `--context`.

use std::path::Path;

use super::exit::CommandError;
use callgate::file_access::{FileSandbox, MAX_FILE_BYTES, ReadError};
use callgate::json::{self, Map, Value};
use callgate::tools::{self, ToolDescriptor, ToolListError};

/// Reads `--tools`: a JSON array of tools, or the result of an MCP `tools/list`.
pub(super) fn read_tools(path: &Path) -> Result<Vec<ToolDescriptor>, CommandError> {
    tools::parse_list(&read_file(path)?).map_err(|error| match error {
        ToolListError::Json(error) => json_error(path, &error),
        ToolListError::UnsupportedSchema { .. } => {
            CommandError::new(format!("`{}`: {error}", path.display()))
        }
        error => CommandError::new(format!("`{}` is {error}", path.display())),
    })
}

/// Reads `--context`: a JSON object.
pub(super) fn read_context(path: &Path) -> Result<Map, CommandError> {
    match parse_json(path, &read_file(path)?)? {
        Value::Object(members) => Ok(members),
        other => Err(CommandError::new(format!(
            "`{}` must be a JSON object such as `{{\"principal\": \"ana\"}}`, but is {}",
            path.display(),
            json::JsonType::from_value(&other)
        ))),
    }
}

/// Reads a regular file of limited size. A symbolic link that leads out of its directory is not followed: its author may not be the
/// user who passes the path.
fn read_file(path: &Path) -> Result<String, CommandError> {
    let trouble = |why: &str| CommandError::new(format!("`{}` can't be read: {why}", path.display()));
    let bytes = FileSandbox::from_paths(&[path.to_owned()]).read(path).map_err(|error| match error {
        ReadError::Unreadable(kind) => trouble(&kind.to_string()),
        // A path in a missing directory is outside of every directory.
        ReadError::OutsideSandbox if !path.exists() => trouble(&std::io::ErrorKind::NotFound.to_string()),
        ReadError::OutsideSandbox => {
            trouble("it is a symbolic link out of its directory; pass the target's path instead")
        }
        ReadError::Directory => trouble("it is a directory"),
        ReadError::NotRegular => trouble("it is not a regular file"),
        ReadError::TooLarge | ReadError::BundleTooLarge => {
            trouble(&format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20))
        }
    })?;
    String::from_utf8(bytes).map_err(|_| trouble("it is not UTF-8"))
}

fn parse_json(path: &Path, text: &str) -> Result<Value, CommandError> {
    json::parse(text).map_err(|error| json_error(path, &error.into()))
}

fn json_error(path: &Path, error: &json::Error) -> CommandError {
    let position = error.position().map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
    CommandError::new(format!("{}{position}: {}", path.display(), error.message()))
}
