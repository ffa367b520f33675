//! What a ledger knows of one call: what was asked, what was answered, and whether it ran. Each change is a function of what
//! stood there before.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::question::{Question, QuestionError};
use crate::call::{ApprovalRequest, Outcome, ToolCall};
use crate::json::{Digest, Value};
use crate::message::{RequestPart, ResponsePart};
use crate::seal::Keys;

/// Answers that one question keeps.
const MAX_ANSWERS: usize = 256;

/// What is known of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    version: u64,
    /// The call's id, as the model gave it.
    pub call_id: String,
    /// Its tool.
    pub tool: String,
    /// The digest of the call as the model asked for it.
    pub call: Digest,
    /// What was asked last, with its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ApprovalRequest>,
    /// The answers to that, in order: response parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Value>,
    /// How far it is.
    pub stage: Stage,
    /// Observers were told of the question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub request_told: bool,
    /// Observers were told what was decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decision_told: bool,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stage {
    /// It waits.
    Waiting,
    /// Someone runs it, or began to and never came back.
    Claimed {
        /// Since when.
        at: Timestamp,
    },
    /// It is over.
    Settled {
        /// Since when.
        at: Timestamp,
        /// How it ended.
        outcome: Box<Outcome>,
    },
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The call is over, or runs.
    #[error("the call has been {0} already")]
    Over(String),
    /// Nothing is asked.
    #[error("nothing is asked about this call")]
    NotAsked,
    /// There are too many answers.
    #[error("there are {MAX_ANSWERS} answers already")]
    TooMany,
}

const VERSION: u64 = 1;

impl Entry {
    /// A call of which nothing is known yet.
    pub fn new(call_id: &str, tool: &str, call: Digest) -> Self {
        Self {
            version: VERSION,
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            call,
            request: None,
            answers: Vec::new(),
            stage: Stage::Waiting,
            request_told: false,
            decision_told: false,
        }
    }

    /// Whether this is of a form that is known here.
    pub fn is_known(&self) -> bool {
        self.version == VERSION
    }

    /// Whether it is known of this call: of this id, tool and arguments.
    pub fn is_of(&self, call: &ToolCall) -> bool {
        self.call_id == call.id
            && self.call == Question::digest_of_call(&call.tool, call.server.as_deref(), &call.input)
    }

    pub(super) fn is_of_the_same(&self, other: &Self) -> bool {
        self.call_id == other.call_id && self.call == other.call
    }

    /// The question, with its token. Errors: its seal is not ours.
    pub fn question(&self, keys: &Keys) -> Option<Result<(Question, &str), QuestionError>> {
        let request = self.request.as_ref()?;
        let token = request.approval_token.as_deref()?;
        Some(Question::open(&RequestPart::from(request), keys).map(|question| (question, token)))
    }

    /// The answers, in the order in which they came.
    pub fn answers(&self) -> Vec<ResponsePart> {
        self.answers.iter().filter_map(ResponsePart::of_json).collect()
    }

    /// Asks. Answers to what was asked before are none to this.
    pub fn ask(&mut self, request: ApprovalRequest) {
        (self.request, self.answers) = (Some(request), Vec::new());
        (self.request_told, self.decision_told) = (false, false);
    }

    /// Takes in an answer, the same one once.
    pub fn answer(&mut self, response: &ResponsePart) -> Result<(), Refused> {
        match &self.stage {
            Stage::Waiting => {}
            Stage::Claimed { .. } => return Err(Refused::Over("started".to_owned())),
            Stage::Settled { outcome, .. } => return Err(Refused::Over(outcome.outcome.to_string())),
        }
        if self.request.is_none() {
            return Err(Refused::NotAsked);
        }
        let response = response.to_json();
        if !self.answers.contains(&response) {
            if self.answers.len() >= MAX_ANSWERS {
                return Err(Refused::TooMany);
            }
            self.answers.push(response);
        }
        Ok(())
    }
}
