//! An MCP server that responds immediately.

use std::io::{BufRead as _, Write as _};

/// Answers over stdio until its input ends.
pub fn serve_lines() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if let Some(answer) = answer(&line) {
            let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
        }
    }
}

/// The response to a message. `None` if it is a notification.
pub fn answer(text: &str) -> Option<String> {
    let message: callgate::json::Value = callgate::json::from_str(text).ok()?;
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => {
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"immediate","version":"1"}}"#
        }
        "tools/list" => r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
        "tools/call" => r#"{"content":[{"type":"text","text":"Echo: hello"}]}"#,
        _ => "{}",
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}
