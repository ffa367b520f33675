//! Answers with the name of who gave them, sealed so that nobody else can claim it.

use jiff::Timestamp;

use super::question::Question;
use crate::json::{Value, json};
use crate::message::{Approver, ResponsePart};
use crate::seal::{Keys, Purpose, SealError};

/// Why the name under an answer counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerSealError {
    /// There is no seal.
    #[error("the answer names who gave it, and is not sealed")]
    NoSeal,
    /// The seal is not over this answer to this question.
    #[error("the answer names who gave it: {0}")]
    Seal(SealError),
}

/// Seals an answer of someone whom the host has verified.
pub fn seal_answer(
    question: &Question,
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
    sealed.answer_seal = Some(keys.seal(Purpose::Answer, &content(question, &sealed)));
    sealed
}

/// Who gave an answer, as far as that is sealed; nobody, where it names none.
pub fn verify_answer<'r>(
    question: &Question,
    response: &'r ResponsePart,
    keys: &Keys,
) -> Result<Option<&'r Approver>, AnswerSealError> {
    let Some(by) = &response.answered_by else { return Ok(None) };
    let seal = response.answer_seal.as_deref().ok_or(AnswerSealError::NoSeal)?;
    keys.verify(Purpose::Answer, &content(question, response), seal).map_err(AnswerSealError::Seal)?;
    Ok(Some(by))
}

/// An answer with the question it is to: to another call's, another conversation's or a later one it is none.
fn content(question: &Question, response: &ResponsePart) -> Value {
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
