//! Finds calls that a server may run although policies evaluated something else, and calls of tools that nobody has reviewed.

use super::connection::{ClientConnection, Upstream};
use super::pins::PinStatus;
use callgate::json::Value;
use callgate::safe_text::escape_controls;

/// Why a call can't be evaluated.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallProblem {
    /// A server with lenient parsing would run another call than the one that policies see.
    Ambiguous(String),
    /// Its tool has not been reviewed.
    Quarantined(String),
}

/// Finds the problem of a call, whose server's tools are loaded. `names`: of the tool, for the client and at the server.
pub(super) fn find_call_problem(
    connection: &ClientConnection,
    upstream: &Upstream,
    names: (&str, &str),
    arguments: &Value,
) -> Option<CallProblem> {
    let (name, tool) = names;
    // A server with lenient name matching would run a tool that policies did not evaluate.
    if !upstream.tools().has(tool)
        && let Some(meant) = upstream.tools().similar(tool)
    {
        let (name, meant) = (escape_controls(name), escape_controls(&meant));
        return Some(CallProblem::Ambiguous(format!("unknown tool `{name}`; did you mean `{meant}`?")));
    }
    if let Some(argument) = upstream.tools().ambiguous_argument(tool, arguments) {
        return Some(CallProblem::Ambiguous(format!(
            "ambiguous argument `{}`: some parsers read it as another argument of `{}`",
            escape_controls(&argument),
            escape_controls(name)
        )));
    }
    connection.gateway.pins.as_ref()?;
    let described = upstream.tools().get(tool).unwrap_or_default();
    let why = match connection.gateway.pin_status(upstream.name(), tool, &described) {
        PinStatus::Accepted => return None,
        PinStatus::New => "has not been reviewed",
        PinStatus::Changed => "has changed since it was reviewed",
    };
    let tool = escape_controls(tool);
    Some(CallProblem::Quarantined(format!(
        "the tool `{tool}` {why}: a person must review and accept it first"
    )))
}
