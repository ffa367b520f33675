//! One ledger entry: the approval request about a call, its answers, and how far the call is. Each update is a function of the
//! previous entry.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bound_request::{BoundRequest, BoundRequestError};
use crate::call::{ApprovalRequest, Outcome, ToolCall};
use crate::json::{Digest, Value};
use crate::message::{RequestPart, ResponsePart};
use crate::seal::Keys;

/// The most answers that one request can have.
const MAX_ANSWERS: usize = 256;

/// What the ledger records about one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerEntry {
    version: u64,
    /// The call's id, as the model gave it.
    pub call_id: String,
    /// Its tool.
    pub tool: String,
    /// The digest of the call as the model asked for it.
    pub call: Digest,
    /// The last approval request, with its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ApprovalRequest>,
    /// The answers to it, in order, as response parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Value>,
    /// The stage of the call.
    pub stage: CallStage,
    /// Whether observers were notified of the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub request_told: bool,
    /// Whether observers were notified of the decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decision_told: bool,
    /// The version of its record when it was read.
    #[serde(skip)]
    pub(super) stored: StoredVersion,
}

/// Which record an entry is the content of. A write over it needs no further read, for the store compares the version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StoredVersion {
    /// The record was changed meanwhile, or is not known.
    #[default]
    Unknown,
    /// There is none yet, as far as is known.
    Absent,
    /// It had this version.
    At(u64),
}

/// The stage of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CallStage {
    /// Pending: approval is required.
    Waiting,
    /// A process runs it, or started to run it and never recorded an outcome.
    Claimed {
        /// Since when.
        at: Timestamp,
    },
    /// It has completed.
    Settled {
        /// Since when.
        at: Timestamp,
        /// Its outcome.
        outcome: Box<Outcome>,
    },
}

/// Why an answer was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRecordError {
    /// The call has completed, or is running.
    #[error("the call can no longer be answered: {0}")]
    Closed(String),
    /// No approval is requested.
    #[error("no approval is requested for this call")]
    NotRequested,
    /// The request has too many answers.
    #[error("the approval request already has {MAX_ANSWERS} answers, the maximum")]
    TooManyAnswers,
}

const VERSION: u64 = 1;

impl LedgerEntry {
    /// An entry for a call without a request.
    pub fn new(call_id: &str, tool: &str, call: Digest) -> Self {
        Self {
            version: VERSION,
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            call,
            request: None,
            answers: Vec::new(),
            stage: CallStage::Waiting,
            request_told: false,
            decision_told: false,
            stored: StoredVersion::Absent,
        }
    }

    /// Says that the record may have been changed since the entry was read.
    pub fn forget_version(&mut self) {
        self.stored = StoredVersion::Unknown;
    }

    /// Whether the entry's format version is supported.
    pub fn is_supported(&self) -> bool {
        self.version == VERSION
    }

    /// Whether the entry is about this call: the same id, tool and arguments.
    pub fn is_for_call(&self, call: &ToolCall) -> bool {
        self.call_id == call.id
            && self.call == BoundRequest::call_digest(&call.tool, call.server.as_deref(), &call.input)
    }

    pub(super) fn is_for_same_call(&self, other: &Self) -> bool {
        self.call_id == other.call_id && self.call == other.call
    }

    /// The sealed request with its token, or `None` if there is none.
    ///
    /// # Errors
    /// The token is invalid or sealed with an unknown key.
    pub fn bound_request(&self, keys: &Keys) -> Option<Result<(BoundRequest, &str), BoundRequestError>> {
        let request = self.request.as_ref()?;
        let token = request.approval_token.as_deref()?;
        Some(BoundRequest::open(&RequestPart::from(request), keys).map(|question| (question, token)))
    }

    /// The answers, in the order in which they were given.
    pub fn answers(&self) -> Vec<ResponsePart> {
        self.answers.iter().filter_map(ResponsePart::from_json).collect()
    }

    /// Sets the approval request, and drops the answers to an earlier one.
    pub fn set_request(&mut self, request: ApprovalRequest) {
        (self.request, self.answers) = (Some(request), Vec::new());
        (self.request_told, self.decision_told) = (false, false);
    }

    /// Adds an answer, unless the same one is there already.
    ///
    /// # Errors
    /// The call is not pending, no approval is requested, or there are too many answers.
    pub fn add_answer(&mut self, response: &ResponsePart) -> Result<(), AnswerRecordError> {
        match &self.stage {
            CallStage::Waiting => {}
            CallStage::Claimed { .. } => return Err(AnswerRecordError::Closed("started".to_owned())),
            CallStage::Settled { outcome, .. } => {
                return Err(AnswerRecordError::Closed(outcome.outcome.to_string()));
            }
        }
        if self.request.is_none() {
            return Err(AnswerRecordError::NotRequested);
        }
        let response = response.to_json();
        if !self.answers.contains(&response) {
            if self.answers.len() >= MAX_ANSWERS {
                return Err(AnswerRecordError::TooManyAnswers);
            }
            self.answers.push(response);
        }
        Ok(())
    }
}
