//! Seals over named answers: [`ResponsePart`] + approver → sealed [`ResponsePart`]. Nobody else can claim the approver's name.

use jiff::Timestamp;

use super::bound_request::BoundRequest;
use crate::json::{Value, json};
use crate::message::{Approver, ResponsePart};
use crate::seal::{Keys, Purpose, SealError};

/// Why an answer's approver cannot be verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerSealError {
    /// There is no seal.
    #[error("the answer names its approver, but has no seal")]
    NoSeal,
    /// The seal does not cover this answer to this request.
    #[error("the approver's name in the answer is not verified: {0}")]
    Seal(SealError),
}

/// Seals the answer of an approver whom the host has verified.
pub fn seal_answer(
    question: &BoundRequest,
    response: ResponsePart,
    by: Approver,
    at: Timestamp,
    keys: &Keys,
) -> ResponsePart {
    let mut sealed = ResponsePart {
        answered_by: Some(by),
        answered_at: Some(at.to_string()),
        answer_seal: None,
        ..response
    };
    sealed.answer_seal = Some(keys.seal(Purpose::Answer, &sealed_content(question, &sealed)));
    sealed
}

/// Returns the approver whom a valid seal names, or `None` if the answer names nobody.
///
/// # Errors
/// The answer names an approver, but its seal is missing or invalid.
pub fn verify_answer<'r>(
    question: &BoundRequest,
    response: &'r ResponsePart,
    keys: &Keys,
) -> Result<Option<&'r Approver>, AnswerSealError> {
    let Some(by) = &response.answered_by else { return Ok(None) };
    let seal = response.answer_seal.as_deref().ok_or(AnswerSealError::NoSeal)?;
    keys.verify(Purpose::Answer, &sealed_content(question, response), seal).map_err(AnswerSealError::Seal)?;
    Ok(Some(by))
}

/// The sealed content: an answer with its request. So the seal is invalid for another call, another conversation or a later
/// request.
fn sealed_content(question: &BoundRequest, response: &ResponsePart) -> Value {
    let ResponsePart {
        approval_id,
        approved,
        reason,
        approval_token: _,
        edited_input,
        output,
        cancel,
        answered_by,
        answered_at,
        answer_seal: _,
    } = response;
    json!([
        approval_id,
        approved,
        reason,
        edited_input.as_ref().map(|input| json!([input])),
        output.as_ref().map(|output| json!([output])),
        cancel,
        answered_by.as_ref().map(|by| json!([by.principal, by.roles])),
        answered_at,
        question.conversation,
        question.tenant,
        question.asked_at.to_string(),
        question.call.to_string(),
        question.request.input_digest,
    ])
}
