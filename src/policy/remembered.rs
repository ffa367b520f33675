//! The chains of tools that were called, found again by the tool's name. Reading takes no lock and allocates nothing.
//!
//! A chain that was evicted is linked again from the same rules, so eviction changes how long a decision takes and never the decision. Names
//! that nobody calls again give way first: whoever invents names does not evict the tools that others use.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use foldhash::fast::RandomState;

use super::Chain;

/// Names are spread over so many buckets, a power of two.
const BUCKETS: usize = 256;

/// Names that one bucket remembers; a further one takes the place of the oldest that was not called again (the clock algorithm). Names come from models, so the memory is
/// bounded; and as a bucket is copied whenever it learns a name, it is small.
const NAMES_OF_A_BUCKET: usize = 16;

/// What is remembered. Changes by exchanging whole buckets.
#[derive(Debug)]
pub(super) struct Remembered {
    hasher: RandomState,
    buckets: Box<[ArcSwapOption<Bucket>]>,
}

type Bucket = Vec<Known>;

#[derive(Clone, Debug)]
struct Known {
    hash: u64,
    /// Most calls name no server, and to compare empty texts is slow: it makes the processor recover from a read that leads
    /// nowhere (measured: half of a decision).
    server: Option<Arc<str>>,
    tool: Arc<str>,
    chain: Arc<Chain>,
    /// It was called again since it was remembered, or since it was spared last.
    called_again: Arc<AtomicBool>,
}

impl Known {
    fn is(&self, hash: u64, server: &str, tool: &str) -> bool {
        self.hash == hash
            && *self.tool == *tool
            && match &self.server {
                None => server.is_empty(),
                Some(own) => **own == *server,
            }
    }
}

impl Default for Remembered {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            buckets: (0..BUCKETS).map(|_| ArcSwapOption::empty()).collect(),
        }
    }
}

impl Remembered {
    /// The chain of this tool; where it is not known, what `link` makes of the name, which is remembered.
    pub(super) fn get_or_link(&self, server: &str, tool: &str, link: impl FnOnce() -> Chain) -> Arc<Chain> {
        let hash =
            if server.is_empty() { self.hasher.hash_one(tool) } else { self.hasher.hash_one((server, tool)) };
        let Some(slot) = self.buckets.get(hash as usize % BUCKETS) else { return Arc::new(link()) };
        let bucket = slot.load();
        let known = bucket.as_deref().map(Vec::as_slice).unwrap_or_default();
        if let Some(known) = known.iter().find(|known| known.is(hash, server, tool)) {
            // Mostly it was: then nothing is written that other threads read.
            if !known.called_again.load(Ordering::Relaxed) {
                known.called_again.store(true, Ordering::Relaxed);
            }
            return Arc::clone(&known.chain);
        }
        let chain = Arc::new(link());
        let server = (!server.is_empty()).then(|| server.into());
        let called_again = Arc::new(AtomicBool::new(false));
        let newest = Known { hash, server, tool: tool.into(), chain: Arc::clone(&chain), called_again };
        let kept = spared(known);
        // Two threads may both add; the one that loses is found missing again at its next call.
        slot.store(Some(Arc::new(kept.into_iter().chain([newest]).collect())));
        chain
    }

    /// Calls this with the server and the tool of everything that is remembered.
    pub(super) fn each_name(&self, mut seen: impl FnMut(&str, &str)) {
        for slot in &self.buckets {
            for known in slot.load_full().iter().flat_map(|bucket| bucket.iter()) {
                seen(known.server.as_deref().unwrap_or_default(), &known.tool);
            }
        }
    }
}

/// What of a bucket stays when one more name comes, in the order in which it gives way.
fn spared(known: &[Known]) -> VecDeque<Known> {
    let mut kept: VecDeque<Known> = known.iter().cloned().collect();
    while kept.len() >= NAMES_OF_A_BUCKET {
        let Some(oldest) = kept.pop_front() else { break };
        // Each is spared once, so this ends.
        if oldest.called_again.swap(false, Ordering::Relaxed) {
            kept.push_back(oldest);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::build_texts;

    /// Asks for a name. Says whether it had to be linked.
    fn links(remembered: &Remembered, server: &str, tool: &str) -> bool {
        let chains = build_texts([("a.yaml", "policies: []")]).chains.unwrap();
        let linked = Cell::new(false);
        remembered.get_or_link(server, tool, || {
            linked.set(true);
            chains.link(server, tool)
        });
        linked.get()
    }

    #[test]
    fn a_name_is_linked_once_and_tools_of_other_servers_are_other_tools() {
        let remembered = Remembered::default();
        for (server, tool) in [("", "a"), ("s", "a"), ("s", ""), ("", "s"), ("", "")] {
            assert!(links(&remembered, server, tool), "{server} {tool}");
            assert!(!links(&remembered, server, tool), "{server} {tool}");
        }
    }

    #[test]
    fn invented_names_do_not_evict_the_tools_that_others_call() {
        let remembered = Remembered::default();
        let chains = build_texts([("a.yaml", "policies: []")]).chains.unwrap();
        let tools: Vec<String> = (0..64).map(|number| format!("tool{number}")).collect();
        for tool in &tools {
            assert!(links(&remembered, "", tool));
        }
        for number in 0..10 * BUCKETS * NAMES_OF_A_BUCKET {
            if number % 1000 == 0 {
                for tool in &tools {
                    remembered.get_or_link("", tool, || panic!("{tool} was evicted after {number}"));
                }
            }
            let invented = format!("invented{number}");
            remembered.get_or_link("", &invented, || chains.link("", &invented));
        }
    }

    #[test]
    fn however_many_names_come_so_many_are_remembered_the_newest_among_them() {
        let remembered = Remembered::default();
        for number in 0..3 * BUCKETS * NAMES_OF_A_BUCKET {
            let name = format!("tool{number}");
            assert!(links(&remembered, "", &name));
            assert!(!links(&remembered, "", &name));
        }
        let mut names = BTreeSet::new();
        remembered.each_name(|_, tool| assert!(names.insert(tool.to_owned()), "{tool} twice"));
        assert!(names.len() <= BUCKETS * NAMES_OF_A_BUCKET);
    }
}
