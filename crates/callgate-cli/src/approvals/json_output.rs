//! JSON output of `callgate approvals`, as described in docs/approvals.md.

use std::io::Write;

use super::ApprovalsError;
use crate::exit::CommandError;
use crate::output::Output;
use callgate::json::{Value, json};

/// The version of the JSON format.
const VERSION: u64 = 1;

pub(super) fn write_json(content: &Value, output: &mut Output) -> Result<(), ApprovalsError> {
    let mut document = json!({ "version": VERSION });
    if let (Value::Object(document), Value::Object(content)) = (&mut document, content) {
        document.extend(content.clone());
    }
    let text =
        callgate::json::to_string_pretty(&document).map_err(|error| CommandError::new(error.to_string()))?;
    Ok(writeln!(output, "{text}")?)
}
