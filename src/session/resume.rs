//! A session over its history: the calls of its last round, and calls of earlier rounds that waited for people.

use std::collections::BTreeMap;
use std::time::Instant;

use super::answered::TakenUp;
use super::desk::Desk;
use super::judged::{Case, Said, verdict};
use super::told::Telling;
use super::{Session, occurrence_name};
use crate::approval::{Ignored, Name, Standing};
use crate::call::{ApprovalDecision, ApprovalRequest, Outcome, OutcomeKind, SessionState, ToolCall};
use crate::host::{StoreError, ToolExecutor, guarded};
use crate::message::{
    AnswerError, CallPart, Content, History, Place, RequestPart, ResponsePart, ResultPart, Settlement,
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
    /// The store has an answer that ends the run.
    noted_ending: bool,
}

impl Found {
    /// What the call is called in the ledger.
    fn name_in(&self, conversation: &str) -> Name {
        let asked = self.request.as_ref().and_then(|request| request.approval_id.strip_prefix("approval_"));
        Name { conversation: conversation.to_owned(), occurrence: asked.unwrap_or(&self.name).to_owned() }
    }

    /// Whether someone answered that the run is to end. Whether that counts is seen when the call is taken up.
    fn cancels(&self) -> bool {
        self.noted_ending || self.answers.iter().any(|answer| answer.cancel)
    }
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
        self.see(history, false).await?;
        let mut found = self.unsettled(history);
        self.add_noted_endings(&mut found).await;
        let unknown = unknown_answers(history, &found);
        let layers = self.layers();
        let conversation = self.conversation();
        let name = self.name.clone();
        let calls: BTreeMap<Place, ToolCall> =
            found.iter().map(|found| (found.place, of_history(&self.calls, found))).collect();
        let mut desk = self.desk(&layers, &conversation, executor);
        desk.recorded = false;
        let telling = desk.telling.clone();
        let mut round = Round { outcomes: Vec::new(), ignored: unknown };
        let mut settled = Vec::new();
        let mut outcomes: BTreeMap<Place, Outcome> = BTreeMap::new();
        // Where a person ends the run, none of its other calls runs, wherever it stands.
        let (ending, others): (Vec<_>, Vec<_>) = found.iter().partition(|found| found.cancels());
        for found in ending.into_iter().chain(others) {
            let started = Instant::now();
            let Some(call) = calls.get(&found.place) else { continue };
            let name_of = found.name_in(&conversation);
            let said = Said { request: found.request.as_ref(), answers: &found.answers };
            let TakenUp { outcome, ignored } = match &found.request {
                Some(_) => desk.take_up(call, &name_of, said, started).await,
                None => desk.never_asked(call, &name_of, started).await.into(),
            };
            round.ignored.extend(ignored);
            outcomes.insert(found.place, desk.report(name.as_deref(), outcome));
        }
        for found in &found {
            let Some(outcome) = outcomes.remove(&found.place) else { continue };
            put(history, found, &outcome, &telling, &mut settled)?;
            round.outcomes.push(outcome);
        }
        settle(history, settled)?;
        // What stopped the run that these calls were of does not stop the next one.
        if self.state.halted().is_some() && !round.outcomes.iter().any(|outcome| stops(outcome.outcome)) {
            self.state.begin_anew();
        }
        self.keep(history).await;
        Ok(round)
    }

    /// Puts the calls of the model's last messages through, as [`execute_round`](Self::execute_round) does, and puts their
    /// results and questions into the history. A call that has a result or a question already is passed over.
    ///
    /// The future may be dropped. The history is then as it was, and `round` once more takes the round up where it stopped: what was
    /// over is told again, a call that ran just then is `indeterminate` and not run again, the rest is run. (Another process knows the
    /// same only of a [`recorded`](Self::recorded) session.)
    pub async fn round(
        &mut self,
        history: &mut History,
        executor: &impl ToolExecutor,
    ) -> Result<Round, ResumeError> {
        self.see(history, true).await?;
        let found = self.new_calls(history);
        let outcomes = self.outcomes_of(&found, executor).await;
        let mut settled = Vec::new();
        for (found, outcome) in found.iter().zip(&outcomes) {
            put(history, found, outcome, &self.telling, &mut settled)?;
        }
        settle(history, settled)?;
        self.made.clear();
        self.keep(history).await;
        Ok(Round { outcomes, ignored: Vec::new() })
    }

    /// Brings the calls of a round to their outcomes. Those of a round that was given up have theirs already, or began, and nobody knows
    /// how they ended.
    async fn outcomes_of(&mut self, found: &[Found], executor: &impl ToolExecutor) -> Vec<Outcome> {
        if found.is_empty() {
            return Vec::new();
        }
        let calls: Vec<ToolCall> = found.iter().map(|found| of_history(&self.calls, found)).collect();
        let made = self.made.of_these(&calls);
        let is_new = made.iter().map(Option::is_none);
        let new = calls.iter().zip(found).zip(is_new).filter(|(_, is_new)| *is_new);
        let (rest, names): (Vec<_>, Vec<_>) =
            new.map(|((call, found), _)| (call.clone(), found.name.clone())).unzip();
        let mut rest = match rest.is_empty() {
            true => Vec::new(),
            false => self.execute_named(rest, names, executor).await,
        }
        .into_iter();
        let mut outcomes = Vec::with_capacity(calls.len());
        for (call, made) in calls.iter().zip(made) {
            outcomes.extend(match made {
                None => rest.next(),
                Some(Some(outcome)) => Some(outcome),
                Some(None) => Some(self.given_up(call, executor).await),
            });
        }
        self.tools_done(&outcomes);
        outcomes
    }

    /// A call of a round that was given up while it ran.
    async fn given_up(&mut self, call: &ToolCall, executor: &impl ToolExecutor) -> Outcome {
        let (layers, conversation, name) = (self.layers(), self.conversation(), self.name.clone());
        let mut desk = self.desk(&layers, &conversation, executor);
        let message =
            "this call was given up while it ran; it is not run again, for it may have taken effect";
        let hooked = desk.hooked(call.clone()).await;
        let outcome = desk.unfinished(&hooked, message.to_owned(), Instant::now());
        desk.report(name.as_deref(), outcome)
    }

    /// Tells observers what people decided, by the answers of a history, without running anything: for agents whose tools are
    /// run elsewhere. Only answers count that would count in [`resume`](Self::resume), to calls that have no result. Gives what
    /// was told now; each decision is told once, also by a later `resume`, as far as the store reaches.
    pub async fn notify_decisions(&self, history: &History) -> Vec<ApprovalDecision> {
        let mut told = Vec::new();
        for found in self.unsettled(history).iter().filter(|found| found.request.is_some()) {
            // Whoever fails here tells nothing.
            told.extend(guarded(self.notify_of(found)).await.ok().flatten());
        }
        told
    }

    async fn notify_of(&self, found: &Found) -> Option<ApprovalDecision> {
        let conversation = self.conversation();
        let ledger = self.shared.services.ledger(&*self.shared.clock, self.account());
        let call = of_history(&self.calls, found);
        let name = found.name_in(&conversation);
        let said = Said { request: found.request.as_ref(), answers: &found.answers };
        let known = ledger.find(&name).await.ok().flatten().filter(|entry| entry.is_of(&call));
        let put = self.shared.put(&conversation, &call, said, known.as_ref()).ok()?;
        let (standing, ignored) = self.shared.standing(&put);
        let now = self.shared.clock.now();
        if matches!(standing, Standing::Open { .. }) || put.is_early(now) {
            return None;
        }
        let decision = verdict(&put.question, &standing, put.is_expired(now))?;
        // It is noted, so that the store knows to whom it was told.
        let case = Case { ledger: &ledger, call: &call, name: &name, said, started: Instant::now() };
        let _ = self.shared.note(case, known, &put, &ignored).await;
        self.shared.tell_decision(&ledger, &name, &decision).await.then_some(decision)
    }

    /// Notes which calls were answered in the store in a way that ends the run. A store that does not answer now is asked again
    /// for each call.
    async fn add_noted_endings(&self, found: &mut [Found]) {
        let ledger = self.shared.services.ledger(&*self.shared.clock, self.account());
        let conversation = self.conversation();
        for found in found.iter_mut().filter(|found| found.request.is_some()) {
            let name = found.name_in(&conversation);
            let known = guarded(ledger.find(&name)).await.ok().and_then(Result::ok);
            let answers = known.flatten().map(|entry| entry.answers()).unwrap_or_default();
            found.noted_ending = answers.iter().any(|answer| answer.cancel);
        }
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
    pub(super) async fn see(&mut self, history: &History, before_round: bool) -> Result<(), StoreError> {
        if let Some(seen) = self.unseen(history, before_round).await? {
            self.state.go_on_from(&seen);
            self.has_seen = true;
        }
        Ok(())
    }

    /// What the session has seen by its history. `None` once it was taken in.
    pub(super) async fn unseen(
        &self,
        history: &History,
        before_round: bool,
    ) -> Result<Option<SessionState>, StoreError> {
        if self.has_seen {
            return Ok(None);
        }
        self.shared.seen(&self.conversation(), history, before_round, self.account()).await.map(Some)
    }

    /// Keeps what the session has seen. A store that does not answer now is asked again after the next round.
    pub(super) async fn keep(&mut self, history: &mut History) {
        let conversation = self.conversation();
        self.state.set_suspended(history.calls_without_result().iter().any(|call| call.request.is_some()));
        self.shared.seal_into(&conversation, history, &self.state);
        let _ = self.shared.keep_in_store(&conversation, self.account(), &self.state).await;
    }

    /// The calls of a history that have no result, with names that no other call of it has.
    fn unsettled(&self, history: &History) -> Vec<Found> {
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
                    noted_ending: false,
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
        let ledger = self.shared.services.ledger(&*self.shared.clock, self.execute.account(call));
        match ledger.find(name).await {
            Ok(Some(entry)) if entry.is_of(call) => {
                self.take_up(call, name, Said::default(), started).await.outcome
            }
            _ => {
                let message = "the history has no result of this call: it may have run, and is not run again";
                let hooked = self.hooked(call.clone()).await;
                self.unfinished(&hooked, message.to_owned(), started)
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

fn put(
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

/// Puts results into the history. Where another call of the same id and round comes first and goes on waiting, a result would
/// be taken for that one's: it is left to the store, which gives it again when the session is taken up later.
fn settle(history: &mut History, settled: Vec<Settlement>) -> Result<(), AnswerError> {
    match history.append_results(settled.clone()) {
        Err(AnswerError::SharedId { .. }) => {}
        done => return done,
    }
    let mut fit = Vec::new();
    for one in settled {
        let mut more = fit.clone();
        more.push(one);
        match history.clone().append_results(more.clone()) {
            Ok(()) => fit = more,
            Err(AnswerError::SharedId { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    history.append_results(fit)
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
            Some(Ignored { place, approval_id: response.approval_id.clone(), code: "not_pending", why })
        }
        _ => None,
    });
    unknown.collect()
}

fn stops(kind: OutcomeKind) -> bool {
    matches!(kind, OutcomeKind::Halted | OutcomeKind::Aborted)
}
