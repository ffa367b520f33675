//! A session over its history: the calls of its last round, and calls of earlier rounds that waited for people.

use std::collections::BTreeMap;
use std::time::Instant;

use super::answered::{Said, TakenUp};
use super::desk::Desk;
use super::told::Telling;
use super::{Session, occurrence_name};
use crate::approval::{Ignored, Name, Question};
use crate::call::{ApprovalRequest, Outcome, OutcomeKind, ToolCall};
use crate::host::{StoreError, ToolExecutor};
use crate::message::{
    AnswerError, CallPart, Content, History, Message, Part, Place, RequestPart, ResponsePart, ResultPart,
    Role, Settlement,
};

/// What came of a round, or of taking a session up again. The history has it already.
#[derive(Debug, Default)]
pub struct Round {
    /// The outcomes, in the order of the calls; of calls that go on waiting, too.
    pub outcomes: Vec<Outcome>,
    /// Answers that do not count, and why.
    pub ignored: Vec<Ignored>,
}

impl Round {
    /// The questions that people have not answered.
    pub fn pending(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.outcomes.iter().filter_map(|outcome| outcome.approval.as_ref())
    }

    /// Whether the run stops here, for people to answer.
    pub fn is_suspended(&self) -> bool {
        self.pending().next().is_some()
    }
}

/// Why a session can't go on by its history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The store that others share does not say what the session has seen. Nothing was run.
    #[error("what the session has seen can't be known: {0}")]
    Store(#[from] StoreError),
    /// A result can't be put into the history. The calls are settled in the store all the same.
    #[error("{0}")]
    History(#[from] AnswerError),
}

/// A call of a history, with what belongs to it.
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) part: CallPart,
    pub(super) name: String,
    pub(super) request: Option<RequestPart>,
    answers: Vec<ResponsePart>,
}

impl Session {
    /// Takes the session up by its history, before its model is called: settles what has an answer, leaves what has none
    /// waiting, and runs nothing that is settled. The results are put into the history, and questions that have to be asked
    /// anew; each call then has one result or one question.
    ///
    /// A call of the history that has neither was begun, and nobody knows how it ended: it is not run, and its result says so. New
    /// calls of the model are for [`round`](Self::round).
    ///
    /// What the session has seen is read from the history's seal and from the store. See [`ResumeError`] for when nothing is
    /// done.
    pub async fn resume(
        &mut self,
        history: &mut History,
        executor: &impl ToolExecutor,
    ) -> Result<Round, ResumeError> {
        self.see(history).await?;
        let found = self.unsettled(history);
        if found.is_empty() && history.messages().last().is_some_and(begins_run) {
            self.state.begin_run();
        }
        let unknown = unknown_answers(history, &found);
        let layers = self.layers();
        let conversation = self.conversation();
        let name = self.name.clone();
        let calls: Vec<ToolCall> = found.iter().map(|found| of_history(&self.calls, found)).collect();
        let mut desk = self.desk(&layers, &conversation, executor);
        desk.recorded = false;
        let telling = desk.telling.clone();
        let mut round = Round { outcomes: Vec::new(), ignored: unknown };
        let mut settled = Vec::new();
        for (found, call) in found.iter().zip(calls) {
            let started = Instant::now();
            let occurrence =
                found.request.as_ref().and_then(|request| request.approval_id.strip_prefix("approval_"));
            let name_of = Name {
                conversation: conversation.clone(),
                occurrence: occurrence.unwrap_or(&found.name).to_owned(),
            };
            let said = Said { request: found.request.as_ref(), answers: &found.answers };
            let TakenUp { outcome, ignored } = match &found.request {
                Some(_) => desk.take_up(&call, &name_of, said, started).await,
                None => desk.never_asked(&call, &name_of, started).await.into(),
            };
            let outcome = desk.report(name.as_deref(), outcome);
            round.ignored.extend(ignored);
            put(history, found, &outcome, &telling, &mut settled)?;
            round.outcomes.push(outcome);
        }
        history.append_results(settled)?;
        // What stopped the run that these calls were of does not stop the next one.
        if self.state.halted().is_some() && !round.outcomes.iter().any(|outcome| stops(outcome.outcome)) {
            self.state.begin_anew();
        }
        self.keep(history).await;
        Ok(round)
    }

    /// Puts the calls of the model's last messages through, as [`execute_round`](Self::execute_round) does, and puts their
    /// results and questions into the history. A call that has a result or a question already is passed over.
    pub async fn round(
        &mut self,
        history: &mut History,
        executor: &impl ToolExecutor,
    ) -> Result<Round, ResumeError> {
        self.see(history).await?;
        let found = self.new_calls(history);
        let calls: Vec<ToolCall> = found.iter().map(|found| of_history(&self.calls, found)).collect();
        let names = found.iter().map(|found| found.name.clone()).collect();
        let outcomes = self.execute_named(calls, names, executor).await;
        let mut settled = Vec::new();
        for (found, outcome) in found.iter().zip(&outcomes) {
            put(history, found, outcome, &self.telling, &mut settled)?;
        }
        history.append_results(settled)?;
        self.keep(history).await;
        Ok(Round { outcomes, ignored: Vec::new() })
    }

    /// The calls of the model's last messages that have neither result nor question.
    pub(super) fn new_calls(&self, history: &History) -> Vec<Found> {
        let occurrences = history.occurrences();
        let last = occurrences.last().map(|call| call.round);
        let in_last = |found: &Found| {
            occurrences.iter().any(|call| Some(call.round) == last && call.place == found.place)
        };
        let new = self.unsettled(history).into_iter().filter(|found| found.request.is_none());
        new.filter(in_last).collect()
    }

    /// What the session has seen by its history, and by what it has seen itself so far.
    pub(super) async fn see(&mut self, history: &History) -> Result<(), StoreError> {
        if self.has_seen {
            return Ok(());
        }
        let seen = self.shared.seen(&self.conversation(), history).await?;
        self.state.unite(&seen);
        self.has_seen = true;
        Ok(())
    }

    /// Keeps what the session has seen. A store that does not answer now is asked again after the next round.
    pub(super) async fn keep(&self, history: &mut History) {
        let conversation = self.conversation();
        self.shared.seal_into(&conversation, history, &self.state);
        let _ = self.shared.keep_in_store(&conversation, &self.state).await;
    }

    /// The calls of a history that have no result, with names that no other call of it has.
    pub(super) fn unsettled(&self, history: &History) -> Vec<Found> {
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        let occurrences = history.occurrences();
        let mut found = Vec::new();
        for call in &occurrences {
            let count = names.entry(&call.call.id).or_default();
            *count += 1;
            if call.result.is_none() {
                found.push(Found {
                    place: call.place,
                    part: call.call.clone(),
                    name: occurrence_name(&call.call.id, *count),
                    request: call.request.cloned(),
                    answers: call.responses.iter().map(|response| (*response).clone()).collect(),
                });
            }
        }
        found
    }
}

impl<E: ToolExecutor> Desk<'_, E> {
    /// A call of a history that has neither result nor question. What the ledger knows of it is told; otherwise it began, and
    /// nobody knows how it ended.
    async fn never_asked(&mut self, call: &ToolCall, name: &Name, started: Instant) -> Outcome {
        let ledger = self.shared.services.ledger(&*self.shared.clock);
        let asked = Question::digest_of_call(&call.tool, call.server.as_deref(), &call.input);
        match ledger.find(name).await {
            Ok(Some(entry)) if entry.call == asked => {
                self.take_up(call, name, Said::default(), started).await.outcome
            }
            _ => {
                let message = "the history has no result of this call: it may have run, and is not run again";
                self.unfinished(call, message.to_owned(), started)
            }
        }
    }
}

/// The call as policies see it. A question that is ours knows the server that has the tool.
pub(super) fn of_history(calls: &super::Calls, found: &Found) -> ToolCall {
    let mut call = calls.of(&found.part);
    if call.server.is_none() {
        call.server = found.request.as_ref().and_then(|request| request.server.clone());
    }
    call
}

pub(super) fn put(
    history: &mut History,
    found: &Found,
    outcome: &Outcome,
    telling: &Telling,
    settled: &mut Vec<Settlement>,
) -> Result<(), AnswerError> {
    let told = telling.result(outcome);
    settled.extend(told.map(|ResultPart { output, settled, .. }| Settlement {
        place: found.place,
        output,
        settled,
    }));
    let Some(request) = &outcome.approval else { return Ok(()) };
    let request = RequestPart::from(request);
    if found.request.as_ref().is_none_or(|known| known.approval_token != request.approval_token) {
        history.put_approval_request(found.place, request)?;
    }
    Ok(())
}

/// Answers to questions of which no call of the history waits.
fn unknown_answers(history: &History, found: &[Found]) -> Vec<Ignored> {
    let heard: Vec<&ResponsePart> = found.iter().flat_map(|found| &found.answers).collect();
    let settled = history.occurrences().into_iter().filter(|call| call.result.is_some());
    let late: Vec<String> =
        settled.filter_map(|call| call.request.map(|request| request.approval_id.clone())).collect();
    let parts = history.messages().iter().flat_map(|message| message.parts()).enumerate();
    let unknown = parts.filter_map(|(place, part)| match part.content() {
        Content::Response(response) if !heard.contains(&response) => {
            if late.contains(&response.approval_id) {
                return None;
            }
            let why = "no call waits for it".to_owned();
            Some(Ignored { place, approval_id: response.approval_id.clone(), why })
        }
        _ => None,
    });
    unknown.collect()
}

/// Whether a run begins with this message: the user speaks.
fn begins_run(message: &Message) -> bool {
    let of_call = |part: &Part| matches!(part.content(), Content::Result(_) | Content::Response(_));
    *message.role() == Role::User && !message.parts().iter().any(of_call)
}

fn stops(kind: OutcomeKind) -> bool {
    matches!(kind, OutcomeKind::Halted | OutcomeKind::Aborted)
}
