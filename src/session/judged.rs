//! What was asked about a call that waits, what was answered, and what that comes to, as far as it can be proven.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Shared;
use crate::approval::{Entry, Ignored, Ledger, LedgerError, Name, Question, Standing, tally};
use crate::call::{ApprovalDecision, ApprovalRequest, Reason, ToolCall, reason_code};
use crate::message::{RequestPart, ResponsePart};

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

/// A call that is taken up, with where it stands.
#[derive(Clone, Copy)]
pub(super) struct Case<'c> {
    pub(super) ledger: &'c Ledger<'c>,
    pub(super) call: &'c ToolCall,
    pub(super) name: &'c Name,
    pub(super) said: Said<'c>,
    pub(super) started: Instant,
}

/// A question that is provably ours and about this call, with all answers that are known.
pub(super) struct Put {
    pub(super) question: Question,
    pub(super) token: String,
    pub(super) answers: Vec<ResponsePart>,
}

impl Put {
    pub(super) fn request(&self) -> ApprovalRequest {
        ApprovalRequest { approval_token: Some(self.token.clone()), ..self.question.request.clone() }
    }

    /// Whether it was asked later than it is now.
    pub(super) fn is_early(&self, now: Timestamp) -> bool {
        self.question.asked_at.checked_sub(SKEW).is_ok_and(|earliest| now < earliest)
    }

    /// Whether it has lapsed.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.question.expires_at().is_some_and(|expires| now >= expires)
    }
}

/// Why a question counts for nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidQuestion {
    /// It is not provably ours, or not about this call.
    #[error("{0}")]
    NotOurs(String),
    /// It is ours and about this call, and was asked for another identity or context.
    #[error("{0}")]
    OtherContext(String),
}

impl From<String> for InvalidQuestion {
    fn from(why: String) -> Self {
        Self::NotOurs(why)
    }
}

impl Shared {
    /// What was asked about the call. Errors: nothing that is provably ours, or something about another call.
    pub(super) fn put(
        &self,
        conversation: &str,
        call: &ToolCall,
        said: Said<'_>,
        entry: Option<&Entry>,
    ) -> Result<Put, InvalidQuestion> {
        let keys = &self.services.keys;
        let noted = match entry.and_then(|entry| Some((entry, entry.question(keys)?))) {
            None => None,
            Some((entry, Ok((question, token)))) => {
                Some(Put { question, token: token.to_owned(), answers: entry.answers() })
            }
            Some((_, Err(error))) => return Err(error.to_string().into()),
        };
        let put = match (said.request, noted) {
            (None, None) => return Err("nobody was asked about it".to_owned().into()),
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
        let Question { request, conversation: asked_in, call: asked, .. } = &put.question;
        let is = Question::digest_of_call(&call.tool, call.server.as_deref(), &call.input);
        if asked_in != conversation {
            return Err("it was asked in another conversation".to_owned().into());
        }
        if request.tool_call_id != call.id || *asked != is {
            return Err("the call was changed since it was asked about".to_owned().into());
        }
        put.question.check_context(&call.context).map_err(InvalidQuestion::OtherContext)?;
        Ok(put)
    }

    /// What the answers come to, and those that do not count.
    pub(super) fn standing(&self, put: &Put) -> (Standing, Vec<Ignored>) {
        let services = &self.services;
        let accepts =
            |answer: &ResponsePart| services.accepts_answer.as_ref().is_some_and(|accepts| accepts(answer));
        tally(&put.question, &put.token, &put.answers, &services.keys, &accepts)
    }

    /// Notes the question and the answers that count, where the ledger does not have them; gives back what it then has.
    pub(super) async fn note(
        &self,
        case: Case<'_>,
        own: Option<Entry>,
        put: &Put,
        ignored: &[Ignored],
    ) -> Result<Option<Entry>, LedgerError> {
        let Case { ledger, call, name, said, .. } = case;
        let keys = &self.services.keys;
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
        if said.answers.is_empty() && known == Some(&put.token) {
            return Ok(own);
        }
        let counts = |place: &usize| !ignored.iter().any(|ignored| ignored.place == *place);
        let counting = put.answers.iter().enumerate().filter(|(place, _)| counts(place));
        for (_, answer) in counting {
            match ledger.answer(name, answer).await {
                Ok(_) => {}
                // It is over by now, or was forgotten just now.
                Err(LedgerError::Refused(_) | LedgerError::Unknown(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        ledger.find(name).await
    }

    /// Tells who watches what people decided, once.
    pub(super) async fn tell_decision(
        &self,
        ledger: &Ledger<'_>,
        name: &Name,
        decision: &ApprovalDecision,
    ) -> bool {
        // A store that does not answer can't say that they know.
        let tells = ledger.tell_once(name, true).await.unwrap_or(true);
        if tells {
            self.tell(|observer| match decision.approved {
                true => observer.on_approved(decision),
                false => observer.on_denied(decision),
            });
        }
        tells
    }
}

/// What was decided, if anything: a yes counts until the question lapses, a no for ever.
pub(super) fn verdict(question: &Question, standing: &Standing, expired: bool) -> Option<ApprovalDecision> {
    let (by, reason, code) = match standing {
        Standing::Denied { by, reason } => (by.clone(), reason.clone(), reason_code::APPROVAL_DENIED),
        Standing::Cancelled { by, reason } => (by.clone(), reason.clone(), reason_code::CANCELLED),
        _ if expired => (Vec::new(), None, reason_code::APPROVAL_EXPIRED),
        Standing::Open { .. } => return None,
        Standing::Approved { by, reason, .. } => (by.clone(), reason.clone(), reason_code::APPROVED),
        Standing::Answered { by, .. } => (by.clone(), None, reason_code::ANSWERED),
    };
    let ApprovalRequest { approval_id, tool_call_id, tool_name, policies, .. } = question.request.clone();
    Some(ApprovalDecision {
        approval_id,
        tool_call_id,
        tool_name,
        policies,
        approved: matches!(code, reason_code::APPROVED | reason_code::ANSWERED),
        code: code.to_owned(),
        reason,
        by,
    })
}

/// What the agent is told of a call that people did not let run.
pub(super) fn refusal(question: &Question, code: &str, by: &[String], said: Option<String>) -> Reason {
    let who = if by.is_empty() { "a person".to_owned() } else { by.join(", ") };
    let why = said.filter(|said| !said.is_empty()).map(|said| format!(": {said}")).unwrap_or_default();
    let message = match code {
        reason_code::CANCELLED => format!("{who} ended the run{why}"),
        reason_code::APPROVAL_EXPIRED => "nobody answered in time, and the question has lapsed".to_owned(),
        _ => format!("{who} denied this call{why}"),
    };
    Reason { policy: question.request.policies.first().cloned(), code: code.to_owned(), message }
}
