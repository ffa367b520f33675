//! The routes of the client's requests: method → [`Route`].
//!
//! The routes apply if there are several servers. A single server receives every request, but the gateway still evaluates tool calls, and
//! filters the list of tools and the handshake.

use super::method;

/// How a request of the client is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// By the server of the tool, after the policies have allowed the call.
    ToolCall,
    /// By the merged lists of all servers.
    Merge(ListKind),
    /// By the merged handshakes of all servers.
    Initialize,
    /// By the merged capabilities of all servers.
    Discover,
    /// By the gateway itself, with an empty result.
    Local,
    /// By the first result of all servers.
    Broadcast,
    /// By the first result of all servers, without a timeout: it is answered when the subscription ends.
    Subscribe,
    /// By the server of the prefixed name at this path.
    ByName(&'static [&'static str]),
    /// As `ByName`, or as `TryEach` if there is nothing at this path.
    ByOptionalName(&'static [&'static str]),
    /// By the first server that returns a result, one after the other: for resources by URI, tasks by id and unknown methods.
    TryEach,
}

/// A list that all servers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

/// The methods that the gateway knows.
const ROUTES: &[(&str, Route)] = &[
    (method::INITIALIZE, Route::Initialize),
    (method::DISCOVER, Route::Discover),
    ("ping", Route::Local),
    (method::TOOLS_LIST, Route::Merge(ListKind::Tools)),
    (method::TOOLS_CALL, Route::ToolCall),
    ("prompts/list", Route::Merge(ListKind::Prompts)),
    (method::GET_PROMPT, Route::ByName(&["name"])),
    ("completion/complete", Route::ByOptionalName(&["ref", "name"])),
    ("resources/list", Route::Merge(ListKind::Resources)),
    ("resources/templates/list", Route::Merge(ListKind::ResourceTemplates)),
    (method::READ_RESOURCE, Route::TryEach),
    ("resources/subscribe", Route::TryEach),
    ("resources/unsubscribe", Route::TryEach),
    (method::LISTEN, Route::Subscribe),
    ("logging/setLevel", Route::Broadcast),
    (method::TASKS_LIST, Route::TryEach),
    ("tasks/get", Route::TryEach),
    ("tasks/result", Route::TryEach),
    ("tasks/update", Route::TryEach),
    ("tasks/cancel", Route::TryEach),
];

/// The requests of servers that clients know.
pub(super) const SERVER_REQUESTS: [&str; 3] = ["sampling/createMessage", method::ELICIT, "roots/list"];

/// The known request that a lenient peer could read in a method that is none.
pub(super) fn misread_request(method: &str) -> Option<&'static str> {
    let known = ROUTES.iter().map(|(known, _)| *known).chain(SERVER_REQUESTS);
    known
        .clone()
        .all(|known| known != method)
        .then(|| known.into_iter().find(|known| method::plain(known).eq(method::plain(method))))?
}

/// Whether a peer could read a method as a request, so that it must not be sent as a notification.
pub(super) fn resembles_request(method: &str) -> bool {
    ROUTES.iter().any(|(known, _)| *known == method)
        || SERVER_REQUESTS.contains(&method)
        || misread_request(method).is_some()
}

impl Route {
    /// The route of a method, which is `TryEach` if the gateway does not know it.
    pub(super) fn from_method(method: &str) -> Self {
        ROUTES.iter().find(|(known, _)| *known == method).map_or(Self::TryEach, |(_, route)| *route)
    }
}

impl ListKind {
    /// The member of the result that has the list.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The methods of the protocol, as they are spelled in messages, and who answers them.
    const EXPECTED: &[(&str, Route)] = &[
        ("initialize", Route::Initialize),
        ("server/discover", Route::Discover),
        ("ping", Route::Local),
        ("tools/list", Route::Merge(ListKind::Tools)),
        ("tools/call", Route::ToolCall),
        ("prompts/list", Route::Merge(ListKind::Prompts)),
        ("prompts/get", Route::ByName(&["name"])),
        ("completion/complete", Route::ByOptionalName(&["ref", "name"])),
        ("resources/list", Route::Merge(ListKind::Resources)),
        ("resources/templates/list", Route::Merge(ListKind::ResourceTemplates)),
        ("resources/read", Route::TryEach),
        ("resources/subscribe", Route::TryEach),
        ("resources/unsubscribe", Route::TryEach),
        ("subscriptions/listen", Route::Subscribe),
        ("logging/setLevel", Route::Broadcast),
        ("tasks/list", Route::TryEach),
        ("tasks/get", Route::TryEach),
        ("tasks/result", Route::TryEach),
        ("tasks/update", Route::TryEach),
        ("tasks/cancel", Route::TryEach),
    ];

    #[test]
    fn each_method_has_its_route() {
        assert_eq!(ROUTES, EXPECTED);
        for (method, route) in EXPECTED {
            // The first row of a method counts, so a second one would have no effect.
            assert_eq!(Route::from_method(method), *route, "{method}");
            assert_eq!(*route == Route::ToolCall, method::resembles_tools_call(method), "{method}");
        }
    }

    #[test]
    fn lists_are_members_of_their_results() {
        let kinds = [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];
        let members = ["tools", "prompts", "resources", "resourceTemplates"];
        assert_eq!(kinds.map(ListKind::member), members);
    }

    #[test]
    fn unknown_methods_try_each_server() {
        for method in ["", "Tools/List", "tools/list ", "tools", "example.com/custom"] {
            assert_eq!(Route::from_method(method), Route::TryEach, "{method}");
        }
    }
}
