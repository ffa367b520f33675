//! Plan → [`Chains`]: immutable, indexed by tool, one revision.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter::{Copied, Peekable};
use std::slice::Iter;
use std::sync::Arc;

use foldhash::fast::RandomState;
use regex::{RegexSet, RegexSetBuilder};
use smallvec::SmallVec;

use super::remembered::Remembered;
use super::{Defaults, Mode, Plan, Policy, ReloadSettings};
use crate::call::{CallView, ContextReads, Phase};
use crate::json::JsonType;
use crate::matcher::ScalarKey;
use crate::middleware::Kind;
use crate::path::{ArgumentNames, Path};

/// A RegexSet whose DFA outgrows its limit becomes a thousand times slower, so it gets room.
const DFA_SIZE_LIMIT: usize = 64 << 20;
/// The text of all patterns of a RegexSet; what the set is made from takes a hundred times as much.
const MAX_SET_BYTES: usize = 512 << 10;

/// Which policies may concern a call, in the order in which they act: those that have to be asked of every call, merged
/// with those that the index found.
#[derive(Debug)]
pub struct Candidates<'g> {
    always: Peekable<Copied<Iter<'g, u32>>>,
    found: Peekable<smallvec::IntoIter<[u32; 32]>>,
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match (self.always.peek(), self.found.peek()) {
            (Some(always), Some(found)) if found < always => self.found.next(),
            (Some(_), _) => self.always.next(),
            (None, _) => self.found.next(),
        }
    }
}

/// Looked up for every call. What collides costs a comparison, and changes no answer.
type QuickMap<K, V> = HashMap<K, V, RandomState>;

/// All policies of a bundle, compiled. Immutable but for what it remembers of tool names.
#[derive(Debug)]
pub struct Chains {
    policies: Box<[Policy]>,
    off: Vec<String>,
    defaults: Defaults,
    reload: ReloadSettings,
    revision: String,
    by_exact_name: HashMap<String, Vec<u32>>,
    patterns: RegexSet,
    /// For each pattern of the set, the policies that have it.
    by_pattern: Vec<Vec<u32>>,
    for_every_tool: Vec<u32>,
    caches: Vec<u32>,
    of_run: Vec<u32>,
    remembered: Remembered,
}

impl Chains {
    /// Indexes a plan.
    pub fn compile(plan: Plan) -> Self {
        let Plan { policies, off, defaults, reload, revision } = plan;
        let mut by_exact_name: HashMap<String, Vec<u32>> = HashMap::new();
        let mut by_pattern: Vec<(String, Vec<u32>)> = Vec::new();
        let mut pattern_places: HashMap<String, usize> = HashMap::new();
        let mut for_every_tool = Vec::new();
        let mut caches = Vec::new();
        let mut of_run = Vec::new();
        for (index, policy) in (0u32..).zip(&policies) {
            if policy.matcher.tools.is_empty() {
                for_every_tool.push(index);
            }
            if let Kind::Cache(_) = policy.kind {
                caches.push(index);
            }
            if policy.concerns_run {
                of_run.push(index);
            }
            for pattern in &policy.matcher.tools {
                match pattern.as_regex() {
                    None => by_exact_name.entry(pattern.text().to_owned()).or_default().push(index),
                    Some(regex) => {
                        let place = *pattern_places.entry(regex).or_insert_with_key(|regex| {
                            by_pattern.push((regex.clone(), Vec::new()));
                            by_pattern.len() - 1
                        });
                        if let Some((_, indices)) = by_pattern.get_mut(place) {
                            indices.push(index);
                        }
                    }
                }
            }
        }
        let (regexes, by_pattern): (Vec<String>, Vec<Vec<u32>>) = by_pattern.into_iter().unzip();
        let length: usize = regexes.iter().map(String::len).sum();
        let regexes_of_set = if length > MAX_SET_BYTES { &[][..] } else { &regexes };
        let set = RegexSetBuilder::new(regexes_of_set)
            .size_limit(DFA_SIZE_LIMIT)
            .dfa_size_limit(DFA_SIZE_LIMIT)
            .build();
        // Should the set be too large, every pattern policy is a candidate for every tool and tested by itself.
        let (patterns, by_pattern) = match set {
            Ok(set) if length <= MAX_SET_BYTES => (set, by_pattern),
            _ => {
                for_every_tool.extend(by_pattern.into_iter().flatten());
                (RegexSet::empty(), Vec::new())
            }
        };
        Self {
            policies: policies.into_boxed_slice(),
            off,
            defaults,
            reload,
            revision: revision.to_string(),
            by_exact_name,
            patterns,
            by_pattern,
            for_every_tool,
            caches,
            of_run,
            remembered: Remembered::default(),
        }
    }

    /// The policies, in the order in which they act.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// One policy, by its place in that order.
    pub fn policy(&self, index: u32) -> Option<&Policy> {
        self.policies.get(index as usize)
    }

    /// The policies that concern the run around its calls, in the order in which they act.
    pub fn of_run(&self) -> &[u32] {
        &self.of_run
    }

    /// What holds for the whole bundle.
    pub fn defaults(&self) -> Defaults {
        self.defaults
    }

    /// The ids of the policies that are off, and so not among the others.
    pub fn off(&self) -> &[String] {
        &self.off
    }

    /// What new rules have to pass before they replace these.
    pub fn reload(&self) -> ReloadSettings {
        self.reload
    }

    /// The digest of the rules, in hex.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The chain for a tool of a server; a call without server has the empty name.
    pub fn resolve(&self, server: &str, tool: &str) -> Arc<Chain> {
        self.remembered.get_or_link(server, tool, || self.link(server, tool))
    }

    /// Links the tools that were called under other chains, so that no call has to wait for that once these have taken
    /// their place.
    pub(crate) fn expect_tools_of(&self, others: &Self) {
        others.remembered.each_name(|server, tool| {
            self.resolve(server, tool);
        });
    }

    /// The policies that may concern a tool of a server, in the order in which they act. A call without server has the
    /// empty name.
    pub fn concerning(&self, server: &str, tool: &str) -> Vec<u32> {
        let mut indices = self.fitting(tool);
        indices
            .retain(|index| self.policy(*index).is_some_and(|policy| policy.matcher.concerns(server, tool)));
        indices
    }

    /// Those whose patterns for tools fit, whatever the server.
    pub fn fitting(&self, tool: &str) -> Vec<u32> {
        let exact = self.by_exact_name.get(tool).into_iter().flatten();
        let fitting = self.patterns.matches(tool);
        let patterned = fitting.iter().filter_map(|place| self.by_pattern.get(place)).flatten();
        let mut indices: Vec<u32> = exact.chain(patterned).chain(&self.for_every_tool).copied().collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    pub(super) fn link(&self, server: &str, tool: &str) -> Chain {
        let indices = self.concerning(server, tool);
        let in_phase = |phase| {
            let acts = |index: &u32| self.policy(*index).is_some_and(|policy| policy.kind.acts_in(phase));
            indices.iter().copied().filter(acts).collect::<Vec<u32>>()
        };
        let (mut arguments, mut named_arguments) = (ArgumentNames::default(), ArgumentNames::default());
        for policy in indices.iter().filter_map(|index| self.policy(*index)) {
            if policy.mode == Mode::Enforce {
                arguments.merge(&policy.arguments);
                named_arguments.merge(&policy.named_arguments);
            }
        }
        let mut execute = in_phase(Phase::Execute);
        execute.sort_by_key(|index| {
            self.policy(*index).map(|policy| (Reverse(policy.priority), policy.kind.nesting(), *index))
        });
        Chain {
            normalise: in_phase(Phase::Normalise).into(),
            gate: Gate::index(in_phase(Phase::Gate), self),
            execute: execute.into(),
            settle: in_phase(Phase::Settle).into(),
            invalidates: self.invalidated_by(tool).into(),
            context_reads: self.context_reads(&indices),
            arguments,
            named_arguments,
        }
    }

    /// What policies that an approval is bound to read of the context.
    fn context_reads(&self, indices: &[u32]) -> ContextReads {
        let mut reads = ContextReads::default();
        for policy in
            indices.iter().filter_map(|index| self.policy(*index)).filter(|policy| policy.binds_context())
        {
            reads.extend(&policy.context_reads);
        }
        reads
    }

    /// The caches that forget once this tool was called, whichever tools they are for.
    fn invalidated_by(&self, tool: &str) -> Vec<u32> {
        let concerned = |index: &u32| {
            self.policy(*index).is_some_and(|policy| match &policy.kind {
                Kind::Cache(cache) => cache.invalidate_on.iter().any(|pattern| pattern.matches(tool)),
                _ => false,
            })
        };
        self.caches.iter().copied().filter(concerned).collect()
    }
}

/// The policies that concern one tool, by phase, in the order in which they act.
#[derive(Debug)]
pub struct Chain {
    /// Those of normalise.
    pub normalise: Box<[u32]>,
    /// Those of gate.
    pub gate: Gate,
    /// Those around the execution, the outermost first.
    pub execute: Box<[u32]>,
    /// Those of settle.
    pub settle: Box<[u32]>,
    /// The caches that a call of the tool makes forget.
    pub invalidates: Box<[u32]>,
    /// What policies that an approval is bound to read of the context.
    pub context_reads: ContextReads,
    /// The arguments that policies read which are not in shadow mode.
    pub arguments: ArgumentNames,
    /// The arguments that their templates name.
    pub named_arguments: ArgumentNames,
}

/// The policies of gate, those that demand a certain value in a certain place found by hash.
#[derive(Debug)]
pub struct Gate {
    always: Box<[u32]>,
    lookups: Box<[Lookup]>,
    hasher: RandomState,
}

/// All policies that demand one of some values of one type in one place.
#[derive(Debug)]
struct Lookup {
    path: Path,
    json_type: JsonType,
    by_hash: QuickMap<u64, Vec<u32>>,
    all: Vec<u32>,
}

/// Fewer policies than this on one place are as fast to evaluate as to look up.
const WORTH_A_LOOKUP: usize = 4;

impl Gate {
    fn index(policies: Vec<u32>, chains: &Chains) -> Self {
        let hasher = RandomState::default();
        let mut groups: HashMap<(String, JsonType), Vec<u32>> = HashMap::new();
        let demand = |index: &u32| {
            chains.policy(*index)?.matcher.condition.as_ref()?.required_tests().find_map(|test| test.lookup())
        };
        for index in &policies {
            if let Some((path, keys)) = demand(index)
                && let Some(key) = keys.first()
            {
                groups.entry((path.text().to_owned(), key.json_type())).or_default().push(*index);
            }
        }
        groups.retain(|_, members| members.len() >= WORTH_A_LOOKUP);
        let mut always = policies;
        let mut lookups = Vec::new();
        for ((_, json_type), members) in groups {
            let mut by_hash: QuickMap<u64, Vec<u32>> = QuickMap::default();
            let mut place = None;
            for index in &members {
                let Some((path, keys)) = demand(index) else { continue };
                for key in keys {
                    by_hash.entry(key.hash(&hasher)).or_default().push(*index);
                }
                place = Some(path.clone());
            }
            if let Some(path) = place {
                always.retain(|index| members.binary_search(index).is_err());
                lookups.push(Lookup { path, json_type, by_hash, all: members });
            }
        }
        Self { always: always.into(), lookups: lookups.into(), hasher }
    }

    /// The policies that may match this call; all others certainly do not.
    pub fn candidates(&self, view: &CallView<'_>) -> Candidates<'_> {
        let mut found: SmallVec<[u32; 32]> = SmallVec::new();
        for lookup in &self.lookups {
            match lookup.path.nodes(view) {
                Ok(nodes) => match nodes.first().map(|node| (ScalarKey::of(*node), node.json_type())) {
                    // Absent: none of them matches.
                    None => {}
                    Some((Some(key), json_type)) if json_type == lookup.json_type => {
                        found.extend(
                            lookup.by_hash.get(&key.hash(&self.hasher)).into_iter().flatten().copied(),
                        );
                    }
                    // Of another type: each has to say for itself that it can't be decided.
                    Some(_) => found.extend_from_slice(&lookup.all),
                },
                Err(_) => found.extend_from_slice(&lookup.all),
            }
        }
        found.sort_unstable();
        found.dedup();
        Candidates { always: self.always.iter().copied().peekable(), found: found.into_iter().peekable() }
    }
}
