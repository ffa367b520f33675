//! The approver's view of a store: lists and finds approval requests, and records answers that count → [`InboxItem`].

use std::sync::Arc;

use super::answer_seal::{seal_answer, verify_answer};
use super::bound_request::{BoundRequest, BoundRequestError};
use super::grant::Grant;
use super::inbox_item::{InboxError, InboxItem, RequestStatus, RequirementStatus};
use super::ledger::{KeyedEntry, Ledger, LedgerKey};
use super::ledger_entry::{AnswerRecordError, CallStage, LedgerEntry};
use super::ledger_error::LedgerError;
use super::requirement::ApprovalRequirement;
use super::tally::{IgnoredAnswer, Tally, count_answers};
use crate::diagnostic::closest_match;
use crate::host::{Announcements, Clock, StateStore};
use crate::message::{Approver, ResponsePart};
use crate::principal::Principal;
use crate::safe_text::escape_controls;
use crate::seal::Keys;
use crate::state::seal_store;

/// How many times to retry an answer when others change the request concurrently.
const MAX_TRIES: usize = 8;

/// The approval requests of a store.
pub struct Inbox {
    store: Arc<dyn StateStore>,
    keys: Keys,
    clock: Box<dyn Clock>,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

impl Inbox {
    /// An inbox for requests that are sealed with these keys: the server's own, or those of [`Engine::keys`](crate::Engine::keys).
    /// A store that other processes share is used as a [`SealedStore`](crate::state::SealedStore).
    pub fn new(store: Arc<dyn StateStore>, keys: Keys, clock: impl Clock + 'static) -> Self {
        Self { store: seal_store(store, Some(&keys)), keys, clock: Box::new(clock) }
    }

    fn ledger(&self) -> Ledger<'_> {
        Ledger::new(self.store.clone(), &*self.clock)
    }

    /// What processes that share the store announce from now on.
    pub fn announcements(&self) -> Announcements {
        self.store.announcements()
    }

    /// All requests, including those of completed calls, ordered by conversation and id.
    pub async fn list(&self) -> Result<Vec<InboxItem>, InboxError> {
        let listed = self.ledger().list().await?;
        Ok(listed
            .into_iter()
            .filter_map(|KeyedEntry { key: name, entry }| self.build_item(name, &entry))
            .collect())
    }

    /// The request of a call by its name in the ledger.
    ///
    /// # Errors
    /// [`InboxError::NotFound`] if no approval is requested for it.
    pub async fn get(&self, name: &LedgerKey) -> Result<InboxItem, InboxError> {
        let entry = self.ledger().find(name).await?;
        let item = entry.and_then(|entry| self.build_item(name.clone(), &entry));
        item.ok_or_else(|| InboxError::NotFound { id: name.occurrence_id.clone(), near: None })
    }

    /// Finds a request by its id: the approval's own, or `CONVERSATION/ID` if several conversations have it.
    pub async fn find(&self, id: &str) -> Result<InboxItem, InboxError> {
        let all = self.list().await?;
        let is_meant = |item: &&InboxItem| item.request.approval_id == id || item.qualified_id() == id;
        let mut meant: Vec<InboxItem> = all.iter().filter(is_meant).cloned().collect();
        if meant.len() > 1 {
            let candidates = meant.iter().map(InboxItem::qualified_id).collect();
            return Err(InboxError::Ambiguous { id: id.to_owned(), candidates });
        }
        meant.pop().ok_or_else(|| {
            let names: Vec<String> =
                all.iter().flat_map(|item| [item.request.approval_id.clone(), item.qualified_id()]).collect();
            // The call's own id is what people see first.
            let of_call = all.iter().find(|item| item.request.tool_call_id == id);
            let near = match of_call {
                Some(item) => Some(item.request.approval_id.clone()),
                None => closest_match(id, names.iter().map(String::as_str)).map(str::to_owned),
            };
            InboxError::NotFound { id: id.to_owned(), near }
        })
    }

    /// Records an answer of an approver whom the host has verified, or an anonymous one, and returns the request with its new
    /// status. The request's id and token and the approver are filled in; the rest of `response` is used as given.
    ///
    /// # Errors
    /// [`InboxError::Anonymous`] without `by`, unless every policy that requires approval allows it. [`InboxError::Rejected`] for an
    /// answer that would change nothing, with the reason. It is then not recorded.
    pub async fn answer(
        &self,
        name: &LedgerKey,
        response: ResponsePart,
        by: Option<Approver>,
    ) -> Result<InboxItem, InboxError> {
        self.record_answer(name, None, response, by).await
    }

    /// Records an answer as [`answer`](Self::answer) does, to exactly the request that the approver was shown.
    ///
    /// # Errors
    /// As [`answer`](Self::answer), and [`InboxError::Rejected`] with the code `changed` if another request has taken its place since.
    pub async fn answer_shown(
        &self,
        shown: &InboxItem,
        response: ResponsePart,
        by: Option<Approver>,
    ) -> Result<InboxItem, InboxError> {
        self.record_answer(&shown.key, Some(shown), response, by).await
    }

    async fn record_answer(
        &self,
        name: &LedgerKey,
        shown: Option<&InboxItem>,
        response: ResponsePart,
        by: Option<Approver>,
    ) -> Result<InboxItem, InboxError> {
        let ledger = self.ledger();
        for _ in 0..MAX_TRIES {
            let unknown = || LedgerError::NotFound(name.occurrence_id.clone());
            let entry = ledger.find(name).await?.ok_or_else(unknown)?;
            let item = self
                .build_item(name.clone(), &entry)
                .ok_or_else(|| rejected_answer(AnswerRecordError::NotRequested))?;
            if shown.is_some_and(|shown| shown.request.approval_token != item.request.approval_token) {
                let why =
                    "the request has changed since it was shown; read it again before you answer".to_owned();
                return Err(InboxError::Rejected { code: "changed", why });
            }
            let response = self.check_answer(&item, response.clone(), by.clone())?;
            let after = match ledger.record_answer(name, &response).await {
                Ok(after) => after,
                Err(LedgerError::AnswerRejected(why)) => return Err(rejected_answer(why)),
                Err(error) => return Err(error.into()),
            };
            // A request that was replaced in between has another token; this answer does not belong to it.
            if let Some(after) = self.build_item(name.clone(), &after)
                && after.request.approval_token == item.request.approval_token
            {
                return Ok(after);
            }
        }
        Err(LedgerError::Contended(name.occurrence_id.clone()).into())
    }

    /// Remembered approvals with their names, including revoked and expired ones.
    pub async fn grants(&self) -> Result<Vec<(String, Grant)>, InboxError> {
        Ok(self.ledger().grants().await?)
    }

    /// Revokes a remembered approval by its name or a unique prefix of it.
    pub async fn revoke(&self, id: &str) -> Result<(String, Grant), InboxError> {
        let grants = self.grants().await?;
        let names = || grants.iter().map(|(name, _)| name.as_str());
        let meant: Vec<&str> = names().filter(|name| !id.is_empty() && name.starts_with(id)).collect();
        let name = match meant.as_slice() {
            [name] => (*name).to_owned(),
            [] => {
                let near = closest_match(id, names()).map(str::to_owned);
                return Err(InboxError::GrantNotFound { id: id.to_owned(), near });
            }
            several => {
                let candidates = several.iter().map(|name| (*name).to_owned()).collect();
                return Err(InboxError::Ambiguous { id: id.to_owned(), candidates });
            }
        };
        let grant = self.ledger().revoke_grant(&name).await?;
        Ok((name, grant))
    }

    /// The request of an entry with its status. Returns `None` if no approval is requested.
    fn build_item(&self, name: LedgerKey, entry: &LedgerEntry) -> Option<InboxItem> {
        let request = entry.request.clone()?;
        let answers = entry.answers();
        let opened = match entry.bound_request(&self.keys) {
            Some(Ok((question, token))) => {
                Ok((count_answers(&question, token, &answers, &self.keys, &|_| false), question))
            }
            Some(Err(error)) => Err(error),
            None => Err(BoundRequestError::NoToken),
        };
        let (tally, ignored, requirements, question, unproven) = match opened {
            Ok(((tally, ignored), question)) => {
                let requirements = self.requirement_statuses(&question, &answers, &ignored);
                (Some(tally), ignored, requirements, Some(question), None)
            }
            Err(error) => (None, Vec::new(), Vec::new(), None, Some(error)),
        };
        let lapsed =
            question.as_ref().and_then(BoundRequest::expires_at).filter(|at| *at <= self.clock.now());
        let status = match (&entry.stage, unproven, tally) {
            (CallStage::Settled { at, outcome }, _, _) => {
                RequestStatus::Completed { at: *at, outcome: outcome.clone() }
            }
            (CallStage::Claimed { at }, _, _) => RequestStatus::Running { at: *at },
            (CallStage::Waiting, Some(error), _) => RequestStatus::Invalid(error),
            (CallStage::Waiting, None, Some(Tally::Pending { by })) => match lapsed {
                Some(at) => RequestStatus::Expired { at },
                None => RequestStatus::Pending { by },
            },
            (CallStage::Waiting, None, Some(tally)) => match (lapsed, &tally) {
                // An approval that was not used before it expired no longer permits the call.
                (Some(at), Tally::Approved { .. } | Tally::Answered { .. }) => RequestStatus::Expired { at },
                _ => RequestStatus::Answered(tally),
            },
            (CallStage::Waiting, None, None) => RequestStatus::Invalid(BoundRequestError::NoToken),
        };
        Some(InboxItem {
            key: name,
            request,
            bound_request: question,
            requirements,
            answers,
            ignored,
            status,
        })
    }

    fn requirement_statuses(
        &self,
        question: &BoundRequest,
        answers: &[ResponsePart],
        ignored: &[IgnoredAnswer],
    ) -> Vec<RequirementStatus> {
        let (requester, comparison) = (question.requester.as_deref(), question.comparison());
        let counting = answers.iter().enumerate().filter(|(index, answer)| {
            answer.approved && !answer.cancel && !ignored.iter().any(|ignored| ignored.index == *index)
        });
        let mut by: Vec<Option<&Approver>> = Vec::new();
        for (_, answer) in counting {
            let Ok(approver) = verify_answer(question, answer, &self.keys) else { continue };
            let principal = |by: Option<&Approver>| Principal::parse(&by?.principal, comparison);
            let same = |other: &Option<&Approver>| principal(*other) == principal(approver);
            if !by.iter().any(same) {
                by.push(approver);
            }
        }
        let ask = |asker: &ApprovalRequirement| {
            let approvals = by.iter().filter(|by| asker.accepts(**by, requester, comparison)).count();
            RequirementStatus {
                policy: asker.permit.policy.clone(),
                approvers: asker.approvers.clone(),
                quorum: asker.quorum.max(1),
                approvals: u32::try_from(approvals).unwrap_or(u32::MAX),
            }
        };
        question.requirements.iter().map(ask).collect()
    }

    /// Checks and seals an answer.
    ///
    /// # Errors
    /// The answer would not count, or would change nothing.
    fn check_answer(
        &self,
        item: &InboxItem,
        response: ResponsePart,
        by: Option<Approver>,
    ) -> Result<ResponsePart, InboxError> {
        let refuse = |code, why: String| Err(InboxError::Rejected { code, why });
        let question = match (&item.status, &item.bound_request) {
            (RequestStatus::Invalid(error), _) => {
                return refuse("invalid_question", format!("the approval request is invalid: {error}"));
            }
            (RequestStatus::Expired { at }, _) => {
                return refuse("expired", format!("the approval request expired at {at}"));
            }
            (RequestStatus::Running { at }, _) => {
                return refuse(
                    "already_started",
                    format!("the call started at {at} and can no longer be answered"),
                );
            }
            (RequestStatus::Completed { outcome, .. }, _) => {
                return refuse(
                    "already_completed",
                    format!("the call has already completed: {}", outcome.outcome),
                );
            }
            (_, Some(question)) => question,
            (_, None) => return refuse("invalid_question", "the approval request is invalid".to_owned()),
        };
        if by.is_none() && !question.requirements.iter().all(|asker| asker.anonymous) {
            return Err(InboxError::Anonymous);
        }
        let token = item.request.approval_token.clone().unwrap_or_default();
        let response = ResponsePart {
            approval_id: item.request.approval_id.clone(),
            approval_token: item.request.approval_token.clone(),
            ..response
        };
        let keys = &self.keys;
        let response = match by.clone() {
            Some(by) => seal_answer(question, response, by, self.clock.now(), keys),
            None => ResponsePart { answered_by: None, answered_at: None, answer_seal: None, ..response },
        };
        let (before, _) = count_answers(question, &token, &item.answers, keys, &|_| false);
        let mut answers = item.answers.clone();
        answers.push(response.clone());
        let (after, ignored) = count_answers(question, &token, &answers, keys, &|_| false);
        if let Some(ignored) = ignored.into_iter().find(|ignored| ignored.index == item.answers.len()) {
            return refuse(ignored.code, ignored.why);
        }
        if is_same_result(&before, &after) {
            return refuse(
                "already_answered",
                match (&before, by) {
                    (Tally::Pending { .. }, Some(by)) => {
                        format!(
                            "`{}` has answered already; the first answer counts",
                            escape_controls(&by.principal)
                        )
                    }
                    (Tally::Pending { .. }, None) => {
                        "the approval request already has this answer".to_owned()
                    }
                    (decided, _) => format!("the approval request is already answered: {decided}"),
                },
            );
        }
        Ok(response)
    }
}

fn rejected_answer(why: AnswerRecordError) -> InboxError {
    let code = match why {
        AnswerRecordError::Closed(_) => "already_started",
        AnswerRecordError::NotRequested => "not_asked",
        AnswerRecordError::TooManyAnswers => "too_many_answers",
    };
    InboxError::Rejected { code, why: why.to_string() }
}

/// Whether another answer changes nothing: one more approval of an approved call does not.
fn is_same_result(before: &Tally, after: &Tally) -> bool {
    match (before, after) {
        (Tally::Approved { edited: one, .. }, Tally::Approved { edited: other, .. }) => one == other,
        (Tally::Denied { .. }, Tally::Denied { .. }) => true,
        (Tally::Cancelled { .. }, Tally::Cancelled { .. }) => true,
        (before, after) => before == after,
    }
}
