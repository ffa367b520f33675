//! The policies of the tools that were called: built once for each name, and shared by names with the same policies.
//!
//! A lookup takes no lock and allocates nothing. An evicted entry is rebuilt from the same rules, so eviction affects the
//! duration of a decision and never its result. Names that were called only once are evicted first: a client that invents names does
//! not evict the tools that others use.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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
pub(super) struct ToolPolicyCache {
    hasher: RandomState,
    buckets: Box<[ArcSwapOption<Bucket>]>,
}

type Bucket = Vec<CachedTool>;

#[derive(Clone, Debug)]
struct CachedTool {
    hash: u64,
    /// `None` for calls without a server, which most are. Comparing empty strings is slow: the processor recovers from a read of a
    /// dangling address (measured: half of a decision).
    server: Option<Arc<str>>,
    tool: Arc<str>,
    chain: Arc<ToolPolicies>,
    /// Whether the tool was called again since it was added, or since it last survived an eviction.
    used_again: Arc<AtomicBool>,
}

impl CachedTool {
    fn matches(&self, hash: u64, server: &str, tool: &str) -> bool {
        self.hash == hash
            && *self.tool == *tool
            && match &self.server {
                None => server.is_empty(),
                Some(own) => **own == *server,
            }
    }
}

impl Default for ToolPolicyCache {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            buckets: (0..BUCKET_COUNT).map(|_| ArcSwapOption::empty()).collect(),
        }
    }
}

impl ToolPolicyCache {
    /// Returns the cached chain of this tool. If there is none, builds it with `build` and stores it.
    pub(super) fn get_or_build(
        &self,
        server: &str,
        tool: &str,
        build: impl FnOnce() -> Arc<ToolPolicies>,
    ) -> Arc<ToolPolicies> {
        let hash =
            if server.is_empty() { self.hasher.hash_one(tool) } else { self.hasher.hash_one((server, tool)) };
        let Some(slot) = self.buckets.get(hash as usize % BUCKET_COUNT) else { return build() };
        let bucket = slot.load();
        let known = bucket.as_deref().map(Vec::as_slice).unwrap_or_default();
        if let Some(known) = known.iter().find(|known| known.matches(hash, server, tool)) {
            // Mostly already set: then nothing is written that other threads read.
            if !known.used_again.load(Ordering::Relaxed) {
                known.used_again.store(true, Ordering::Relaxed);
            }
            return Arc::clone(&known.chain);
        }
        let chain = build();
        let server = (!server.is_empty()).then(|| server.into());
        let used_again = Arc::new(AtomicBool::new(false));
        let newest = CachedTool { hash, server, tool: tool.into(), chain: Arc::clone(&chain), used_again };
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
fn surviving_entries(known: &[CachedTool]) -> VecDeque<CachedTool> {
    let mut survivors: VecDeque<CachedTool> = known.iter().cloned().collect();
    while survivors.len() >= BUCKET_CAPACITY {
        let Some(oldest) = survivors.pop_front() else { break };
        // Each entry survives once, so this ends.
        if oldest.used_again.swap(false, Ordering::Relaxed) {
            survivors.push_back(oldest);
        }
    }
    survivors
}

/// The policies of tools by what they consist of, so that names that nobody knows share those for all tools: an attacker who invents names
/// costs no copies.
#[derive(Debug, Default)]
pub(super) struct SharedToolPolicies(Mutex<HashMap<Box<[u32]>, Weak<ToolPolicies>>>);

/// With fewer entries than this, those that are not used any more are kept.
const MIN_SHARED: usize = 64;

impl SharedToolPolicies {
    /// Returns the policies with this content, built by `build` if no tool has them yet.
    pub(super) fn get_or_build(
        &self,
        content: Box<[u32]>,
        build: impl FnOnce() -> ToolPolicies,
    ) -> Arc<ToolPolicies> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shared.get(&content).and_then(Weak::upgrade) {
            return known;
        }
        if shared.len() >= MIN_SHARED && shared.len() == shared.capacity() {
            shared.retain(|_, policies| policies.strong_count() > 0);
        }
        let built = Arc::new(build());
        shared.insert(content, Arc::downgrade(&built));
        built
    }
}

#[cfg(test)]
mod tests;
