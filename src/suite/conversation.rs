//! The history of a case in which people answer: calls go into it as a model's, answers as people's, and the session goes on
//! by it as it would in another process.

use std::collections::HashMap;

use super::case::{Case, Reply, Said};
use crate::approval::{Question, seal_answer};
use crate::call::{Outcome, ToolCall};
use crate::engine::EngineBuilder;
use crate::host::{Clock, ManualClock, ToolExecutor};
use crate::json::Value;
use crate::message::{
    History, Message, Part, RequestPart, ResponsePart, Role, approval_response, approval_response_message,
};
use crate::seal::Keys;
use crate::session::{ResumeError, Session};

/// The keys of a server that nobody else knows, for its answers are sealed as any server's.
const KEY: &str = "7465737473207365616c20776974682061206b6579206f66207468656972206f";

/// What is said in a case, and what came of it so far.
pub(super) struct Conversation {
    history: History,
    keys: Option<Keys>,
    /// All outcomes, in order.
    outcomes: Vec<Outcome>,
    /// How many answers to a question did not count when it was last taken up, by its id.
    ignored: HashMap<String, usize>,
}

/// What came of a reply.
pub(super) struct Replied {
    /// What the call that was answered has come to.
    pub(super) meant: Outcome,
    /// Other calls that do not wait any more.
    pub(super) others: Vec<Outcome>,
    /// Why the answer does not count.
    pub(super) ignored: Option<String>,
}

/// Why there is nothing to answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReplied {
    #[error("nobody was asked about it")]
    NotAsked(Option<Box<Outcome>>),
    #[error("{0} calls of `{1}` wait; name the one that is meant by its id: {2}")]
    Ambiguous(usize, String, String),
    #[error("{0}")]
    Resume(#[from] ResumeError),
}

impl Conversation {
    pub(super) fn new() -> Self {
        Self { history: History::default(), keys: keys(), outcomes: Vec::new(), ignored: HashMap::new() }
    }

    /// The engine that seals what is asked.
    pub(super) fn engine(engine: EngineBuilder) -> EngineBuilder {
        keys().into_iter().fold(engine, EngineBuilder::keys)
    }

    /// The session that makes of the history's calls those of the case.
    pub(super) fn session(session: Session, case: &Case) -> Session {
        let calls: HashMap<String, ToolCall> =
            case.calls().map(|step| (step.call.id.clone(), step.call.clone())).collect();
        session.reading_calls(move |part| match calls.get(&part.id) {
            Some(call) => call.with_input(part.input.clone()),
            None => part.to_call(),
        })
    }

    /// The model makes these calls.
    pub(super) async fn round(
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
        let outcomes = session.round(&mut self.history, tools).await?.outcomes;
        self.outcomes.extend(outcomes.iter().cloned());
        Ok(outcomes)
    }

    /// A person says something, and the session is taken up again.
    pub(super) async fn reply(
        &mut self,
        session: &mut Session,
        reply: &Reply,
        tools: &impl ToolExecutor,
        clock: &ManualClock,
    ) -> Result<Replied, NotReplied> {
        let request = self.request(&reply.to)?;
        if let Some(answer) = answer(reply, &request) {
            let answer = match (&reply.by, &self.keys) {
                (Some(by), Some(keys)) => match Question::open(&request, keys) {
                    Ok(question) => seal_answer(&question, answer, by.clone(), clock.now(), keys),
                    Err(_) => answer,
                },
                _ => answer,
            };
            // Also where the call is settled already: what comes too late must change nothing.
            self.history.push(approval_response_message(answer));
        }
        let round = session.resume(&mut self.history, tools).await?;
        // Each time all answers are judged anew, the latest last.
        let ignored: Vec<_> =
            round.ignored.into_iter().filter(|one| one.approval_id == request.approval_id).collect();
        let before = self.ignored.insert(request.approval_id, ignored.len()).unwrap_or(0);
        let ignored = ignored.into_iter().skip(before).last();
        let is_meant = |outcome: &&Outcome| outcome.id == request.tool_call_id;
        self.outcomes.extend(round.outcomes.iter().cloned());
        // A call that was settled before stays as it was.
        let meant = self.outcomes.iter().rfind(is_meant).cloned();
        let meant = meant.ok_or(NotReplied::NotAsked(None))?;
        let over = |outcome: &Outcome| !is_meant(&outcome) && outcome.approval.is_none();
        let others = round.outcomes.into_iter().filter(over).collect();
        Ok(Replied { meant, others, ignored: ignored.map(|ignored| ignored.why) })
    }

    /// The last question about a call: about one that waits, or else about one that is settled.
    fn request(&self, to: &str) -> Result<RequestPart, NotReplied> {
        let occurrences = self.history.occurrences();
        let mut meant: Vec<_> = occurrences.iter().filter(|call| call.call.id == to).collect();
        if meant.is_empty() {
            meant.extend(occurrences.iter().filter(|call| call.call.name == to));
        }
        let asked = || meant.iter().filter_map(|call| Some((call, call.request?)));
        let waiting: Vec<_> = asked().filter(|(call, _)| call.result.is_none()).collect();
        match waiting.as_slice() {
            [] => {}
            [(_, request)] => return Ok((*request).clone()),
            several => {
                let ids: Vec<String> =
                    several.iter().map(|(call, _)| format!("`{}`", call.call.id)).collect();
                return Err(NotReplied::Ambiguous(several.len(), to.to_owned(), ids.join(", ")));
            }
        }
        match asked().next_back() {
            Some((_, request)) => Ok(request.clone()),
            None => {
                let id = meant.last().map(|call| call.call.id.as_str());
                let came = self.outcomes.iter().rev().find(|outcome| Some(outcome.id.as_str()) == id);
                Err(NotReplied::NotAsked(came.cloned().map(Box::new)))
            }
        }
    }
}

fn keys() -> Option<Keys> {
    Keys::parse(KEY).ok()
}

/// What the host makes of what a person says.
fn answer(reply: &Reply, request: &RequestPart) -> Option<ResponsePart> {
    let approved = matches!(reply.said, Said::Approve | Said::Edit(_) | Said::Answer(_));
    let mut answer = ResponsePart {
        reason: reply.reason.clone(),
        approval_token: request.approval_token.clone(),
        ..approval_response(&request.approval_id, approved)
    };
    match &reply.said {
        Said::Nothing => return None,
        Said::Approve | Said::Deny => {}
        Said::Edit(input) => answer.edited_input = Some(laid_over(request.input.as_ref(), input)),
        Said::Answer(output) => answer.output = Some(output.clone()),
        Said::Cancel => answer.cancel = true,
    }
    Some(answer)
}

fn laid_over(shown: Option<&Value>, changes: &Value) -> Value {
    match (shown, changes) {
        (Some(Value::Object(shown)), Value::Object(changes)) => {
            let mut input = shown.clone();
            input.extend(changes.clone());
            input.into()
        }
        (_, changes) => changes.clone(),
    }
}
