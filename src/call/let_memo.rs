//! Results of named values (`let`), each evaluated at most once for one state of a call, and what else is computed once.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::json::Value;
use crate::time::TimeValue;

/// The result of a named value for a call.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedResult {
    /// A value.
    Value(Value),
    /// A timestamp or a duration.
    Time(TimeValue),
    /// A condition that is open because a tested value is absent: policies that restrict apply.
    OpenCondition,
    /// Something that the value reads is missing; the string says what.
    Absent(String),
    /// The value cannot be evaluated, for this reason.
    Undecided(String),
}

/// The results for one state of a call. Several threads may read it; nothing is ever replaced, so results can be borrowed.
#[derive(Debug, Default)]
pub struct LetMemo {
    first: OnceLock<Box<MemoEntry>>,
    computed: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

#[derive(Debug)]
struct MemoEntry {
    id: u64,
    result: NamedResult,
    next: OnceLock<Box<MemoEntry>>,
}

/// The result if the memo cannot hold one.
static NOT_HELD: NamedResult = NamedResult::Undecided(String::new());

impl LetMemo {
    /// The result of the named value with this id, which `evaluate` computes the first time.
    pub fn get_or_evaluate(&self, id: u64, evaluate: impl FnOnce() -> NamedResult) -> &NamedResult {
        if let Some(known) = self.find(id) {
            return known;
        }
        // The evaluation may add entries itself, so the place of the new entry is searched after it.
        let mut entry = Box::new(MemoEntry { id, result: evaluate(), next: OnceLock::new() });
        let mut slot = &self.first;
        loop {
            while let Some(occupied) = slot.get() {
                slot = &occupied.next;
            }
            match slot.set(entry) {
                Ok(()) => return self.find(id).unwrap_or(&NOT_HELD),
                Err(rejected) => entry = rejected,
            }
        }
    }

    /// What was computed for this state of the call and `is_wanted`, or else what `compute` returns, which is kept.
    pub fn find_or_compute<T: Any + Send + Sync>(
        &self,
        is_wanted: impl Fn(&T) -> bool,
        compute: impl FnOnce() -> T,
    ) -> Arc<T> {
        let computed = self.computed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = computed
            .iter()
            .find_map(|known| Arc::clone(known).downcast::<T>().ok().filter(|known| is_wanted(known)));
        if let Some(known) = known {
            return known;
        }
        // The lock is not held meanwhile: a computation may use the memo itself.
        drop(computed);
        let result = Arc::new(compute());
        let entry: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(&result);
        self.computed.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        result
    }

    /// The result of the named value with this id, if it was evaluated.
    pub fn find(&self, id: u64) -> Option<&NamedResult> {
        let mut slot = &self.first;
        while let Some(entry) = slot.get() {
            if entry.id == id {
                return Some(&entry.result);
            }
            slot = &entry.next;
        }
        None
    }
}
