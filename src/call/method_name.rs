//! Names of MCP methods among the names of tools: `method:` and the method, as in `method:resources/read`.
//!
//! A request by a method is evaluated as a call of that name. Patterns for tools never match such a name, and patterns for methods match
//! nothing else ([`Matcher`](crate::matcher::Matcher)).

/// The prefix of a method in the place of a tool's name.
pub const METHOD_PREFIX: &str = "method:";

/// The method in a name. Returns `None` for the name of a tool.
pub fn method_name(name: &str) -> Option<&str> {
    name.strip_prefix(METHOD_PREFIX)
}

/// The name of a method in the place of a tool's name.
pub fn qualified_method(method: &str) -> String {
    format!("{METHOD_PREFIX}{method}")
}

/// The requests that are not evaluated as methods, with the reason.
const OTHER_REQUESTS: [(&str, &str); 10] = [
    ("tools/call", "calls of tools are matched by `tool`"),
    ("tools/list", "tools that are always denied are not listed: deny them by `tool`"),
    ("tasks/list", TASKS),
    ("tasks/get", TASKS),
    ("tasks/result", TASKS),
    ("tasks/update", TASKS),
    ("tasks/cancel", TASKS),
    ("initialize", HANDSHAKE),
    ("server/discover", HANDSHAKE),
    ("ping", "it has no effect"),
];

const TASKS: &str = "a task belongs to the call that began it: match that call by `tool`";
const HANDSHAKE: &str = "a connection can't begin without it";

/// Why requests by a method are not evaluated. Returns `None` if they are.
pub fn unevaluated_method(method: &str) -> Option<&'static str> {
    OTHER_REQUESTS.iter().find(|(other, _)| *other == method).map(|(_, why)| *why)
}
