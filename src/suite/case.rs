//! What a test file says, ready to run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::expect::Expectation;
use super::stub::{Answers, Stub};
use crate::call::{SessionState, ToolCall};
use crate::diagnostic::Location;
use crate::json::Value;
use crate::message::Approver;
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

impl Case {
    /// All calls that it makes, in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &CallStep> {
        self.steps.iter().flat_map(Step::calls).chain(&self.tried)
    }

    /// Whether people answer in it.
    pub(super) fn has_replies(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Reply(_)))
    }
}

/// Who acts and who answers in the cases of a suite.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identities {
    /// The names of principals, as they are written.
    pub(crate) principals: BTreeSet<String>,
    /// The names of roles.
    pub(crate) roles: BTreeSet<String>,
}

impl Identities {
    pub(super) fn add(&mut self, case: &Case) {
        for CallStep { call, .. } in case.calls() {
            self.principals.extend(call.context.get("principal").and_then(Value::as_str).map(str::to_owned));
            let roles = call.context.get("roles").and_then(Value::as_array).into_iter().flatten();
            self.roles.extend(roles.filter_map(Value::as_str).map(str::to_owned));
        }
        for step in case.steps.iter() {
            if let Step::Reply(reply) = step
                && let Some(by) = &reply.by
            {
                self.principals.insert(by.principal.clone());
                self.roles.extend(by.roles.iter().cloned());
            }
        }
    }
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
    /// The session is taken up again.
    Reply(Box<Reply>),
}

impl Step {
    pub(super) fn calls(&self) -> &[CallStep] {
        match self {
            Self::Wait(_) | Self::Reply(_) => &[],
            Self::Calls(calls) => calls,
        }
    }

    pub(super) fn expects(&self) -> bool {
        match self {
            Self::Wait(_) => false,
            Self::Calls(calls) => calls.iter().any(|call| call.expect.is_some()),
            Self::Reply(reply) => reply.expect.is_some(),
        }
    }
}

/// What a person says to a question, and what the call that waits comes to by it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) place: Location,
    /// The call that waits, by its id or by its tool.
    pub(super) to: String,
    pub(super) said: Said,
    /// Who says it, as the host has verified; nobody in particular, where it is not said.
    pub(super) by: Option<Approver>,
    pub(super) reason: Option<String>,
    pub(super) expect: Option<Expectation>,
}

/// What is said.
#[derive(Debug)]
pub(super) enum Said {
    Approve,
    Deny,
    /// Yes, with these arguments laid over those that were shown.
    Edit(Value),
    /// A result in the tool's place.
    Answer(Value),
    Cancel,
    /// Nobody says anything.
    Nothing,
}

impl Said {
    /// The key of the step.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Edit(_) => "edit",
            Self::Answer(_) => "answer",
            Self::Cancel => "cancel",
            Self::Nothing => "resume",
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
