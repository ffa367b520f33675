//! A parsed test file, ready to run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::expectation::Expectation;
use crate::stub::{Stub, StubbedAnswers};
use callgate::call::{SessionState, Task, ToolCall};
use callgate::diagnostic::Location;
use callgate::json::Value;
use callgate::message::Approver;
use callgate::tools::ToolCatalog;

/// One test file.
#[derive(Clone, Debug)]
pub(super) struct TestFile {
    pub(super) name: String,
    /// The tools of the cases, compiled once for all. Those that the rules declare if there are none.
    pub(super) tools: Option<Arc<ToolCatalog>>,
    pub(super) cases: Vec<Arc<TestCase>>,
}

/// One session with its expectations. Each row of a table is a case of its own.
#[derive(Debug)]
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) row: Option<TableRow>,
    pub(super) location: Location,
    pub(super) clock: Timestamp,
    pub(super) session: SessionState,
    /// What the user asked for, until a call says otherwise.
    pub(super) task: Task,
    /// The stubs of the case, then those of the file.
    pub(super) stubs: Vec<Arc<Stub>>,
    pub(super) steps: Arc<Vec<CaseStep>>,
    /// The call under test, made after the steps.
    pub(super) tested_call: Option<CallStep>,
}

impl TestCase {
    /// All calls of the case, in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &CallStep> {
        self.steps.iter().flat_map(CaseStep::calls).chain(&self.tested_call)
    }

    /// All calls of the case, with its state at the beginning.
    pub(super) fn tested_calls(&self) -> impl Iterator<Item = TestedCall> {
        self.calls().map(|step| TestedCall {
            call: step.call.clone(),
            session: self.session.clone(),
            task: step.task.clone().unwrap_or_else(|| self.task.clone()),
            clock: self.clock,
            location: self.location.clone(),
        })
    }

    /// Whether a call of the case has a task.
    pub(super) fn sets_task(&self) -> bool {
        let tasks = self.calls().filter_map(|call| call.task.as_ref());
        tasks.chain([&self.task]).any(|task| *task != Task::NONE)
    }

    /// Whether a step answers an approval request.
    pub(super) fn has_approval_replies(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, CaseStep::Reply(_)))
    }
}

/// A call of a policy test, with the state in which its case begins.
#[derive(Clone, Debug)]
pub struct TestedCall {
    /// The call.
    pub call: ToolCall,
    /// The session as the case sets it up; the calls before this one are not part of it.
    pub session: SessionState,
    /// What the user asked for.
    pub task: Task,
    /// The time at which the case begins.
    pub clock: Timestamp,
    /// Where the case is written.
    pub location: Location,
}

/// The principals and roles of the callers and approvers in a suite.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    /// The names of principals, as written.
    pub principals: BTreeSet<String>,
    /// The names of roles.
    pub roles: BTreeSet<String>,
}

impl Identities {
    pub(super) fn add(&mut self, case: &TestCase) {
        for CallStep { call, .. } in case.calls() {
            self.principals.extend(call.context.get("principal").and_then(Value::as_str).map(str::to_owned));
            let roles = call.context.get("roles").and_then(Value::as_array).into_iter().flatten();
            self.roles.extend(roles.filter_map(Value::as_str).map(str::to_owned));
        }
        for step in case.steps.iter() {
            if let CaseStep::Reply(reply) = step
                && let Some(by) = &reply.approver
            {
                self.principals.insert(by.principal.clone());
                self.roles.extend(by.roles.iter().cloned());
            }
        }
    }
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct TableRow {
    /// From 1.
    pub(super) number: usize,
    pub(super) name: Option<String>,
}

/// One step of a session.
#[derive(Debug)]
pub(super) enum CaseStep {
    Wait(Duration),
    /// One call, or the calls of a round.
    Calls(Vec<CallStep>),
    /// A person answers, and the session is resumed.
    Reply(Box<ApprovalReply>),
}

impl CaseStep {
    pub(super) fn calls(&self) -> &[CallStep] {
        match self {
            Self::Wait(_) | Self::Reply(_) => &[],
            Self::Calls(calls) => calls,
        }
    }

    pub(super) fn has_expectation(&self) -> bool {
        match self {
            Self::Wait(_) => false,
            Self::Calls(calls) => calls.iter().any(|call| call.expect.is_some()),
            Self::Reply(reply) => reply.expect.is_some(),
        }
    }
}

/// A person's answer to an approval request, and the expectation on the pending call.
#[derive(Debug)]
pub(super) struct ApprovalReply {
    pub(super) location: Location,
    /// The pending call, by its id or by its tool.
    pub(super) target: String,
    pub(super) action: ReplyAction,
    /// The approver, as verified by the host; `None` for an anonymous answer.
    pub(super) approver: Option<Approver>,
    pub(super) reason: Option<String>,
    pub(super) expect: Option<Expectation>,
}

/// The kind of answer.
#[derive(Debug)]
pub(super) enum ReplyAction {
    Approve,
    Deny,
    /// Approval with these arguments merged over the ones in the request.
    Edit(Value),
    /// A result given in place of the tool's.
    Answer(Value),
    Cancel,
    /// No answer: the session is only resumed.
    Resume,
}

impl ReplyAction {
    /// The step's YAML key.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Edit(_) => "edit",
            Self::Answer(_) => "answer",
            Self::Cancel => "cancel",
            Self::Resume => "resume",
        }
    }
}

/// A call with its tool's answers and its expectation.
#[derive(Debug)]
pub(super) struct CallStep {
    pub(super) call: ToolCall,
    /// What the user asked for, from this call on.
    pub(super) task: Option<Task>,
    /// The call's own answers; they take precedence over stubs.
    pub(super) answers: Option<StubbedAnswers>,
    pub(super) expect: Option<Expectation>,
}
