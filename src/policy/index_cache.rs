//! Cache of [`ToolPolicies`]s by server and tool name. A lookup takes no lock and allocates nothing.
//!
//! An evicted chain is rebuilt from the same rules, so eviction affects the duration of a decision and never its result. Names that
//! were called only once are evicted first: a client that invents names does not evict the tools that others use.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use foldhash::fast::RandomState;

use super::ToolPolicies;

/// Number of buckets that the names are spread over, a power of two.
const BUCKET_COUNT: usize = 256;

/// Capacity of a bucket. A new name replaces the oldest one that was not called again (the clock algorithm). Names come from models,
/// so the memory is bounded; a bucket is copied for every new name, so it is small.
const BUCKET_CAPACITY: usize = 16;

/// The cache. It changes by replacing whole buckets.
#[derive(Debug)]
pub(super) struct IndexCache {
    hasher: RandomState,
    buckets: Box<[ArcSwapOption<Bucket>]>,
}

type Bucket = Vec<IndexCacheEntry>;

#[derive(Clone, Debug)]
struct IndexCacheEntry {
    hash: u64,
    /// `None` for calls without a server, which most are. Comparing empty strings is slow: the processor recovers from a read of a
    /// dangling address (measured: half of a decision).
    server: Option<Arc<str>>,
    tool: Arc<str>,
    chain: Arc<ToolPolicies>,
    /// Whether the tool was called again since it was added, or since it last survived an eviction.
    used_again: Arc<AtomicBool>,
}

impl IndexCacheEntry {
    fn matches(&self, hash: u64, server: &str, tool: &str) -> bool {
        self.hash == hash
            && *self.tool == *tool
            && match &self.server {
                None => server.is_empty(),
                Some(own) => **own == *server,
            }
    }
}

impl Default for IndexCache {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            buckets: (0..BUCKET_COUNT).map(|_| ArcSwapOption::empty()).collect(),
        }
    }
}

impl IndexCache {
    /// Returns the cached chain of this tool. If there is none, builds it with `build` and stores it.
    pub(super) fn get_or_build(
        &self,
        server: &str,
        tool: &str,
        build: impl FnOnce() -> ToolPolicies,
    ) -> Arc<ToolPolicies> {
        let hash =
            if server.is_empty() { self.hasher.hash_one(tool) } else { self.hasher.hash_one((server, tool)) };
        let Some(slot) = self.buckets.get(hash as usize % BUCKET_COUNT) else { return Arc::new(build()) };
        let bucket = slot.load();
        let known = bucket.as_deref().map(Vec::as_slice).unwrap_or_default();
        if let Some(known) = known.iter().find(|known| known.matches(hash, server, tool)) {
            // Mostly already set: then nothing is written that other threads read.
            if !known.used_again.load(Ordering::Relaxed) {
                known.used_again.store(true, Ordering::Relaxed);
            }
            return Arc::clone(&known.chain);
        }
        let chain = Arc::new(build());
        let server = (!server.is_empty()).then(|| server.into());
        let used_again = Arc::new(AtomicBool::new(false));
        let newest =
            IndexCacheEntry { hash, server, tool: tool.into(), chain: Arc::clone(&chain), used_again };
        let survivors = surviving_entries(known);
        // Two threads may both add an entry; the lost one is added at its next call.
        slot.store(Some(Arc::new(survivors.into_iter().chain([newest]).collect())));
        chain
    }

    /// Calls `seen` with the server and the tool of every entry.
    pub(super) fn for_each_name(&self, mut seen: impl FnMut(&str, &str)) {
        for slot in &self.buckets {
            for known in slot.load_full().iter().flat_map(|bucket| bucket.iter()) {
                seen(known.server.as_deref().unwrap_or_default(), &known.tool);
            }
        }
    }
}

/// Returns the entries of a bucket that stay when a name is added, in the order of eviction.
fn surviving_entries(known: &[IndexCacheEntry]) -> VecDeque<IndexCacheEntry> {
    let mut survivors: VecDeque<IndexCacheEntry> = known.iter().cloned().collect();
    while survivors.len() >= BUCKET_CAPACITY {
        let Some(oldest) = survivors.pop_front() else { break };
        // Each entry survives once, so this ends.
        if oldest.used_again.swap(false, Ordering::Relaxed) {
            survivors.push_back(oldest);
        }
    }
    survivors
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::build_texts;

    /// Looks a name up. Returns whether its chain had to be built.
    fn links(cache: &IndexCache, server: &str, tool: &str) -> bool {
        let policies = build_texts([("a.yaml", "policies: []")]).policies.unwrap();
        let is_built = Cell::new(false);
        cache.get_or_build(server, tool, || {
            is_built.set(true);
            policies.build_tool_policies(server, tool)
        });
        is_built.get()
    }

    #[test]
    fn caches_by_server_and_tool() {
        let cache = IndexCache::default();
        for (server, tool) in [("", "a"), ("s", "a"), ("s", ""), ("", "s"), ("", "")] {
            assert!(links(&cache, server, tool), "{server} {tool}");
            assert!(!links(&cache, server, tool), "{server} {tool}");
        }
    }

    #[test]
    fn invented_names_do_not_evict_tools_in_use() {
        let cache = IndexCache::default();
        let policies = build_texts([("a.yaml", "policies: []")]).policies.unwrap();
        let tools: Vec<String> = (0..64).map(|number| format!("tool{number}")).collect();
        for tool in &tools {
            assert!(links(&cache, "", tool));
        }
        for number in 0..10 * BUCKET_COUNT * BUCKET_CAPACITY {
            if number % 1000 == 0 {
                for tool in &tools {
                    cache.get_or_build("", tool, || panic!("{tool} was evicted after {number}"));
                }
            }
            let invented = format!("invented{number}");
            cache.get_or_build("", &invented, || policies.build_tool_policies("", &invented));
        }
    }

    #[test]
    fn cache_is_bounded_and_holds_the_newest_name() {
        let cache = IndexCache::default();
        for number in 0..3 * BUCKET_COUNT * BUCKET_CAPACITY {
            let name = format!("tool{number}");
            assert!(links(&cache, "", &name));
            assert!(!links(&cache, "", &name));
        }
        let mut names = BTreeSet::new();
        cache.for_each_name(|_, tool| assert!(names.insert(tool.to_owned()), "{tool} twice"));
        assert!(names.len() <= BUCKET_COUNT * BUCKET_CAPACITY);
    }
}
