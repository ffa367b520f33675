//! The MCP methods and members that the gateway handles itself. It forwards all other methods unchanged.

pub(super) use callgate::safe_text::fold_name as plain;

use callgate::json::{Key, Value};

/// The request that calls a tool.
pub(super) const TOOLS_CALL: &str = "tools/call";
/// The request that lists tools.
pub(super) const TOOLS_LIST: &str = "tools/list";
/// The request for the content of a resource.
pub(super) const READ_RESOURCE: &str = "resources/read";
/// The request for a prompt.
pub(super) const GET_PROMPT: &str = "prompts/get";
/// The handshake of protocol versions before 2026-07-28.
pub(super) const INITIALIZE: &str = "initialize";
/// The notification that completes the handshake.
pub(super) const INITIALIZED: &str = "notifications/initialized";
/// The request for a server's capabilities, since 2026-07-28.
pub(super) const DISCOVER: &str = "server/discover";
/// The server's request that asks the user through the client.
pub(super) const ELICIT: &str = "elicitation/create";
/// The member of `_meta` with the protocol version of a request; absent before 2026-07-28.
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with the client's capabilities, in each request.
pub(super) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The request that subscribes to changes while it is open, since 2026-07-28.
pub(super) const LISTEN: &str = "subscriptions/listen";
/// The request that lists tasks, without their results.
pub(super) const TASKS_LIST: &str = "tasks/list";
/// The request that asks whether the other end is there.
pub(super) const PING: &str = "ping";
/// The notification that cancels a request.
pub(super) const CANCELLED: &str = "notifications/cancelled";
/// The notification that the list of tools has changed.
pub(super) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// Whether a server with lenient name matching could read a method as a tool call: compares letters and digits only.
pub(super) fn resembles_tools_call(method: &str) -> bool {
    plain(method).eq(plain(TOOLS_CALL))
}

/// A member that lenient parsers read as one of these names: many that parse into structs ignore case.
pub(super) fn find_ambiguous_member<'m>(
    members: impl IntoIterator<Item = (&'m Key, &'m Value)>,
    names: &[&str],
) -> Option<&'m str> {
    let is_misread =
        |member: &str| !names.contains(&member) && names.iter().any(|name| plain(name).eq(plain(member)));
    members.into_iter().map(|(member, _)| member.as_str()).find(|member| is_misread(member))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_lenient_spellings_of_tools_call() {
        for method in [
            "tools/call",
            "Tools/Call",
            " tools/call",
            "tools//call",
            "tools.call",
            "toolsCall",
            "tools/call\0",
            "ｔools/call",
            "tool\u{17f}/call",
        ] {
            assert!(resembles_tools_call(method), "{method}");
        }
        for method in ["tools/list", "tools/calls", "prompts/get"] {
            assert!(!resembles_tools_call(method), "{method}");
        }
    }
}
