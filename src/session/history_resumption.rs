//! Resumes a session from its history: the calls of its last round, and pending calls of earlier rounds.

use std::collections::BTreeMap;
use std::time::Instant;

use super::{Session, occurrence_name};
use crate::approval::{IgnoredAnswer, LedgerEntry, LedgerKey};
use crate::call::{ApprovalRequest, Outcome, OutcomeKind, ToolCall};
use crate::execution::{
    ApprovalMessages, CallProgress, CallRunner, EntrySnapshot, PendingCall, ResumedCall, ToolResultFormatter,
    unfinished,
};
use crate::host::{StoreError, ToolExecutor, catch_panic};
use crate::message::{
    CallPart, CallResult, History, HistoryEditError, PartContent, PartPosition, RequestPart, ResponsePart,
    ResultPart,
};

/// The result of a round, or of resuming a session. The history has it already.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Round {
    /// The outcomes in the order of the calls, also of calls that stay pending.
    pub outcomes: Vec<Outcome>,
    /// Answers that do not count, and why.
    pub ignored: Vec<IgnoredAnswer>,
}

impl Round {
    /// The pending approval requests.
    pub fn pending(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.outcomes.iter().filter_map(|outcome| outcome.approval.as_deref())
    }

    /// Whether the run stops here, for people to answer.
    pub fn is_suspended(&self) -> bool {
        self.pending().next().is_some()
    }
}

/// Why a session can't resume from its history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The shared store does not return the session's state. Nothing was run.
    #[error("the session's state is unknown: {0}")]
    Store(#[from] StoreError),
    /// A result can't be put into the history. The calls are settled in the store all the same.
    #[error("{0}")]
    History(#[from] HistoryEditError),
}

/// A call of a history, with its request and answers.
pub(super) struct HistoryCall {
    pub(super) place: PartPosition,
    pub(super) part: CallPart,
    pub(super) name: String,
    pub(super) request: Option<RequestPart>,
    answers: Vec<ResponsePart>,
    /// Its entry in the ledger, if it was read.
    entry: EntrySnapshot,
}

impl HistoryCall {
    /// The messages of the history about the call.
    pub(super) fn messages(&self) -> ApprovalMessages<'_> {
        ApprovalMessages { request: self.request.as_ref(), answers: &self.answers }
    }

    /// The call's key in the ledger.
    pub(super) fn key_in(&self, conversation: &str) -> LedgerKey {
        let requested_id =
            self.request.as_ref().and_then(|request| request.approval_id.strip_prefix("approval_"));
        LedgerKey {
            conversation: conversation.to_owned(),
            occurrence_id: requested_id.unwrap_or(&self.name).to_owned(),
        }
    }

    /// Whether an answer ends the run. Whether it counts is decided when the call resumes.
    fn cancels(&self) -> bool {
        let recorded = self.entry.entry().map(LedgerEntry::answers).unwrap_or_default();
        recorded.iter().chain(&self.answers).any(|answer| answer.cancel)
    }
}

impl Session {
    /// Resumes the session from its history, before its model is called: settles the calls that have an answer,
    /// leaves those without one pending, and runs nothing that is settled. Results are put into the history,
    /// and requests that have to be made again; each call then has one result or one request.
    ///
    /// A call of the history that has neither was started, and nobody knows how it ended: it does not run, and
    /// its result says so. New calls of the model are for [`run_round`](Self::run_round).
    ///
    /// The session's state is read from the history's seal and from the store. [`ResumeError`] says when
    /// nothing is done.
    pub async fn resume(
        &mut self,
        history: &mut History,
        executor: &impl ToolExecutor,
    ) -> Result<Round, ResumeError> {
        let mut found = self.unsettled(history);
        let conversation = self.conversation();
        let requested = found.iter_mut().filter(|found| found.request.is_some());
        let (keys, requested): (Vec<LedgerKey>, Vec<&mut HistoryCall>) =
            requested.map(|found| (found.key_in(&conversation), found)).unzip();
        let entries = self.load_state(history, false, &keys).await?;
        requested.into_iter().zip(entries).for_each(|(found, entry)| found.entry = entry);
        self.read_entries(&mut found).await;
        let unknown = unknown_answers(history, &found);
        let scope = self.scope();
        let calls: BTreeMap<PartPosition, ToolCall> =
            found.iter().map(|found| (found.place, history_call(&self.calls, found))).collect();
        let formatter = self.formatter.clone();
        let mut runner = self.runner(&scope, executor);
        runner.context.session.is_recorded = false;
        let mut round = Round { outcomes: Vec::new(), ignored: unknown };
        let mut settled = Vec::new();
        let mut outcomes: BTreeMap<PartPosition, Outcome> = BTreeMap::new();
        // If a person ends the run, none of its other calls runs, whatever their order.
        let (ending, others): (Vec<_>, Vec<_>) = found.iter().partition(|found| found.cancels());
        for found in ending.into_iter().chain(others) {
            let started = Instant::now();
            let Some(call) = calls.get(&found.place) else { continue };
            let key = found.key_in(&scope.conversation);
            let pending = PendingCall { key: &key, messages: found.messages(), entry: found.entry.clone() };
            let ResumedCall { outcome, ignored } = match &found.request {
                Some(_) => runner.resume_call(call, pending, started).await,
                None => runner.resume_unasked(call, &key, started).await.into(),
            };
            round.ignored.extend(ignored);
            outcomes.insert(found.place, *runner.report(call, outcome));
        }
        runner.context.services.observers.record_outcomes().await;
        for found in &found {
            let Some(outcome) = outcomes.remove(&found.place) else { continue };
            put_result(history, found, &outcome, &formatter, &mut settled)?;
            round.outcomes.push(outcome);
        }
        settle(history, settled)?;
        // A halt of the run of these calls does not halt the next run.
        if self.state.halt_message().is_some() && !round.outcomes.iter().any(|outcome| stops(outcome.outcome))
        {
            self.state.start_new_run();
        }
        self.save_state(history).await;
        Ok(round)
    }

    /// Runs the calls of the model's last messages, as [`execute_round`](Self::execute_round) does, and puts
    /// their results and approval requests into the history. Calls that have a result or a request already are
    /// skipped.
    ///
    /// The future may be dropped. The history is then unchanged, and calling `round` again resumes the round
    /// where it stopped: calls that ended return their outcome, a call that was running is `indeterminate` and
    /// does not run again, the rest runs. (Another process can do this only for a [`recorded`](Self::with_call_recording)
    /// session.)
    pub async fn run_round(
        &mut self,
        history: &mut History,
        executor: &impl ToolExecutor,
    ) -> Result<Round, ResumeError> {
        self.load_state(history, true, &[]).await?;
        let found = self.new_calls(history);
        let outcomes = self.outcomes_of(&found, executor).await;
        let mut settled = Vec::new();
        for (found, outcome) in found.iter().zip(&outcomes) {
            put_result(history, found, outcome, &self.formatter, &mut settled)?;
        }
        settle(history, settled)?;
        self.round.clear();
        self.save_state(history).await;
        Ok(Round { outcomes, ignored: Vec::new() })
    }

    /// Brings the calls of a round to their outcomes. Calls of a round that was given up have theirs already,
    /// or started, and nobody knows how they ended.
    async fn outcomes_of(&mut self, found: &[HistoryCall], executor: &impl ToolExecutor) -> Vec<Outcome> {
        if found.is_empty() {
            return Vec::new();
        }
        let calls: Vec<ToolCall> = found.iter().map(|found| history_call(&self.calls, found)).collect();
        let progress = self.round.of_calls(&calls);
        let is_new = |(_, progress): &(_, &CallProgress)| matches!(progress, CallProgress::NotStarted);
        let new = calls.iter().zip(found).zip(&progress).filter(is_new);
        let (rest, names): (Vec<_>, Vec<_>) =
            new.map(|((call, found), _)| (call.clone(), found.name.clone())).unzip();
        let mut rest = match rest.is_empty() {
            true => Vec::new(),
            false => self.run_round_calls(rest, names, executor).await,
        }
        .into_iter();
        let mut outcomes = Vec::with_capacity(calls.len());
        for (call, progress) in calls.iter().zip(progress) {
            outcomes.extend(match progress {
                CallProgress::NotStarted => rest.next(),
                CallProgress::Ended(outcome) => Some(*outcome),
                CallProgress::Started => Some(self.given_up(call, executor).await),
            });
        }
        self.after_calls(&outcomes);
        outcomes
    }

    /// The outcome of a call of a round that was given up while it ran.
    async fn given_up(&mut self, call: &ToolCall, executor: &impl ToolExecutor) -> Outcome {
        let scope = self.scope();
        let mut runner = self.runner(&scope, executor);
        let message =
            "this call was given up while it ran; it does not run again, because it may have taken effect";
        let outcome = runner.indeterminate_call(call, unfinished(message), Instant::now()).await;
        let outcome = runner.report(call, outcome);
        runner.context.services.observers.record_outcomes().await;
        *outcome
    }

    /// Reads the ledger's entries of the calls with a request that were not read yet: one of them may have an answer that ends the run. If
    /// the store does not answer now, it is asked again for each call.
    async fn read_entries(&self, found: &mut [HistoryCall]) {
        let ledger = self.shared.services.ledger(self.account());
        let conversation = self.conversation();
        let is_missing = |found: &&mut HistoryCall| {
            found.request.is_some() && matches!(found.entry, EntrySnapshot::Unread)
        };
        for found in found.iter_mut().filter(is_missing) {
            let key = found.key_in(&conversation);
            if let Ok(Ok(entry)) = catch_panic(ledger.find(&key)).await {
                found.entry = EntrySnapshot::Read(entry.map(Box::new));
            }
        }
    }

    /// The calls of the model's last messages that have neither a result nor a request.
    pub(super) fn new_calls(&self, history: &History) -> Vec<HistoryCall> {
        let occurrences = history.occurrences();
        let last = occurrences.last().map(|call| call.round);
        let in_last = |found: &HistoryCall| {
            occurrences.iter().any(|call| Some(call.round) == last && call.position == found.place)
        };
        let new = self.unsettled(history).into_iter().filter(|found| found.request.is_none());
        new.filter(in_last).collect()
    }

    /// The calls of a history that have no result, with names that no other call of it has.
    pub(super) fn unsettled(&self, history: &History) -> Vec<HistoryCall> {
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        let occurrences = history.occurrences();
        let mut found = Vec::new();
        for call in &occurrences {
            let count = names.entry(&call.call.id).or_default();
            *count += 1;
            if call.result.is_none() {
                found.push(HistoryCall {
                    place: call.position,
                    part: call.call.clone(),
                    name: occurrence_name(&call.call.id, *count),
                    request: call.request.cloned(),
                    answers: call.responses.iter().map(|response| (*response).clone()).collect(),
                    entry: EntrySnapshot::Unread,
                });
            }
        }
        found
    }
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// A call of a history that has neither a result nor a request. If the ledger knows it, it resumes;
    /// otherwise it started, and nobody knows how it ended.
    async fn resume_unasked(&mut self, call: &ToolCall, key: &LedgerKey, started: Instant) -> Box<Outcome> {
        match self.context.ledger(call).find(key).await {
            Ok(Some(entry)) if entry.is_for_call(call) => {
                let entry = EntrySnapshot::Read(Some(Box::new(entry)));
                let pending = PendingCall { key, messages: ApprovalMessages::default(), entry };
                self.resume_call(call, pending, started).await.outcome
            }
            _ => {
                let message =
                    "the history has no result of this call: it may have run, and does not run again";
                self.indeterminate_call(call, unfinished(message), started).await
            }
        }
    }
}

/// The call as policies see it. A request of ours knows the tool's server.
pub(super) fn history_call(calls: &super::CallReader, found: &HistoryCall) -> ToolCall {
    let mut call = calls.of(&found.part);
    if call.server.is_none() {
        call.server = found.request.as_ref().and_then(|request| request.server.clone());
    }
    call
}

fn put_result(
    history: &mut History,
    found: &HistoryCall,
    outcome: &Outcome,
    formatter: &ToolResultFormatter,
    settled: &mut Vec<CallResult>,
) -> Result<(), HistoryEditError> {
    let result = formatter.result(outcome);
    settled.extend(result.map(|ResultPart { output, status, .. }| CallResult {
        position: found.place,
        output,
        status,
    }));
    let Some(request) = outcome.approval.as_deref() else { return Ok(()) };
    let request = RequestPart::from(request);
    if found.request.as_ref().is_none_or(|known| known.approval_token != request.approval_token) {
        history.add_approval_request(found.place, request)?;
    }
    Ok(())
}

/// Puts results into the history. If an earlier call of the same id and round stays pending, a result would be
/// taken for that one's: it is left to the store, which returns it when the session resumes.
fn settle(history: &mut History, settled: Vec<CallResult>) -> Result<(), HistoryEditError> {
    match history.append_results(settled.clone()) {
        Err(HistoryEditError::SharedId { .. }) => {}
        done => return done,
    }
    let mut fit = Vec::new();
    for one in settled {
        let mut more = fit.clone();
        more.push(one);
        match history.clone().append_results(more.clone()) {
            Ok(()) => fit = more,
            Err(HistoryEditError::SharedId { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    history.append_results(fit)
}

/// Answers to requests that no call of the history waits for.
fn unknown_answers(history: &History, found: &[HistoryCall]) -> Vec<IgnoredAnswer> {
    let known: Vec<&ResponsePart> = found.iter().flat_map(|found| &found.answers).collect();
    let settled = history.occurrences().into_iter().filter(|call| call.result.is_some());
    let late: Vec<String> =
        settled.filter_map(|call| call.request.map(|request| request.approval_id.clone())).collect();
    let parts = history.messages().iter().flat_map(|message| message.parts()).enumerate();
    let unknown = parts.filter_map(|(index, part)| match part.content() {
        PartContent::Response(response) if !known.contains(&response) => {
            if late.contains(&response.approval_id) {
                return None;
            }
            let why = "no pending call has this request".to_owned();
            Some(IgnoredAnswer { index, approval_id: response.approval_id.clone(), code: "not_pending", why })
        }
        _ => None,
    });
    unknown.collect()
}

fn stops(kind: OutcomeKind) -> bool {
    matches!(kind, OutcomeKind::Halted | OutcomeKind::Aborted)
}
