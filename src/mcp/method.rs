//! The methods that the gateway knows by name. All others pass as they are.

pub(super) use crate::text::folded_name as plain;

use crate::json::Value;

/// A client calls a tool.
pub(super) const TOOLS_CALL: &str = "tools/call";
/// A client asks which tools there are.
pub(super) const TOOLS_LIST: &str = "tools/list";
/// A client of the protocols before 2026-07-28 greets its server.
pub(super) const INITIALIZE: &str = "initialize";
/// It has read what the server answered.
pub(super) const INITIALIZED: &str = "notifications/initialized";
/// A client since 2026-07-28 asks what a server can do.
pub(super) const DISCOVER: &str = "server/discover";
/// A person is asked through the client.
pub(super) const ELICIT: &str = "elicitation/create";
/// The member of `_meta` in which a client says, with each request, which protocol it is in; those before 2026-07-28 have none.
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` in which a client says, with each request, what it can do.
pub(super) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// A client since 2026-07-28 asks to be told of changes, for as long as its request is open.
pub(super) const LISTEN: &str = "subscriptions/listen";
/// A request is not wanted any more.
pub(super) const CANCELLED: &str = "notifications/cancelled";
/// There are other tools now.
pub(super) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// Whether a server that is lenient with names could take a method for a tool call: letters and digits are what counts.
pub(super) fn may_be_read_as_tools_call(method: &str) -> bool {
    plain(method).eq(plain(TOOLS_CALL))
}

/// A member that some readers take for one of these: many that read into structs do not heed case.
pub(super) fn misread<'m>(
    members: impl IntoIterator<Item = (&'m String, &'m Value)>,
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
    fn spellings_that_a_lenient_server_may_take_for_a_tool_call() {
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
            assert!(may_be_read_as_tools_call(method), "{method}");
        }
        for method in ["tools/list", "tools/calls", "prompts/get"] {
            assert!(!may_be_read_as_tools_call(method), "{method}");
        }
    }
}
