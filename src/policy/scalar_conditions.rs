//! The conditions of a bundle as tests of scalars: what most policies need to know of a call, read from it and tested once for all of them.
//!
//! They decide only what the whole condition would decide, too. What they leave open, such as a value of another type, takes the
//! evaluation of the condition, which also has the reason.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::Policy;
use crate::call::{CallView, Root};
use crate::matcher::{Scalar, ScalarTest};
use crate::path::{Path, PathStep, follow_json};
use crate::work_limit;

/// The scalar tests of each policy, and the paths that they read. Equal tests of several policies are one.
#[derive(Debug, Default)]
pub struct ScalarConditions {
    paths: Vec<ScalarPath>,
    /// The index of the path, and the test.
    tests: Vec<(u32, ScalarTest)>,
    by_policy: Box<[Option<ScalarCondition>]>,
}

/// A singular path below the arguments or the context.
#[derive(Debug)]
struct ScalarPath {
    is_context: bool,
    steps: Box<[PathStep]>,
}

/// Tests that must all hold for a condition to hold.
#[derive(Debug)]
struct ScalarCondition {
    /// The indices of the tests, in the order of evaluation.
    tests: SmallVec<[u32; 4]>,
    /// Whether the condition holds if they hold.
    is_complete: bool,
}

/// The number of paths whose values are kept for a call, a power of two. Other paths are read again.
const KEPT_VALUES: usize = 16;

/// The number of tests whose results are kept for a call, a power of two.
const KEPT_RESULTS: usize = 64;

/// Marks an unused place.
const UNUSED: u32 = u32::MAX;

/// Numbers values in the order in which they are first seen.
#[derive(Debug)]
struct Numbering<T>(HashMap<T, u32, RandomState>);

impl<T: Eq + std::hash::Hash> Numbering<T> {
    fn number(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(UNUSED);
        *self.0.entry(value).or_insert(next)
    }

    fn into_values(self) -> Vec<T> {
        let mut numbered: Vec<(T, u32)> = self.0.into_iter().collect();
        numbered.sort_unstable_by_key(|(_, number)| *number);
        numbered.into_iter().map(|(value, _)| value).collect()
    }
}

impl ScalarConditions {
    /// Finds the scalar tests in the conditions of policies.
    pub(super) fn new(policies: &[Arc<Policy>]) -> Self {
        let mut paths: HashMap<String, u32, RandomState> = HashMap::default();
        let mut scalar_paths = Vec::new();
        let mut path_number = |path: &Path| {
            if let Some(known) = paths.get(path.text()) {
                return *known;
            }
            let number = u32::try_from(scalar_paths.len()).unwrap_or(UNUSED);
            let steps = path.steps().unwrap_or_default().into();
            scalar_paths.push(ScalarPath { is_context: path.root() == Root::Context, steps });
            paths.insert(path.text().to_owned(), number);
            number
        };
        let mut tests = Numbering(HashMap::default());
        let condition = |policy: &Arc<Policy>| {
            let Some(condition) = &policy.matcher.condition else {
                return Some(ScalarCondition { tests: SmallVec::new(), is_complete: true });
            };
            let mut scalar_tests: SmallVec<[_; 4]> =
                condition.required_tests().filter_map(|test| test.as_scalar_test()).collect();
            // The first test that fails decides.
            scalar_tests.sort_by_key(|(_, test)| test.rank());
            let of_condition: SmallVec<[u32; 4]> = scalar_tests
                .into_iter()
                .map(|(path, test)| tests.number((path_number(path), test)))
                .collect();
            let is_complete = condition.requires_only_tests(of_condition.len());
            (!of_condition.is_empty()).then_some(ScalarCondition { tests: of_condition, is_complete })
        };
        let by_policy = policies.iter().map(condition).collect();
        Self { paths: scalar_paths, tests: tests.into_values(), by_policy }
    }

    /// Whether the condition of a policy reads nothing of the arguments but members whose names pass a test.
    pub(super) fn reads_only_members(&self, policy: u32, is_known: impl Fn(&str) -> bool) -> bool {
        let condition = self.by_policy.get(policy as usize).and_then(Option::as_ref);
        let path_of = |test: &u32| self.paths.get(self.tests.get(*test as usize)?.0 as usize);
        condition.filter(|condition| condition.is_complete).is_some_and(|condition| {
            condition.tests.iter().map(path_of).all(|path| {
                path.is_some_and(|path| match path.steps.first() {
                    Some(PathStep::Name(name)) => path.is_context || is_known(name),
                    _ => path.is_context,
                })
            })
        })
    }
}

/// Evaluates scalar tests for one call, and keeps the values that it has read and the results.
#[derive(Debug)]
pub struct ScalarEvaluator<'p, 'a> {
    conditions: &'p ScalarConditions,
    view: CallView<'a>,
    paths: [Cell<u32>; KEPT_VALUES],
    values: [Cell<Scalar<'a>>; KEPT_VALUES],
    /// For each place the number of a test and its result.
    results: [Cell<(u32, Option<bool>)>; KEPT_RESULTS],
}

impl<'p, 'a> ScalarEvaluator<'p, 'a> {
    /// An evaluator for one state of a call.
    #[inline]
    pub fn new(conditions: &'p ScalarConditions, view: CallView<'a>) -> Self {
        Self {
            conditions,
            view,
            paths: [const { Cell::new(UNUSED) }; KEPT_VALUES],
            values: [const { Cell::new(Scalar::Absent) }; KEPT_VALUES],
            results: [const { Cell::new((UNUSED, None)) }; KEPT_RESULTS],
        }
    }

    /// Whether the condition of a policy holds. Returns `None` if its scalar tests leave that open.
    pub fn holds(&self, policy: u32) -> Option<bool> {
        let condition = self.conditions.by_policy.get(policy as usize)?.as_ref()?;
        work_limit::spend(condition.tests.len() as u64 + 1).ok()?;
        let mut is_open = !condition.is_complete;
        for test in &condition.tests {
            match self.result(*test) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => is_open = true,
            }
        }
        (!is_open).then_some(true)
    }

    fn result(&self, test: u32) -> Option<bool> {
        let kept = self.results.get(test as usize % KEPT_RESULTS)?;
        let (known, result) = kept.get();
        if known == test {
            return result;
        }
        let (path, scalar_test) = self.conditions.tests.get(test as usize)?;
        let result = scalar_test.holds(self.value(*path));
        kept.set((test, result));
        result
    }

    fn value(&self, path: u32) -> Scalar<'a> {
        let place = path as usize % KEPT_VALUES;
        let (Some(known), Some(value)) = (self.paths.get(place), self.values.get(place)) else {
            return Scalar::Other;
        };
        if known.get() != path {
            value.set(self.read(path));
            known.set(path);
        }
        value.get()
    }

    /// Reads a value as [`Path::nodes`] does.
    fn read(&self, path: u32) -> Scalar<'a> {
        let Some(ScalarPath { is_context, steps }) = self.conditions.paths.get(path as usize) else {
            return Scalar::Other;
        };
        let root = if *is_context { &self.view.call.context } else { self.view.input };
        match (root.is_object(), *is_context, root.is_null()) {
            // There is no context.
            (false, true, true) => Scalar::Absent,
            (true, _, _) => match follow_json(root, steps) {
                Ok(found) => found.map_or(Scalar::Absent, Scalar::from),
                Err(_) => Scalar::Other,
            },
            (false, _, _) => Scalar::Other,
        }
    }
}
