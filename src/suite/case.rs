//! What a test file says, ready to run.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::expect::Expectation;
use super::stub::{Answers, Stub};
use crate::call::{SessionState, ToolCall};
use crate::diagnostic::Location;
use crate::tools::ToolDescriptor;

/// One test file.
#[derive(Clone, Debug)]
pub(super) struct TestFile {
    pub(super) name: String,
    pub(super) tools: Arc<Vec<ToolDescriptor>>,
    pub(super) cases: Vec<Arc<Case>>,
}

/// One session with what is expected of it. Each row of a table is a case of its own.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) row: Option<Row>,
    pub(super) place: Location,
    pub(super) clock: Timestamp,
    pub(super) session: SessionState,
    /// Those of the case before those of the file.
    pub(super) stubs: Vec<Arc<Stub>>,
    pub(super) steps: Arc<Vec<Step>>,
    /// What is tried after the steps.
    pub(super) tried: Option<CallStep>,
}

/// Which row of a table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// From 1.
    pub(super) number: usize,
    pub(super) name: Option<String>,
}

/// One step of a session.
#[derive(Debug)]
pub(super) enum Step {
    Wait(Duration),
    /// One call, or the calls of a round.
    Calls(Vec<CallStep>),
}

impl Step {
    pub(super) fn calls(&self) -> &[CallStep] {
        match self {
            Self::Wait(_) => &[],
            Self::Calls(calls) => calls,
        }
    }
}

/// A call with what its tool does and what it is to come to.
#[derive(Debug)]
pub(super) struct CallStep {
    pub(super) call: ToolCall,
    /// Its own answers, which stand before those of stubs.
    pub(super) answers: Option<Answers>,
    pub(super) expect: Option<Expectation>,
}
