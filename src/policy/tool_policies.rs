//! The policies for one tool: built once for each name, cached, and narrowed to those that may match a call by its values.
//!
//! A lookup in the cache takes no lock and allocates nothing. An evicted entry is rebuilt from the same rules, so eviction affects the
//! duration of a decision and never its result. Names that were called only once are evicted first: a client that invents names does
//! not evict the tools that others use.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::iter::{Copied, Peekable};
use std::slice::Iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::Policy;
use crate::call::{CallView, ContextReads};
use crate::json::JsonType;
use crate::matcher::ScalarKey;
use crate::path::{ArgumentNames, Path};

/// The policies for one tool, by phase, in evaluation order.
#[derive(Debug)]
pub struct ToolPolicies {
    /// The policies of the normalise phase.
    pub normalise: Box<[u32]>,
    /// The policies of the gate phase.
    pub gate: GateIndex,
    /// The policies that wrap the execution, outermost first.
    pub execute: Box<[u32]>,
    /// The facts that are stored when the tool starts.
    pub start: Box<[u32]>,
    /// The policies of the settle phase.
    pub settle: Box<[u32]>,
    /// The caches that a call of the tool invalidates.
    pub invalidates: Box<[u32]>,
    /// The context members read by the policies that an approval is bound to.
    pub context_reads: ContextReads,
    /// The arguments that enforced policies read.
    pub argument_reads: ArgumentNames,
    /// The arguments that templates of enforced policies name.
    pub template_arguments: ArgumentNames,
}

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

/// The policies of the gate phase. Those that require a certain value at a certain path are found by hash.
#[derive(Debug)]
pub struct GateIndex {
    always: Box<[u32]>,
    lookups: Box<[ValueIndex]>,
    hasher: RandomState,
}

/// All policies that require a value of one type at one path to equal one of their literals.
#[derive(Debug)]
struct ValueIndex {
    path: Path,
    json_type: JsonType,
    by_hash: FastHashMap<u64, Vec<u32>>,
    all_policies: Vec<u32>,
}

/// With fewer policies than this on one path, evaluation is as fast as a lookup.
const MIN_INDEXED_POLICIES: usize = 4;

impl GateIndex {
    pub(super) fn build(indices: Vec<u32>, policies: &[Policy]) -> Self {
        let hasher = RandomState::default();
        let mut groups: HashMap<(String, JsonType), Vec<u32>> = HashMap::new();
        let demand = |index: &u32| {
            policies
                .get(*index as usize)?
                .matcher
                .condition
                .as_ref()?
                .required_tests()
                .find_map(|test| test.index_keys())
        };
        for index in &indices {
            if let Some((path, keys)) = demand(index)
                && let Some(key) = keys.first()
            {
                groups.entry((path.text().to_owned(), key.json_type())).or_default().push(*index);
            }
        }
        groups.retain(|_, members| members.len() >= MIN_INDEXED_POLICIES);
        let mut always = indices;
        let mut lookups = Vec::new();
        for ((_, json_type), members) in groups {
            let mut by_hash: FastHashMap<u64, Vec<u32>> = FastHashMap::default();
            let mut tested_path = None;
            for index in &members {
                let Some((path, keys)) = demand(index) else { continue };
                for key in keys {
                    by_hash.entry(key.hash(&hasher)).or_default().push(*index);
                }
                tested_path = Some(path.clone());
            }
            if let Some(path) = tested_path {
                always.retain(|index| members.binary_search(index).is_err());
                lookups.push(ValueIndex { path, json_type, by_hash, all_policies: members });
            }
        }
        Self { always: always.into(), lookups: lookups.into(), hasher }
    }

    /// Returns the policies that may match this call; all others certainly do not.
    pub fn candidates(&self, view: &CallView<'_>) -> CandidatePolicies<'_> {
        let mut found: SmallVec<[u32; 32]> = SmallVec::new();
        for lookup in &self.lookups {
            match lookup.path.nodes(view) {
                Ok(nodes) => {
                    match nodes.first().map(|node| (ScalarKey::from_node(*node), node.json_type())) {
                        // Absent value: none of the policies matches.
                        None => {}
                        Some((Some(key), json_type)) if json_type == lookup.json_type => {
                            found.extend(
                                lookup.by_hash.get(&key.hash(&self.hasher)).into_iter().flatten().copied(),
                            );
                        }
                        // Value of another type: evaluate each policy, which reports that its test is undecided.
                        Some(_) => found.extend_from_slice(&lookup.all_policies),
                    }
                }
                Err(_) => found.extend_from_slice(&lookup.all_policies),
            }
        }
        found.sort_unstable();
        found.dedup();
        CandidatePolicies {
            always: self.always.iter().copied().peekable(),
            found: found.into_iter().peekable(),
        }
    }
}

/// Map with a fast hash function, for lookups on every call. A collision costs a comparison and never changes a result.
type FastHashMap<K, V> = HashMap<K, V, RandomState>;

/// Iterator over the policies that may match a call, in evaluation order: those evaluated for every call, merged with those
/// that the index found.
#[derive(Debug)]
pub struct CandidatePolicies<'g> {
    always: Peekable<Copied<Iter<'g, u32>>>,
    found: Peekable<smallvec::IntoIter<[u32; 32]>>,
}

impl Iterator for CandidatePolicies<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match (self.always.peek(), self.found.peek()) {
            (Some(always), Some(found)) if found < always => self.found.next(),
            (Some(_), _) => self.always.next(),
            (None, _) => self.found.next(),
        }
    }
}

#[cfg(test)]
mod tests;
