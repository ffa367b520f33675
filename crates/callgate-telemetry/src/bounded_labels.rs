//! Label values that calls supply, bounded in number and length: a name → itself, or `other`.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

/// The label of everything beyond the bounds.
pub(crate) const OTHER: &str = "other";
/// The longest label value, in bytes.
const MAX_LENGTH: usize = 128;
/// The number of tools of one server.
const MAX_TOOLS_PER_SERVER: usize = 200;
/// The number of servers.
const MAX_SERVERS: usize = 100;

/// The first distinct names, up to a number.
#[derive(Debug)]
pub(crate) struct BoundedNames {
    capacity: usize,
    admitted: RwLock<HashSet<String>>,
}

impl BoundedNames {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, admitted: RwLock::default() }
    }

    /// The label of a name, which is admitted if there is room.
    pub(crate) fn label(&self, name: &str) -> String {
        let is_admitted = self.admitted.read().unwrap_or_else(PoisonError::into_inner).contains(name);
        let is_admitted = is_admitted
            || name.len() <= MAX_LENGTH && {
                let mut admitted = self.admitted.write().unwrap_or_else(PoisonError::into_inner);
                admitted.contains(name) || admitted.len() < self.capacity && admitted.insert(name.to_owned())
            };
        if is_admitted { name } else { OTHER }.to_owned()
    }
}

/// The tools that have a label of their own. A name becomes one only by [`admit`](Self::admit), so that names which a model invents
/// do not use up the room of tools that exist.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    servers: RwLock<HashMap<String, HashSet<String>>>,
}

impl ToolNames {
    /// Gives tools of a server a label of their own, as long as the server's share lasts.
    pub(crate) fn admit<'n>(&self, server: &str, tools: impl IntoIterator<Item = &'n str>) {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        if server.len() > MAX_LENGTH || !servers.contains_key(server) && servers.len() >= MAX_SERVERS {
            return;
        }
        let admitted = servers.entry(server.to_owned()).or_default();
        for tool in tools.into_iter().filter(|tool| tool.len() <= MAX_LENGTH) {
            if admitted.len() < MAX_TOOLS_PER_SERVER {
                admitted.insert(tool.to_owned());
            }
        }
    }

    /// Whether a tool has a label of its own.
    pub(crate) fn has(&self, server: &str, tool: &str) -> bool {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.get(server).is_some_and(|tools| tools.contains(tool))
    }

    /// The labels of a server and of one of its tools.
    pub(crate) fn labels(&self, server: &str, tool: &str) -> (String, String) {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        match servers.get(server) {
            Some(tools) if tools.contains(tool) => (server.to_owned(), tool.to_owned()),
            Some(_) => (server.to_owned(), OTHER.to_owned()),
            // Calls of tools without a server are common, and no label is as good as `other`.
            None if server.is_empty() => (String::new(), OTHER.to_owned()),
            None => (OTHER.to_owned(), OTHER.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_capacity_are_other() {
        let names = BoundedNames::new(2);
        let labels = ["a", "b", "c", "a", "b"].map(|name| names.label(name));
        assert_eq!(labels, ["a", "b", OTHER, "a", "b"]);
    }

    #[test]
    fn a_long_name_uses_up_no_room() {
        let names = BoundedNames::new(1);
        assert_eq!(names.label(&"x".repeat(MAX_LENGTH + 1)), OTHER);
        assert_eq!(names.label("a"), "a");
    }

    #[test]
    fn a_server_fills_only_its_own_share() {
        let names = ToolNames::default();
        let many: Vec<String> = (0..100_000).map(|number| format!("tool{number}")).collect();
        names.admit("hostile", many.iter().map(String::as_str));
        names.admit("honest", ["read"]);
        assert!(names.has("honest", "read"));
        let labelled = many.iter().filter(|tool| names.has("hostile", tool)).count();
        assert_eq!(labelled, MAX_TOOLS_PER_SERVER);
        assert_eq!(names.labels("hostile", "tool99999"), ("hostile".to_owned(), OTHER.to_owned()));
    }

    #[test]
    fn invented_servers_are_other() {
        let names = ToolNames::default();
        for number in 0..100_000 {
            names.admit(&format!("server{number}"), ["read"]);
        }
        assert_eq!(names.servers.read().unwrap().len(), MAX_SERVERS);
        assert_eq!(names.labels("server99999", "read"), (OTHER.to_owned(), OTHER.to_owned()));
    }
}
