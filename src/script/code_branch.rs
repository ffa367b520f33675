//! Branches of scripts that tests should reach: functions of the bundle and arms of `switch`, and which of them have run on this thread.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::diagnostic::Span;

/// A branch of a text.
#[derive(Clone, Debug)]
pub struct CodeBranch {
    id: BranchId,
    /// What it is.
    pub kind: CodeBranchKind,
    /// The function that it is, or that contains it. Empty outside of functions.
    pub function: String,
    /// Its location in the text.
    pub(super) range: Range<usize>,
    /// Its location in the rules, once it is known.
    pub span: Option<Span>,
}

/// The kind of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeBranchKind {
    /// A function.
    Function,
    /// An arm of `switch`.
    Arm,
}

/// Identifies a branch among those of all texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BranchId(u64);

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
    static RAN: RefCell<HashMap<BranchId, u64>> = RefCell::default();
}

impl CodeBranch {
    pub(super) fn new(kind: CodeBranchKind, function: &str, range: Range<usize>) -> Self {
        let id = BranchId(NEXT_ID.fetch_add(1, Ordering::Relaxed));
        Self { id, kind, function: function.to_owned(), range, span: None }
    }

    /// The id by which [`take_branches`] names it.
    pub fn id(&self) -> BranchId {
        self.id
    }
}

/// Sets where branches are in the rules.
pub(super) fn locate(branches: &mut [CodeBranch], span_of: &mut dyn FnMut(Range<usize>) -> Span) {
    for branch in branches {
        branch.span = Some(span_of(branch.range.clone()));
    }
}

/// Begins to record on this thread which branches run.
pub fn record_branches() {
    IS_RECORDING.set(true);
}

/// Returns how often branches have run on this thread since the last call.
pub fn take_branches() -> HashMap<BranchId, u64> {
    match IS_RECORDING.get() {
        true => RAN.take(),
        false => HashMap::new(),
    }
}

/// Notes that a branch runs.
pub(super) fn enter(branch: BranchId) {
    if IS_RECORDING.get() {
        RAN.with_borrow_mut(|ran| *ran.entry(branch).or_default() += 1);
    }
}
