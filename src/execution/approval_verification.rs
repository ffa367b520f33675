//! Verifies an approval request and its answers: what a history and the ledger say of a call → a request that is provably ours and about
//! this call, and the decision of the approvers so far.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::EngineServices;
use crate::approval::{
    BoundRequest, IgnoredAnswer, Ledger, LedgerEntry, LedgerError, LedgerKey, Tally, count_answers,
};
use crate::call::{ApprovalDecision, ApprovalRequest, Reason, ToolCall, reason_code};
use crate::message::{RequestPart, ResponsePart};

/// The difference between two clocks that is accepted.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// The messages of a history about a call that is pending.
#[derive(Clone, Copy, Default)]
pub(crate) struct ApprovalMessages<'h> {
    /// The request, if there is one.
    pub(crate) request: Option<&'h RequestPart>,
    /// The answers to it.
    pub(crate) answers: &'h [ResponsePart],
}

/// What is known about a call before it resumes.
pub(crate) struct PendingCall<'c> {
    pub(crate) key: &'c LedgerKey,
    pub(crate) messages: ApprovalMessages<'c>,
    pub(crate) entry: EntrySnapshot,
}

/// The ledger's entry of a call, as it was read earlier. A claim compares its version, so an outdated one claims nothing.
#[derive(Clone, Debug, Default)]
pub(crate) enum EntrySnapshot {
    /// It was not read.
    #[default]
    Unread,
    /// This was read; `None` if there was no entry.
    Read(Option<Box<LedgerEntry>>),
}

impl EntrySnapshot {
    /// The entry, if it was read and exists.
    pub(crate) fn entry(&self) -> Option<&LedgerEntry> {
        match self {
            Self::Read(Some(entry)) => Some(entry),
            Self::Unread | Self::Read(None) => None,
        }
    }
}

/// A call that resumes, with its ledger and the messages about it.
#[derive(Clone, Copy)]
pub(crate) struct ResumeContext<'c> {
    pub(crate) ledger: &'c Ledger<'c>,
    pub(crate) call: &'c ToolCall,
    pub(crate) key: &'c LedgerKey,
    pub(crate) messages: ApprovalMessages<'c>,
    pub(crate) started: Instant,
}

/// A request that is provably ours and about the call, with all known answers.
pub(crate) struct VerifiedRequest {
    pub(super) question: BoundRequest,
    pub(super) token: String,
    pub(super) answers: Vec<ResponsePart>,
}

impl VerifiedRequest {
    /// The request as it was given out.
    pub(super) fn request(&self) -> ApprovalRequest {
        ApprovalRequest { approval_token: Some(self.token.clone()), ..self.question.request.clone() }
    }

    /// Whether it was made later than the clock says it is now.
    pub(crate) fn is_early(&self, now: Timestamp) -> bool {
        self.question.asked_at.checked_sub(CLOCK_SKEW).is_ok_and(|earliest| now < earliest)
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.question.expires_at().is_some_and(|expires| now >= expires)
    }

    /// The decision of the approvers by these answers, if there is one by now.
    pub(crate) fn decision(&self, tally: &Tally, now: Timestamp) -> Option<ApprovalDecision> {
        approval_decision(&self.question, tally, self.is_expired(now)).filter(|_| !self.is_early(now))
    }
}

/// Why a request does not count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidRequest {
    /// It is not provably ours, or not about this call.
    #[error("{0}")]
    NotOurs(String),
    /// It is ours and about this call, and was made for another identity or context.
    #[error("{0}")]
    OtherContext(String),
}

impl From<String> for InvalidRequest {
    fn from(why: String) -> Self {
        Self::NotOurs(why)
    }
}

impl EngineServices {
    /// The request about a call, of a history's messages or the ledger's entry, whichever is newer. Errors: there is none that is
    /// provably ours and about this call.
    pub(crate) fn verify_request(
        &self,
        conversation: &str,
        call: &ToolCall,
        messages: ApprovalMessages<'_>,
        entry: Option<&LedgerEntry>,
    ) -> Result<VerifiedRequest, InvalidRequest> {
        let recorded = match entry.and_then(|entry| Some((entry, entry.bound_request(&self.keys)?))) {
            None => None,
            Some((entry, Ok((question, token)))) => {
                Some(VerifiedRequest { question, token: token.to_owned(), answers: entry.answers() })
            }
            Some((_, Err(error))) => return Err(error.to_string().into()),
        };
        let verified = match (messages.request, recorded) {
            (None, None) => return Err("there is no approval request for this call".to_owned().into()),
            (None, Some(recorded)) => recorded,
            (Some(request), recorded) => {
                let question = BoundRequest::open(request, &self.keys).map_err(|error| error.to_string())?;
                let token = request.approval_token.clone().unwrap_or_default();
                match recorded {
                    Some(recorded) if recorded.token == token => {
                        let mut answers = recorded.answers;
                        let new = |answer: &&ResponsePart| !answers.contains(answer);
                        let new: Vec<_> = messages.answers.iter().filter(new).cloned().collect();
                        answers.extend(new);
                        VerifiedRequest { question, token, answers }
                    }
                    // It was asked again since: the history's answers are to an older request.
                    Some(recorded) if recorded.question.asked_at >= question.asked_at => recorded,
                    _ => VerifiedRequest { question, token, answers: messages.answers.to_vec() },
                }
            }
        };
        let BoundRequest { request, conversation: request_conversation, call: request_digest, .. } =
            &verified.question;
        let digest = BoundRequest::call_digest(&call.tool, call.server.as_deref(), &call.input);
        if request_conversation != conversation {
            return Err("the request was made in another conversation".to_owned().into());
        }
        if request.tool_call_id != call.id || *request_digest != digest {
            return Err("the call was changed after the request".to_owned().into());
        }
        verified.question.check_context(&call.context).map_err(InvalidRequest::OtherContext)?;
        Ok(verified)
    }

    /// Counts the answers to a request. Returns the answers that do not count beside it.
    pub(crate) fn tally(&self, verified: &VerifiedRequest) -> (Tally, Vec<IgnoredAnswer>) {
        let accepts =
            |answer: &ResponsePart| self.accepts_answer.as_ref().is_some_and(|accepts| accepts(answer));
        count_answers(&verified.question, &verified.token, &verified.answers, &self.keys, &accepts)
    }

    /// Records the request and the answers that count, if the ledger does not have them. Returns the call's entry, or `None` if others
    /// changed it meanwhile.
    pub(crate) async fn record_answers(
        &self,
        resume: ResumeContext<'_>,
        entry: Option<LedgerEntry>,
        verified: &VerifiedRequest,
        ignored: &[IgnoredAnswer],
    ) -> Result<Option<LedgerEntry>, LedgerError> {
        let ResumeContext { ledger, call, key, messages, .. } = resume;
        let known = entry.as_ref().and_then(|entry| entry.request.as_ref()?.approval_token.as_ref());
        if known != Some(&verified.token) {
            let new = LedgerEntry::new(&call.id, &call.tool, verified.question.call);
            let recorded = ledger
                .record_request(key, &new, &verified.question, &verified.request(), &self.keys, false)
                .await?;
            match recorded {
                Ok(request) if request.approval_token.as_ref() == Some(&verified.token) => {}
                // Another call, or another request, was recorded first.
                _ => return Ok(None),
            }
        }
        if messages.answers.is_empty() && known == Some(&verified.token) {
            return Ok(entry);
        }
        let counts = |index: &usize| !ignored.iter().any(|ignored| ignored.index == *index);
        for (_, answer) in verified.answers.iter().enumerate().filter(|(index, _)| counts(index)) {
            match ledger.record_answer(key, answer).await {
                Ok(_) => {}
                // The call is settled by now, or its entry was removed.
                Err(LedgerError::AnswerRejected(_) | LedgerError::NotFound(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        ledger.find(key).await
    }

    /// Whether observers are to be notified now of the approvers' decision on a call: `true` once.
    pub(crate) async fn is_new_decision(&self, ledger: &Ledger<'_>, key: &LedgerKey) -> bool {
        // If the store does not answer, it is better to notify twice than never.
        ledger.mark_notified(key, true).await.unwrap_or(true)
    }
}

/// The decision of the approvers, if there is one: an approval counts until the request expires, a denial for ever.
fn approval_decision(question: &BoundRequest, tally: &Tally, is_expired: bool) -> Option<ApprovalDecision> {
    let (by, reason, code) = match tally {
        Tally::Denied { by, reason } => (by.clone(), reason.clone(), reason_code::APPROVAL_DENIED),
        Tally::Cancelled { by, reason } => (by.clone(), reason.clone(), reason_code::CANCELLED),
        _ if is_expired => (Vec::new(), None, reason_code::APPROVAL_EXPIRED),
        Tally::Pending { .. } => return None,
        Tally::Approved { by, reason, .. } => (by.clone(), reason.clone(), reason_code::APPROVED),
        Tally::Answered { by, .. } => (by.clone(), None, reason_code::ANSWERED),
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

/// The reason, for the agent, of a call that the approvers did not approve.
pub(super) fn refusal(question: &BoundRequest, code: &str, by: &[String], why: Option<String>) -> Reason {
    let approvers = if by.is_empty() { "a person".to_owned() } else { by.join(", ") };
    let why = why.filter(|why| !why.is_empty()).map(|why| format!(": {why}")).unwrap_or_default();
    let message = match code {
        reason_code::CANCELLED => format!("{approvers} ended the run{why}"),
        reason_code::APPROVAL_EXPIRED => "the approval request expired without an answer".to_owned(),
        _ => format!("{approvers} denied this call{why}"),
    };
    Reason { policy: question.request.policies.first().cloned(), code: code.to_owned(), message }
}
