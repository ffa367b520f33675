//! The cached tools of one server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::argument_names;
use super::method;
use callgate::json::Value;
use callgate::tools::ToolDescriptor;

/// The cached tools of a server, as far as it has listed them.
#[derive(Debug, Default)]
pub(super) struct ToolCache {
    cache: Mutex<CachedTools>,
    /// Held while the list is requested.
    load_lock: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct CachedTools {
    tools: HashMap<String, Value>,
    /// The list is complete, and has not changed since.
    is_complete: bool,
}

impl ToolCache {
    fn cache(&self) -> MutexGuard<'_, CachedTools> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Invalidates the list: the server's tools have changed.
    pub(super) fn invalidate(&self) {
        self.cache().is_complete = false;
    }

    /// Whether the list is complete, and has not changed since.
    pub(super) fn is_complete(&self) -> bool {
        self.cache().is_complete
    }

    /// Begins to load the list. Waits while another call does; it may be complete after that.
    pub(super) async fn lock_for_load(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.load_lock.lock().await
    }

    /// Removes all tools.
    pub(super) fn clear(&self) {
        self.cache().tools.clear();
    }

    /// Adds a part of the list.
    pub(super) fn add(&self, tools: &[Value]) {
        let mut cache = self.cache();
        for tool in tools {
            if let Some(name) = tool.get("name").and_then(Value::as_str) {
                cache.tools.insert(name.to_owned(), tool.clone());
            }
        }
    }

    /// Completes the list.
    pub(super) fn complete(&self) {
        self.cache().is_complete = true;
    }

    /// Whether a tool of this name is known.
    pub(super) fn has(&self, name: &str) -> bool {
        self.cache().tools.contains_key(name)
    }

    /// A tool whose name a lenient server may read in this spelling.
    pub(super) fn similar(&self, name: &str) -> Option<String> {
        let cache = self.cache();
        let is_similar = |other: &&String| method::plain(other).eq(method::plain(name));
        cache.tools.keys().find(is_similar).cloned()
    }

    /// An argument that lenient servers read as another argument of the tool.
    pub(super) fn ambiguous_argument(&self, tool: &str, given: &Value) -> Option<String> {
        let cache = self.cache();
        argument_names::find_ambiguous(cache.tools.get(tool)?.get("inputSchema")?, given).map(str::to_owned)
    }

    /// The server's description of a tool.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        self.cache().tools.get(name).cloned()
    }

    /// All tools, sorted by name.
    pub(super) fn all(&self) -> Vec<(String, Value)> {
        let cache = self.cache();
        let mut all: Vec<_> = cache.tools.iter().map(|(name, tool)| (name.clone(), tool.clone())).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// All tools as the session knows them. `server`: the server's name.
    pub(super) fn descriptors(&self, server: &str) -> Vec<ToolDescriptor> {
        self.cache().tools.values().filter_map(|tool| descriptor(tool, server)).collect()
    }
}

fn descriptor(tool: &Value, server: &str) -> Option<ToolDescriptor> {
    Some(ToolDescriptor {
        name: tool.get("name")?.as_str()?.to_owned(),
        description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
        input_schema: tool.get("inputSchema").cloned(),
        output_schema: tool.get("outputSchema").cloned(),
        annotations: tool.get("annotations").cloned(),
        server: Some(server.to_owned()),
        once: false,
        idempotent: false,
    })
}
