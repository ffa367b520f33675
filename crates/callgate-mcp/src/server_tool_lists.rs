//! The tools of the servers of [`ToolServers`](super::ToolServers), as they were last listed → the catalog that calls are checked against.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use callgate::engine::Engine;
use callgate::tools::{ToolCatalog, ToolDescriptor, add_declared};

/// The tools of all servers.
pub(super) struct ServerToolLists {
    engine: Engine,
    by_server: Mutex<BTreeMap<String, ServerToolList>>,
    catalog: RwLock<Arc<ToolCatalog>>,
    /// The number of servers so far.
    count: AtomicU64,
}

/// The tools of a server.
struct ServerToolList {
    /// Distinguishes the server from a removed one with the same name, which may still list its tools.
    number: u64,
    tools: Vec<ToolDescriptor>,
}

impl ServerToolLists {
    pub(super) fn new(engine: &Engine) -> Self {
        let catalog = ToolCatalog::new(engine.session().tools().iter().cloned());
        Self {
            engine: engine.clone(),
            by_server: Mutex::default(),
            catalog: RwLock::new(Arc::new(catalog)),
            count: AtomicU64::new(0),
        }
    }

    /// A number for a new server.
    pub(super) fn new_server_number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// The tools of the engine and of all servers.
    pub(super) fn catalog(&self) -> Arc<ToolCatalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn by_server(&self) -> MutexGuard<'_, BTreeMap<String, ServerToolList>> {
        self.by_server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the tools of a server, unless it was removed.
    pub(super) fn replace(&self, server: &str, number: u64, tools: &[ToolDescriptor]) {
        let rules = self.engine.rules();
        let mut tools = tools.to_vec();
        add_declared(&mut tools, rules.tools(), server);
        let mut by_server = self.by_server();
        if let Some(listed) = by_server.get_mut(server).filter(|listed| listed.number == number) {
            listed.tools = tools;
            self.update_catalog(&by_server);
        }
    }

    /// Keeps the tools of servers that stay, expects those of new ones, and forgets the others. Servers by name, with their numbers.
    pub(super) fn set_servers<'s>(&self, servers: impl Iterator<Item = (&'s str, u64)>) {
        let mut by_server = self.by_server();
        let mut before = std::mem::take(&mut *by_server);
        for (name, number) in servers {
            let known = before.remove(name).filter(|listed| listed.number == number);
            let listed = known.unwrap_or(ServerToolList { number, tools: Vec::new() });
            by_server.insert(name.to_owned(), listed);
        }
        self.update_catalog(&by_server);
    }

    fn update_catalog(&self, by_server: &BTreeMap<String, ServerToolList>) {
        let of_servers = by_server.values().flat_map(|listed| listed.tools.iter().cloned());
        let all = self.engine.session().tools().to_vec().into_iter().chain(of_servers);
        let catalog = Arc::new(self.catalog().replaced_by(all));
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = catalog;
    }
}
