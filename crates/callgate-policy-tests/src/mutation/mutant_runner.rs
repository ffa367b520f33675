//! Runs the suite against each mutant, until a case notices it: changes → [`MutantVerdict`]s.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::mutant::Mutant;
use crate::case::{TestCase, TestFile};
use crate::report::SuiteReport;
use crate::runner::{Suite, case_passes, declared_tools};
use callgate::diagnostic::SourceMap;
use callgate::policy::{self, CompiledPolicies, LoadedBundle};
use callgate::tools::ToolCatalog;

/// The time limit of a case; one that takes longer against changed rules has noticed the change.
const MUTANT_TIME_LIMIT: Duration = Duration::from_secs(5);

/// The result of testing a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MutantVerdict {
    /// A case failed.
    Noticed,
    /// All cases passed.
    Survived,
    /// The changed rules have an error.
    Invalid,
    /// The changed rules are equivalent.
    Equivalent,
}

/// The unchanged rules, and the cases with the policies that take part in them.
pub(super) struct MutantRunner<'a> {
    sources: &'a SourceMap,
    /// The rules files: name and text. Files that policies refer to are read from disk.
    texts: Vec<(&'a str, &'a str)>,
    revision: String,
    cases: Vec<(&'a TestFile, &'a Arc<TestCase>)>,
    /// The tools that the rules declare.
    declared_tools: Arc<ToolCatalog>,
    /// The cases in which each policy takes part; the one that noticed the policy's last change comes first.
    cases_by_policy: Mutex<HashMap<String, Vec<usize>>>,
}

impl<'a> MutantRunner<'a> {
    /// # Errors
    /// Returns the report of the suite if it does not pass against the unchanged rules.
    pub(super) fn new(built: &'a LoadedBundle, suite: &'a Suite) -> Result<Self, SuiteReport> {
        let name_and_text = |file: &callgate::source::LoadedFile| {
            built.sources.get(file.source).map(|source| (source.name(), source.text()))
        };
        let texts: Vec<(&str, &str)> = built.files.iter().filter_map(name_and_text).collect();
        let nothing = || SuiteReport { files: Vec::new(), revision: String::new() };
        let policies = policy::build_replacements(texts.clone(), &built.sources)
            .policies
            .map(Arc::new)
            .ok_or_else(nothing)?;
        let report = suite.run(&policies);
        if !report.passed() {
            return Err(report);
        }
        let mut cases_by_policy: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, case) in report.cases().enumerate() {
            for id in case.calls.iter().flat_map(|call| call.policies.iter().chain(&call.policy)) {
                let cases = cases_by_policy.entry(id.clone()).or_default();
                if cases.last() != Some(&index) {
                    cases.push(index);
                }
            }
        }
        let cases = suite.files.iter().flat_map(|file| file.cases.iter().map(move |case| (file, case)));
        Ok(Self {
            sources: &built.sources,
            texts,
            revision: report.revision,
            cases: cases.collect(),
            declared_tools: declared_tools(&policies),
            cases_by_policy: Mutex::new(cases_by_policy),
        })
    }

    /// Tests all changes, on all available processors; verdicts are in the order of the changes.
    pub(super) fn test_all(
        &self,
        changes: &[Mutant],
        seen: &mut dyn FnMut(usize, usize),
    ) -> Vec<MutantVerdict> {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(changes.len());
        let next = AtomicUsize::new(0);
        let (send, receive) = mpsc::channel();
        let mut verdicts = vec![MutantVerdict::Invalid; changes.len()];
        thread::scope(|scope| {
            for _ in 0..threads {
                let (send, next) = (send.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(change) = changes.get(index) else { break };
                        if send.send((index, self.test_mutant(change))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            for (count, (index, verdict)) in receive.into_iter().enumerate() {
                if let Some(slot) = verdicts.get_mut(index) {
                    *slot = verdict;
                }
                seen(count + 1, changes.len());
            }
        });
        verdicts
    }

    fn test_mutant(&self, change: &Mutant) -> MutantVerdict {
        let name = self.sources.get(change.span.source).map(|source| source.name());
        let Some(changed) = change.apply(self.sources) else { return MutantVerdict::Invalid };
        let texts = self.texts.iter().map(|(file, text)| {
            let text = if Some(*file) == name { changed.as_str() } else { text };
            (*file, text)
        });
        let Some(policies) = policy::build_replacements(texts, self.sources).policies.map(Arc::new) else {
            return MutantVerdict::Invalid;
        };
        if policies.revision() == self.revision {
            return MutantVerdict::Equivalent;
        }
        if self.is_noticed(change, &policies) { MutantVerdict::Noticed } else { MutantVerdict::Survived }
    }

    /// Whether a case fails. The cases in which the policy takes part run first.
    fn is_noticed(&self, change: &Mutant, policies: &Arc<CompiledPolicies>) -> bool {
        let first = self.with_policy_cases(change, |cases| cases.to_vec()).unwrap_or_default();
        let others = (0..self.cases.len()).filter(|index| !first.contains(index));
        let declared = Arc::new(self.declared_tools.replaced_by(policies.tools().iter().cloned()));
        let noticing = first.iter().copied().chain(others).find(|index| {
            self.cases.get(*index).is_some_and(|(file, case)| {
                let tools = file.tools.as_ref().unwrap_or(&declared);
                !case_passes(Arc::clone(policies), Arc::clone(tools), case, MUTANT_TIME_LIMIT)
            })
        });
        if let Some(case) = noticing {
            self.with_policy_cases(change, |cases| {
                if let Some(position) = cases.iter().position(|index| *index == case) {
                    cases.get_mut(..=position).unwrap_or_default().rotate_right(1);
                }
            });
        }
        noticing.is_some()
    }

    fn with_policy_cases<T>(&self, change: &Mutant, read: impl FnOnce(&mut [usize]) -> T) -> Option<T> {
        let mut cases_by_policy = self.cases_by_policy.lock().unwrap_or_else(PoisonError::into_inner);
        cases_by_policy.get_mut(change.policy.as_ref()?).map(|cases| read(cases))
    }
}
