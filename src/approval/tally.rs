//! Counts the answers to an approval request: request + answers → [`Tally`]. The rules, by precedence:
//!
//! - An answer that does not count (a wrong token, a name that is not sealed, someone who may not answer, a change of what may
//!   not be changed) is ignored.
//! - The first answer of each approver counts. Anonymous answers may be from several people: of those, the strictest counts.
//! - A cancellation ends the run; one denial denies the call; the quorum of every policy, for the same arguments, approves it.

use super::answer_seal::verify_answer;
use super::approvers::ApproverError;
use super::argument_edit::apply_edits;
use super::bound_request::BoundRequest;
use super::requirement::ApprovalRequirement;
use crate::json::{self, Digest, Value};
use crate::message::{Approver, ResponsePart};
use crate::path::PathStep;
use crate::principal::{Principal, PrincipalComparison};
use crate::safe_text::escape_controls;
use crate::seal::Keys;

/// The result of counting the answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Tally {
    /// More answers are needed.
    Pending {
        /// Who approved so far.
        by: Vec<String>,
    },
    /// The call may run.
    Approved {
        /// Who approved, as far as they are named.
        by: Vec<String>,
        /// The edited arguments, if the approvers changed any.
        edited: Option<Value>,
        /// Why.
        reason: Option<String>,
    },
    /// An approver's result replaces the tool's.
    Answered {
        /// Who answered.
        by: Vec<String>,
        /// The result.
        output: Value,
    },
    /// The call must not run.
    Denied {
        /// Who denied it.
        by: Vec<String>,
        /// Why.
        reason: Option<String>,
    },
    /// The run ends.
    Cancelled {
        /// Who cancelled it.
        by: Vec<String>,
        /// Why.
        reason: Option<String>,
    },
}

impl std::fmt::Display for Tally {
    /// The result in words: `approved by ana`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (word, by) = match self {
            Self::Pending { by } if by.is_empty() => ("not answered", by),
            Self::Pending { by } | Self::Approved { by, edited: None, .. } => ("approved", by),
            Self::Approved { by, .. } => ("approved with changes", by),
            Self::Answered { by, .. } => ("answered in the tool's place", by),
            Self::Denied { by, .. } => ("denied", by),
            Self::Cancelled { by, .. } => ("cancelled", by),
        };
        f.write_str(word)?;
        if by.is_empty() { Ok(()) } else { write!(f, " by {}", escape_controls(&by.join(", "))) }
    }
}

/// An answer that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredAnswer {
    /// Its index among the answers.
    pub index: usize,
    /// The approval request that it names.
    pub approval_id: String,
    /// The stable reason code, such as `self_approval`.
    pub code: &'static str,
    /// Why it does not count, for people.
    pub why: String,
}

/// Counts the answers to a request, in the order in which they were given. Returns the result and the answers that do not count.
/// `token` is the request's own; `accepts` decides whether an answer with another token counts, as for a token that the host knows
/// as its own.
pub fn count_answers(
    question: &BoundRequest,
    token: &str,
    answers: &[ResponsePart],
    keys: &Keys,
    accepts: &dyn Fn(&ResponsePart) -> bool,
) -> (Tally, Vec<IgnoredAnswer>) {
    let mut counted: Vec<CountedAnswer<'_>> = Vec::new();
    let mut ignored = Vec::new();
    let edits = question.editable_paths();
    for (index, answer) in answers.iter().enumerate() {
        match CountedAnswer::verify(question, token, answer, &edits, keys, accepts) {
            Ok(answer) => counted.push(answer),
            Err(AnswerRejection { code, why }) => {
                ignored.push(IgnoredAnswer { index, approval_id: answer.approval_id.clone(), code, why });
            }
        }
    }
    (apply_rules(question, &first_per_approver(counted, question.comparison())), ignored)
}

/// Why an answer does not count.
struct AnswerRejection {
    code: &'static str,
    why: String,
}

impl AnswerRejection {
    fn new(code: &'static str, why: impl ToString) -> Self {
        Self { code, why: why.to_string() }
    }
}

impl From<ApproverError> for AnswerRejection {
    fn from(refusal: ApproverError) -> Self {
        Self::new(refusal.code(), refusal)
    }
}

/// An answer that counts.
struct CountedAnswer<'a> {
    by: Option<&'a Approver>,
    answer: &'a ResponsePart,
    /// The edited arguments, if the answer changes any.
    edited: Option<&'a Value>,
}

impl<'a> CountedAnswer<'a> {
    fn verify(
        question: &BoundRequest,
        token: &str,
        answer: &'a ResponsePart,
        edits: &[Vec<PathStep>],
        keys: &Keys,
        accepts: &dyn Fn(&ResponsePart) -> bool,
    ) -> Result<Self, AnswerRejection> {
        if answer.approval_id != question.request.approval_id {
            return Err(AnswerRejection::new("other_question", "it answers another approval request"));
        }
        // Constant-time comparison: by their digests, so that the time taken does not reveal where they differ.
        let repeats = |given: &String| Digest::compute(given.as_bytes()) == Digest::compute(token.as_bytes());
        if answer.approval_token.as_ref().is_some_and(|given| !repeats(given) && !accepts(answer)) {
            return Err(AnswerRejection::new("wrong_token", "its token is not the approval request's"));
        }
        let by = verify_answer(question, answer, keys)
            .map_err(|error| AnswerRejection::new("unproven_name", error))?;
        check_approver(question, by)?;
        let displayed = &question.request.input;
        let approves = answer.approved && !answer.cancel;
        let changes = |given: &&Value| approves && displayed != *given;
        let changed = answer.edited_input.as_ref().filter(changes);
        if let Some(given) = changed {
            let edits: Vec<&[PathStep]> = edits.iter().map(Vec::as_slice).collect();
            apply_edits(displayed, displayed, given, &edits)
                .map_err(|refused| AnswerRejection::new("edit_refused", refused))?;
        }
        Ok(Self { by, answer, edited: changed })
    }

    /// The approver, or `None` if the name is missing or blank.
    fn principal(&self, comparison: PrincipalComparison) -> Option<Principal> {
        Principal::parse(&self.by?.principal, comparison)
    }

    /// The digest of what is approved, equal for approvals of the same.
    fn approved_digest(&self) -> Digest {
        let once = |value: Option<&Value>| value.map(|value| vec![value.clone()]);
        json::digest(&crate::json::json!([once(self.edited), once(self.answer.output.as_ref())]))
    }

    /// How strict the answer is; a higher number is stricter.
    fn strictness(&self) -> u8 {
        match self.answer {
            ResponsePart { cancel: true, .. } => 2,
            ResponsePart { approved: false, .. } => 1,
            _ => 0,
        }
    }
}

/// Checks whether an answer counts for one of the policies that require approval. The error is the first policy's; where all
/// policies reject the approver as not listed, it names everyone who may answer.
fn check_approver(question: &BoundRequest, by: Option<&Approver>) -> Result<(), ApproverError> {
    let (requester, comparison) = (question.requester.as_deref(), question.comparison());
    let mut refusals = Vec::new();
    for asker in &question.requirements {
        match asker.check(by, requester, comparison) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusals.push(refusal),
        }
    }
    let mut may = Vec::new();
    for refusal in refusals {
        match refusal {
            ApproverError::NotAnApprover(_, approvers) => may.extend(approvers),
            other => return Err(other),
        }
    }
    may.sort_unstable();
    may.dedup();
    Err(by.map_or(ApproverError::Unidentified, |by| ApproverError::NotAnApprover(by.principal.clone(), may)))
}

/// The first answer of each approver; of the anonymous ones, the first of the strictest.
fn first_per_approver(
    answers: Vec<CountedAnswer<'_>>,
    comparison: PrincipalComparison,
) -> Vec<CountedAnswer<'_>> {
    let mut first: Vec<CountedAnswer<'_>> = Vec::new();
    for answer in answers {
        let principal = answer.principal(comparison);
        let same = |other: &CountedAnswer<'_>| other.principal(comparison) == principal;
        match first.iter_mut().find(|other| same(other)) {
            None => first.push(answer),
            Some(earlier) if principal.is_none() && answer.strictness() > earlier.strictness() => {
                *earlier = answer;
            }
            Some(_) => {}
        }
    }
    first
}

fn apply_rules(question: &BoundRequest, answers: &[CountedAnswer<'_>]) -> Tally {
    let name = |counted: &CountedAnswer<'_>| counted.by.map(|by| by.principal.clone());
    let one =
        |counted: &CountedAnswer<'_>| (name(counted).into_iter().collect(), counted.answer.reason.clone());
    if let Some(cancels) = answers.iter().find(|counted| counted.answer.cancel) {
        let (by, reason) = one(cancels);
        return Tally::Cancelled { by, reason };
    }
    if let Some(denies) = answers.iter().find(|counted| !counted.answer.approved) {
        let (by, reason) = one(denies);
        return Tally::Denied { by, reason };
    }
    for first in answers {
        let same: Vec<&CountedAnswer<'_>> =
            answers.iter().filter(|other| other.approved_digest() == first.approved_digest()).collect();
        let enough = |asker: &ApprovalRequirement| {
            let accepted = same.iter().filter(|counted| {
                asker.accepts(counted.by, question.requester.as_deref(), question.comparison())
            });
            u32::try_from(accepted.count()).is_ok_and(|count| count >= asker.quorum.max(1))
        };
        if question.requirements.is_empty() || !question.requirements.iter().all(enough) {
            continue;
        }
        let by = same.iter().filter_map(|counted| name(counted)).collect();
        return match &first.answer.output {
            Some(output) => Tally::Answered { by, output: output.clone() },
            None => {
                Tally::Approved { by, edited: first.edited.cloned(), reason: first.answer.reason.clone() }
            }
        };
    }
    Tally::Pending { by: answers.iter().filter_map(name).collect() }
}
