//! The history of a case with approvals: the model's calls and the approvers' answers are appended to it, and the session
//! resumes from it as it would in another process.

use std::collections::HashMap;

use crate::case::{ApprovalReply, ReplyAction, TestCase};
use callgate::approval::{BoundRequest, seal_answer};
use callgate::call::{Outcome, ToolCall};
use callgate::engine::EngineBuilder;
use callgate::host::{Clock, ManualClock, ToolExecutor};
use callgate::json::Value;
use callgate::message::{
    History, Message, Part, RequestPart, ResponsePart, Role, approval_response, approval_response_message,
};
use callgate::seal::Keys;
use callgate::session::{ResumeError, Session};

/// The server's key: the answers of a case are sealed as any server's.
const SEALING_KEY: &str = "7465737473207365616c20776974682061206b6579206f66207468656972206f";

/// The history of a case and the outcomes so far.
pub(super) struct CaseHistory {
    history: History,
    keys: Option<Keys>,
    /// All outcomes, in order.
    outcomes: Vec<Outcome>,
    /// How many answers to an approval request did not count at the last resume, by the request's id.
    ignored_counts: HashMap<String, usize>,
}

/// The result of a reply.
pub(super) struct ReplyResult {
    /// The outcome of the answered call.
    pub(super) outcome: Outcome,
    /// The outcomes of other calls that are no longer pending.
    pub(super) other_outcomes: Vec<Outcome>,
    /// Why the answer does not count, if it does not.
    pub(super) ignored: Option<String>,
}

/// The error of a reply that has no pending call, or can't be resumed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplyError {
    #[error("no approval was requested for this call")]
    NoRequest(Option<Box<Outcome>>),
    #[error("{0} calls of `{1}` are pending; name one by its id: {2}")]
    Ambiguous(usize, String, String),
    #[error("{0}")]
    Resume(#[from] ResumeError),
}

impl CaseHistory {
    pub(super) fn new() -> Self {
        Self {
            history: History::default(),
            keys: sealing_keys(),
            outcomes: Vec::new(),
            ignored_counts: HashMap::new(),
        }
    }

    /// Adds the keys with which the engine seals approval requests.
    pub(super) fn configure_engine(engine: EngineBuilder) -> EngineBuilder {
        sealing_keys().into_iter().fold(engine, EngineBuilder::keys)
    }

    /// Makes the session read the history's calls as those of the case.
    pub(super) fn configure_session(session: Session, case: &TestCase) -> Session {
        let calls: HashMap<String, ToolCall> =
            case.calls().map(|step| (step.call.id.clone(), step.call.clone())).collect();
        session.with_call_reader(move |part| match calls.get(&part.id) {
            Some(call) => call.with_input(part.input.clone()),
            None => part.to_call(),
        })
    }

    /// Appends these calls as the model's, and runs the round.
    pub(super) async fn run_round(
        &mut self,
        session: &mut Session,
        calls: &[&ToolCall],
        tools: &impl ToolExecutor,
    ) -> Result<Vec<Outcome>, ResumeError> {
        if !self.history.messages().is_empty() {
            self.history.push(Message::new(Role::User, vec![Part::text("Go on.")]));
        }
        let parts = calls.iter().map(|call| Part::call(&call.id, &call.tool, call.input.clone())).collect();
        self.history.push(Message::new(Role::Assistant, parts));
        let outcomes = session.run_round(&mut self.history, tools).await?.outcomes;
        self.outcomes.extend(outcomes.iter().cloned());
        Ok(outcomes)
    }

    /// Appends a person's answer and resumes the session.
    pub(super) async fn reply_and_resume(
        &mut self,
        session: &mut Session,
        reply: &ApprovalReply,
        tools: &impl ToolExecutor,
        clock: &ManualClock,
    ) -> Result<ReplyResult, ReplyError> {
        let request = self.find_request(&reply.target)?;
        if let Some(answer) = answer_part(reply, &request) {
            let answer = match (&reply.approver, &self.keys) {
                (Some(by), Some(keys)) => match BoundRequest::open(&request, keys) {
                    Ok(question) => seal_answer(&question, answer, by.clone(), clock.now(), keys),
                    Err(_) => answer,
                },
                _ => answer,
            };
            // Even if the call is completed: a late answer must change nothing.
            self.history.push(approval_response_message(answer));
        }
        let round = session.resume(&mut self.history, tools).await?;
        // Each resume verifies all answers again, the latest last.
        let ignored: Vec<_> =
            round.ignored.into_iter().filter(|one| one.approval_id == request.approval_id).collect();
        let before = self.ignored_counts.insert(request.approval_id, ignored.len()).unwrap_or(0);
        let ignored = ignored.into_iter().skip(before).last();
        let is_meant = |outcome: &&Outcome| outcome.id == request.tool_call_id;
        self.outcomes.extend(round.outcomes.iter().cloned());
        // The outcome of a call completed earlier is unchanged.
        let outcome = self.outcomes.iter().rfind(is_meant).cloned();
        let outcome = outcome.ok_or(ReplyError::NoRequest(None))?;
        let over = |outcome: &Outcome| !is_meant(&outcome) && outcome.approval.is_none();
        let other_outcomes = round.outcomes.into_iter().filter(over).collect();
        Ok(ReplyResult { outcome, other_outcomes, ignored: ignored.map(|ignored| ignored.why) })
    }

    /// The last approval request of a call: of a pending one, or else of a completed one.
    fn find_request(&self, to: &str) -> Result<RequestPart, ReplyError> {
        let occurrences = self.history.occurrences();
        let mut meant: Vec<_> = occurrences.iter().filter(|call| call.call.id == to).collect();
        if meant.is_empty() {
            meant.extend(occurrences.iter().filter(|call| call.call.name == to));
        }
        let requested = || meant.iter().filter_map(|call| Some((call, call.request?)));
        let waiting: Vec<_> = requested().filter(|(call, _)| call.result.is_none()).collect();
        match waiting.as_slice() {
            [] => {}
            [(_, request)] => return Ok((*request).clone()),
            several => {
                let ids: Vec<String> =
                    several.iter().map(|(call, _)| format!("`{}`", call.call.id)).collect();
                return Err(ReplyError::Ambiguous(several.len(), to.to_owned(), ids.join(", ")));
            }
        }
        match requested().next_back() {
            Some((_, request)) => Ok(request.clone()),
            None => {
                let id = meant.last().map(|call| call.call.id.as_str());
                let latest = self.outcomes.iter().rev().find(|outcome| Some(outcome.id.as_str()) == id);
                Err(ReplyError::NoRequest(latest.cloned().map(Box::new)))
            }
        }
    }
}

fn sealing_keys() -> Option<Keys> {
    Keys::parse(SEALING_KEY).ok()
}

/// The host's message for a person's answer. Returns `None` if nobody answers.
fn answer_part(reply: &ApprovalReply, request: &RequestPart) -> Option<ResponsePart> {
    let approved =
        matches!(reply.action, ReplyAction::Approve | ReplyAction::Edit(_) | ReplyAction::Answer(_));
    let mut answer = ResponsePart {
        reason: reply.reason.clone(),
        approval_token: request.approval_token.clone(),
        ..approval_response(&request.approval_id, approved)
    };
    match &reply.action {
        ReplyAction::Resume => return None,
        ReplyAction::Approve | ReplyAction::Deny => {}
        ReplyAction::Edit(input) => answer.edited_input = Some(merge_input(request.input.as_ref(), input)),
        ReplyAction::Answer(output) => answer.output = Some(output.clone()),
        ReplyAction::Cancel => answer.cancel = true,
    }
    Some(answer)
}

fn merge_input(original: Option<&Value>, changes: &Value) -> Value {
    match (original, changes) {
        (Some(Value::Object(original)), Value::Object(changes)) => {
            let mut input = original.clone();
            input.extend(changes.clone());
            input.into()
        }
        (_, changes) => changes.clone(),
    }
}
