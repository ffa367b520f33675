//! A call that waited for a person is taken up again: what was asked, what was answered, and what becomes of it now.
//!
//! Every step is strict: a question that is not provably ours counts for nothing, an answer counts only for what was asked, and
//! the call goes through gate again under the rules of now.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::desk::{Desk, unreachable_store};
use crate::approval::{
    Asker, Entry, Grant, GrantKey, Ignored, Ledger, LedgerError, Name, Permit, Question, Stage, Standing,
    edited, tally,
};
use crate::call::{
    ApprovalDecision, ApprovalRequest, Approved, Outcome, OutcomeKind, Reason, ToolCall, reason_code,
};
use crate::execution::{Stopped, Turn, requester, tenant};
use crate::host::{ToolExecutor, guarded};
use crate::json;
use crate::kernel::{Effect, Held};
use crate::message::{RequestPart, ResponsePart};

/// How often a call is looked at anew when others change what is known of it.
const TRIES: usize = 8;
/// Clocks differ by as much.
const SKEW: Duration = Duration::from_secs(60);

/// What a history says of a call that waits.
#[derive(Clone, Copy, Default)]
pub(super) struct Said<'h> {
    /// The question, if it has one.
    pub(super) request: Option<&'h RequestPart>,
    /// The answers to it.
    pub(super) answers: &'h [ResponsePart],
}

/// What came of a call that was taken up.
pub(super) struct TakenUp {
    pub(super) outcome: Outcome,
    /// Answers that do not count.
    pub(super) ignored: Vec<Ignored>,
}

impl From<Outcome> for TakenUp {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, ignored: Vec::new() }
    }
}

/// A question that is provably ours and about this call, with all answers that are known.
struct Put {
    question: Question,
    token: String,
    answers: Vec<ResponsePart>,
}

impl Put {
    fn request(&self) -> ApprovalRequest {
        ApprovalRequest { approval_token: Some(self.token.clone()), ..self.question.request.clone() }
    }
}

impl<E: ToolExecutor> Desk<'_, E> {
    /// Takes a call up that waits, or that the ledger knows. If Callgate itself fails, it is not known how far it came.
    pub(super) async fn take_up(
        &mut self,
        call: &ToolCall,
        name: &Name,
        said: Said<'_>,
        started: Instant,
    ) -> TakenUp {
        match guarded(self.look_at(call, name, said, started)).await {
            Ok(taken_up) => taken_up,
            Err(_) => {
                let message = "Callgate failed while it took this call up".to_owned();
                self.unfinished(call, message, started).into()
            }
        }
    }

    async fn look_at(&mut self, call: &ToolCall, name: &Name, said: Said<'_>, started: Instant) -> TakenUp {
        for _ in 0..TRIES {
            let ledger = self.shared.services.ledger(&*self.shared.clock);
            let entry = match ledger.find(name).await {
                Ok(entry) => entry,
                Err(error) => return self.still_waiting(call, name, said, &error, started).await,
            };
            let asked = Question::digest_of_call(&call.tool, call.server.as_deref(), &call.input);
            let own = entry.filter(|entry| entry.call == asked);
            if let Some(entry) = &own
                && !matches!(entry.stage, Stage::Waiting)
            {
                let turn = Turn { entry: own.clone(), ..Turn::first(name.clone(), true) };
                return self.elsewhere(call, &turn, entry.clone(), started).await.into();
            }
            let put = match self.put(call, said, own.as_ref()) {
                Ok(put) => put,
                Err(why) => return self.ask_anew(call, name, own, &why, started).await,
            };
            if let Some(taken_up) = self.judge(&ledger, call, name, own, put, said, started).await {
                return taken_up;
            }
        }
        let message = "it kept being changed by others while it was taken up; take the session up again";
        self.unfinished(call, message.to_owned(), started).into()
    }

    /// What was asked about the call. Errors: nothing that is provably ours, or something about another call.
    fn put(&self, call: &ToolCall, said: Said<'_>, entry: Option<&Entry>) -> Result<Put, String> {
        let keys = self.shared.services.keys.as_ref();
        let noted = match entry.and_then(|entry| Some((entry, entry.question(keys)?))) {
            None => None,
            Some((entry, Ok((question, token)))) => {
                Some(Put { question, token: token.to_owned(), answers: entry.answers() })
            }
            Some((_, Err(error))) => return Err(error.to_string()),
        };
        let put = match (said.request, noted) {
            (None, None) => return Err("nobody was asked about it".to_owned()),
            (None, Some(noted)) => noted,
            (Some(request), noted) => {
                let question = Question::open(request, keys).map_err(|error| error.to_string())?;
                let token = request.approval_token.clone().unwrap_or_default();
                match noted {
                    Some(noted) if noted.token == token => {
                        let mut answers = noted.answers;
                        let new = |answer: &&ResponsePart| !answers.contains(answer);
                        let new: Vec<_> = said.answers.iter().filter(new).cloned().collect();
                        answers.extend(new);
                        Put { question, token, answers }
                    }
                    // It was asked anew since: what the history has are answers to an older question.
                    Some(noted) if noted.question.asked_at >= question.asked_at => noted,
                    _ => Put { question, token, answers: said.answers.to_vec() },
                }
            }
        };
        let Question { request, conversation, tenant: of, call: asked, .. } = &put.question;
        let is = Question::digest_of_call(&call.tool, call.server.as_deref(), &call.input);
        if conversation != self.conversation {
            return Err("it was asked in another conversation".to_owned());
        }
        if !json::equal(of, &tenant(call)) {
            return Err("it was asked for another tenant".to_owned());
        }
        if request.tool_call_id != call.id || *asked != is {
            return Err("the call was changed since it was asked about".to_owned());
        }
        Ok(put)
    }

    /// What becomes of a call by the answers so far; nothing where others changed what is known of it meanwhile.
    #[expect(clippy::too_many_arguments, reason = "one call with all that is known of it, on its only way")]
    async fn judge(
        &mut self,
        ledger: &Ledger<'_>,
        call: &ToolCall,
        name: &Name,
        own: Option<Entry>,
        put: Put,
        said: Said<'_>,
        started: Instant,
    ) -> Option<TakenUp> {
        let services = &self.shared.services;
        let accepts =
            |answer: &ResponsePart| services.accepts_answer.as_ref().is_some_and(|accepts| accepts(answer));
        let (standing, ignored) =
            tally(&put.question, &put.token, &put.answers, services.keys.as_ref(), &accepts);
        let now = self.shared.clock.now();
        let with = |outcome: Outcome| Some(TakenUp { outcome, ignored: ignored.clone() });
        let early = put.question.asked_at.checked_sub(SKEW).is_ok_and(|earliest| now < earliest);
        let expired = put.question.expires_at().is_some_and(|expires| now >= expires);
        let open = matches!(standing, Standing::Open { .. });
        if self.state.halted().is_none() && (early || open && !expired) {
            let why = early.then(|| "it was asked later than the clock says it is now".to_owned());
            return with(self.waiting(call, put.request(), why));
        }
        // Answers are noted before anything is done about them.
        let entry = match self.note(ledger, call, name, own, &put, said, &ignored).await {
            Ok(Some(entry)) => entry,
            Ok(None) => return None,
            Err(error) => {
                return with(self.waiting(
                    call,
                    put.request(),
                    Some(unreachable_store(&error.to_string()).message),
                ));
            }
        };
        let turn = Turn { entry: Some(entry), ..Turn::first(name.clone(), true) };
        if self.state.halted().is_some() {
            let reason = refusal(&put.question, reason_code::CANCELLED, &[], None);
            return with(self.denied(call, &turn, Effect::Halt, reason, started).await);
        }
        let denies = match &standing {
            Standing::Denied { by, reason } => {
                Some((by.clone(), reason.clone(), reason_code::APPROVAL_DENIED, Effect::Deny))
            }
            Standing::Cancelled { by, reason } => {
                Some((by.clone(), reason.clone(), reason_code::CANCELLED, Effect::Halt))
            }
            _ if expired => Some((Vec::new(), None, reason_code::APPROVAL_EXPIRED, Effect::Deny)),
            _ => None,
        };
        if let Some((by, reason, code, effect)) = denies {
            let decision = decision_of(&put.question, false, code, reason.clone(), by.clone());
            self.tell_decision(ledger, &turn.name, &decision).await;
            let reason = refusal(&put.question, code, &by, reason);
            let mut outcome = self.denied(call, &turn, effect, reason, started).await;
            if code == reason_code::CANCELLED && outcome.outcome == OutcomeKind::Halted {
                outcome.outcome = OutcomeKind::Aborted;
                let _ = ledger.settle(&turn.name, &turn.entry(call), &outcome).await;
            }
            return with(outcome);
        }
        self.approved(ledger, call, turn, put.question, standing, started)
            .await
            .map(|outcome| TakenUp { outcome, ignored })
    }

    /// Notes the question and the answers that count, where the ledger does not have them; gives back what it then has.
    #[expect(clippy::too_many_arguments, reason = "one call with all that is known of it, on its only way")]
    async fn note(
        &self,
        ledger: &Ledger<'_>,
        call: &ToolCall,
        name: &Name,
        own: Option<Entry>,
        put: &Put,
        said: Said<'_>,
        ignored: &[Ignored],
    ) -> Result<Option<Entry>, LedgerError> {
        let keys = self.shared.services.keys.as_ref();
        let known = own.as_ref().and_then(|entry| entry.request.as_ref()?.approval_token.as_ref());
        if known != Some(&put.token) {
            let fresh = Entry::new(&call.id, &call.tool, put.question.call);
            let noted = ledger.ask(name, &fresh, &put.question, &put.request(), keys, false).await?;
            match noted {
                Ok(request) if request.approval_token.as_ref() == Some(&put.token) => {}
                // Another call, or another question, was quicker.
                _ => return Ok(None),
            }
        }
        if said.answers.is_empty() && own.is_some() {
            return Ok(own);
        }
        let counts = |place: &usize| !ignored.iter().any(|ignored| ignored.place == *place);
        let counting = put.answers.iter().enumerate().filter(|(place, _)| counts(place));
        for (_, answer) in counting {
            match ledger.answer(name, answer).await {
                Ok(_) => {}
                Err(LedgerError::Refused(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        ledger.find(name).await
    }

    /// A call to which people said yes, or which they answered themselves.
    async fn approved(
        &mut self,
        ledger: &Ledger<'_>,
        call: &ToolCall,
        mut turn: Turn,
        question: Question,
        standing: Standing,
        started: Instant,
    ) -> Option<Outcome> {
        let (by, given, output, reason) = match standing {
            Standing::Approved { by, edited, reason } => (by, edited, None, reason),
            Standing::Answered { by, output } => (by, None, Some(output), None),
            Standing::Open { .. } | Standing::Denied { .. } | Standing::Cancelled { .. } => return None,
        };
        let mut base = match &question.edited {
            Some(input) => Cow::Owned(call.with_input(input.clone())),
            None => Cow::Borrowed(call),
        };
        let mut permits = question.held.clone();
        let yes = question.askers.iter().map(|asker| asker.permit.clone());
        match &given {
            None => permits.extend(yes),
            Some(given) => match self.edit(&base, &question, given) {
                Ok(input) => {
                    let about = json::digest(&input);
                    permits.extend(yes.map(|permit| Permit { about, ..permit }));
                    turn.edited = Some(input.clone());
                    base = Cow::Owned(call.with_input(input));
                }
                Err(reason) => {
                    return Some(self.denied(call, &turn, Effect::Invalid, reason, started).await);
                }
            },
        }
        turn.edited = turn.edited.or(question.edited.clone());
        turn.permits = permits;
        turn.journals = question.journals.clone();
        turn.approved = Some(Approved {
            approval_id: question.request.approval_id.clone(),
            by: by.clone(),
            remembered: false,
            edited: turn.edited.is_some(),
            used_once_by: ledger.used_once_by(),
        });
        let code = if output.is_some() { reason_code::ANSWERED } else { reason_code::APPROVED };
        let decision = decision_of(&question, true, code, reason, by.clone());
        self.tell_decision(ledger, &turn.name, &decision).await;
        if let Some(reason) = self.unfit(&base) {
            return Some(self.denied(call, &turn, Effect::Invalid, reason, started).await);
        }
        let held = Held { limits: &[], permits: &turn.permits };
        let kernel = self.kernel();
        let decided = kernel.decide_holding(&base, self.state, held);
        let ended = match output {
            Some(output) if decided.is_permitted() => {
                self.execute.give(&base, decided, &turn, output, self.state, started).await
            }
            _ => self.run(&base, decided, &turn, started).await,
        };
        match ended {
            Ok(outcome) => {
                if given.is_none() && outcome.approved.is_some() {
                    self.remember(ledger, call, &question, &by).await;
                }
                Some(self.over(call, &turn, outcome).await)
            }
            // Whoever took it up, or answered, is seen when it is looked at anew.
            Err(Stopped::Elsewhere(_)) => None,
            Err(Stopped::Ledger(error)) => Some(self.waiting(
                call,
                question.request,
                Some(unreachable_store(&error.to_string()).message),
            )),
        }
    }

    /// The arguments as a person changed them. Errors: they can't be taken.
    fn edit(&self, call: &ToolCall, question: &Question, given: &Value) -> Result<Value, Reason> {
        let kernel = self.kernel();
        let decided = kernel.decide(call, self.state);
        let real = decided.input();
        let fail = |message: String| Reason {
            policy: question.request.policies.first().cloned(),
            code: reason_code::SCHEMA_VIOLATION.to_owned(),
            message: format!("the arguments that a person gave it can't be used: {message}"),
        };
        if json::digest(real).to_string() != question.request.input_digest {
            return Err(fail("what was asked about is made in other forms by now".to_owned()));
        }
        let allowed = question.editable();
        let allowed: Vec<_> = allowed.iter().map(Vec::as_slice).collect();
        let input = edited(real, &question.request.input, given, &allowed)
            .map_err(|error| fail(error.to_string()))?;
        let call = call.with_input(input);
        kernel.fits_edits(&call, &question.askers).map_err(fail)?;
        let formed = kernel.decide(&call, self.state);
        if !json::equal(formed.input(), &call.input) {
            return Err(fail("a policy gives them another form than the person has seen".to_owned()));
        }
        Ok(call.input)
    }

    /// Why an approved call does not fit its tool any more.
    fn unfit(&self, call: &ToolCall) -> Option<Reason> {
        let tools = self.execute.kernel.tools;
        let fail =
            |code: &str, message: String| Some(Reason { policy: None, code: code.to_owned(), message });
        if tools.is_empty() {
            return None;
        }
        let Some(tool) = tools.get(call) else {
            let message = format!("there is no tool `{}` any more", call.tool);
            return fail(reason_code::SCHEMA_UNAVAILABLE, message);
        };
        let Some(Ok(schema)) = &tool.schema else { return None };
        let input = self.execute.kernel.decide(call, self.state);
        match schema.check(input.input()) {
            Ok(()) => None,
            Err(violations) => fail(
                reason_code::SCHEMA_VIOLATION,
                format!("the tool takes other arguments by now: {}", crate::schema::summary(&violations)),
            ),
        }
    }

    /// Keeps the yes for later calls, where policies say so. A store that does not answer remembers nothing.
    async fn remember(&self, ledger: &Ledger<'_>, call: &ToolCall, question: &Question, by: &[String]) {
        let from = self.shared.clock.now();
        let (tenant, requester) = (tenant(call), requester(call));
        for Asker { permit, remember, .. } in &question.askers {
            let Some(remember) = remember else { continue };
            let Ok(until) = from.checked_add(remember.duration()) else { continue };
            let permit = Permit { about: remember.about, ..permit.clone() };
            let key = GrantKey {
                permit: &permit,
                tool: &call.tool,
                server: call.server.as_deref(),
                tenant: &tenant,
                requester: requester.as_deref(),
            };
            let grant = Grant {
                approval_id: question.request.approval_id.clone(),
                policy: permit.policy.clone(),
                tool: call.tool.clone(),
                by: by.to_vec(),
                from,
                until,
                revoked: false,
                permit: permit.clone(),
            };
            let _ = ledger.keep_grant(&key.name(), &grant).await;
        }
    }

    async fn tell_decision(&self, ledger: &Ledger<'_>, name: &Name, decision: &ApprovalDecision) {
        if ledger.tell_once(name, true).await.unwrap_or(true) {
            self.shared.tell(|observer| match decision.approved {
                true => observer.on_approved(decision),
                false => observer.on_denied(decision),
            });
        }
    }

    /// A call whose question counts for nothing: it is asked about anew, or refused. It does not run by rules that would not ask
    /// any more, for nobody knows who wrote it into the history.
    async fn ask_anew(
        &mut self,
        call: &ToolCall,
        name: &Name,
        entry: Option<Entry>,
        why: &str,
        started: Instant,
    ) -> TakenUp {
        let kernel = self.kernel();
        let mut decision = kernel.decide(call, self.state);
        if decision.is_permitted() {
            let message = format!("the question about this call counts for nothing: {why}");
            let code = reason_code::APPROVAL_INVALID.to_owned();
            decision.refuse(Effect::Deny, Reason { policy: None, code, message }, None);
        }
        // What is known under its name is not about this question.
        drop(entry);
        let turn = Turn::first(name.clone(), false);
        let outcome = self.execute.refuse(call, decision, &turn, self.state, started).await;
        let ignored = Ignored { place: 0, approval_id: turn.approval_id(), why: why.to_owned() };
        TakenUp { outcome: self.over(call, &turn, outcome).await, ignored: vec![ignored] }
    }

    /// A call of which it is not known how far it is, for its store does not say: it goes on waiting.
    async fn still_waiting(
        &mut self,
        call: &ToolCall,
        name: &Name,
        said: Said<'_>,
        error: &LedgerError,
        started: Instant,
    ) -> TakenUp {
        let reason = unreachable_store(&error.to_string());
        match said
            .request
            .and_then(|request| Question::open(request, self.shared.services.keys.as_ref()).ok())
        {
            Some(question) => {
                let token = said.request.and_then(|request| request.approval_token.clone());
                let request = ApprovalRequest { approval_token: token, ..question.request };
                self.waiting(call, request, Some(reason.message)).into()
            }
            None => {
                let turn = Turn::first(name.clone(), false);
                let mut decision = self.execute.kernel.decide(call, self.state);
                decision.refuse(Effect::Deny, reason, None);
                self.execute.refuse(call, decision, &turn, self.state, started).await.into()
            }
        }
    }
}

fn decision_of(
    question: &Question,
    approved: bool,
    code: &str,
    reason: Option<String>,
    by: Vec<String>,
) -> ApprovalDecision {
    let ApprovalRequest { approval_id, tool_call_id, tool_name, policies, .. } = question.request.clone();
    ApprovalDecision {
        approval_id,
        tool_call_id,
        tool_name,
        policies,
        approved,
        code: code.to_owned(),
        reason,
        by,
    }
}

/// What the agent is told of a call that people did not let run.
fn refusal(question: &Question, code: &str, by: &[String], said: Option<String>) -> Reason {
    let who = if by.is_empty() { "a person".to_owned() } else { by.join(", ") };
    let why = said.filter(|said| !said.is_empty()).map(|said| format!(": {said}")).unwrap_or_default();
    let message = match code {
        reason_code::CANCELLED => format!("{who} ended the run{why}"),
        reason_code::APPROVAL_EXPIRED => "nobody answered in time, and the question has lapsed".to_owned(),
        _ => format!("{who} denied this call{why}"),
    };
    Reason { policy: question.request.policies.first().cloned(), code: code.to_owned(), message }
}
