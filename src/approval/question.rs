//! A question to a person, with all that Callgate must know again when the answer comes: encrypted in the request's token.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::approvers::comparison_of;
use super::bound::BoundContext;
use super::permit::{Asker, Permit};
use crate::call::{ApprovalRequest, ToolCall};
use crate::json::{self, Digest, Value, json};
use crate::message::RequestPart;
use crate::path::Step;
use crate::principal::{Comparison, Named, Principal};
use crate::seal::{EncryptError, Keys, Purpose, SealError};

/// Bytes that a token may have: a script's journal is in it.
const MAX_TOKEN: usize = 1 << 20;

/// A question: what people are shown, and what it is bound to.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What is shown; without its token.
    pub request: ApprovalRequest,
    /// The conversation in which it is asked.
    pub conversation: String,
    /// The tenant for whom, as the host named it.
    pub tenant: Value,
    /// The principal for whom the agent acts.
    pub requester: Option<String>,
    /// The identity and the context members that it is asked for.
    pub bound: BoundContext,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// The digest of the call as the model asked for it: its tool, its server and its arguments.
    pub call: Digest,
    /// The digest of the arguments with which the call begins to run, after hooks and transforms. The request is about the same
    /// arguments, unless a script or a hook around the call asks about others.
    pub begins_with: Digest,
    /// Who asks.
    pub askers: Vec<Asker>,
    /// What people have said yes to already for this call.
    pub held: Vec<Permit>,
    /// The arguments that a person gave the call in place of the model's.
    pub edited: Option<Value>,
    /// What happened so far in scripts around the call.
    pub journals: Vec<KeptJournal>,
}

/// What happened so far in a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptJournal {
    /// The layer of its policy.
    pub layer: u32,
    /// Its policy.
    pub policy: String,
    /// The journal.
    pub journal: Value,
}

/// What of a question only the token has.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    version: u64,
    conversation: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    tenant: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requester: Option<String>,
    bound: BoundContext,
    asked_at: Timestamp,
    call: Digest,
    begins_with: Digest,
    askers: Vec<Asker>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    held: Vec<Permit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edited: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    journals: Vec<KeptJournal>,
}

const VERSION: u64 = 2;

/// Why a request counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// It has no token.
    #[error("the request has no token")]
    NoToken,
    /// It is not of the form of our requests.
    #[error("the request is none of ours: {0}")]
    Malformed(&'static str),
    /// Its token was not made for this with one of the keys.
    #[error("{0}")]
    Seal(SealError),
    /// It could not be encrypted.
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    /// It is larger than a token may be.
    #[error("what a script around the call did so far is too large to be kept")]
    TooLarge,
}

impl Question {
    /// The digest of a call as the model asks for it.
    pub fn digest_of_call(tool: &str, server: Option<&str>, input: &Value) -> Digest {
        json::digest(&json!([tool, server, input]))
    }

    /// When the question lapses.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.request.expires_at.as_deref().map(|text| text.parse().unwrap_or(Timestamp::MIN))
    }

    /// How long it had from when it was asked until it expires.
    pub fn lifetime(&self) -> Option<std::time::Duration> {
        std::time::Duration::try_from(self.expires_at()?.duration_since(self.asked_at)).ok()
    }

    /// The call to decide now: as the model sent it, or with the arguments that an approver gave it.
    pub fn call_now(&self, requested: &ToolCall) -> ToolCall {
        match &self.edited {
            Some(input) => requested.with_input(input.clone()),
            None => requested.clone(),
        }
    }

    /// How principals are compared.
    pub fn comparison(&self) -> Comparison {
        comparison_of(&self.askers)
    }

    /// Checks whether the question is asked for this context: for the same principal with the same roles in the same tenant, and
    /// with the same values in all that policies read.
    ///
    /// # Errors
    /// What differs.
    pub fn check_context(&self, context: &Value) -> Result<(), String> {
        let comparison = self.comparison();
        if self.bound.matches(context, comparison) {
            return Ok(());
        }
        let own = |name: &Option<String>| name.as_deref().and_then(|name| Principal::parse(name, comparison));
        let now = match Named::from_context(context, comparison) {
            Named::Principal(principal) => Some(principal),
            Named::Nobody | Named::Invalid(_) => None,
        };
        let tenant = context.get("tenant").unwrap_or(&Value::Null);
        Err(if own(&self.requester) != now {
            "it was asked for another principal".to_owned()
        } else if self.tenant != *tenant {
            "it was asked for another tenant".to_owned()
        } else {
            format!("the context has changed since it was asked, in one of {}", self.bound.describe())
        })
    }

    /// The places of the arguments that who answers may change.
    pub fn editable(&self) -> Vec<Vec<Step>> {
        super::tally::allowed_edits(self)
    }

    /// Whether the same is asked: of the same call, by the same policies, about the same.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        let about = |question: &Self| {
            let askers = question.askers.iter().map(|asker| asker.permit.clone()).collect::<Vec<_>>();
            let id = question.request.tool_call_id.clone();
            let of = (id, question.call, question.begins_with, question.bound.clone());
            (of, askers, question.held.clone(), question.journals.clone())
        };
        self.conversation == other.conversation && self.tenant == other.tenant && about(self) == about(other)
    }

    /// The request with its token, as it goes to people. The token is encrypted: of the call it says nothing to who holds it.
    ///
    /// # Errors
    /// [`QuestionError::TooLarge`]; [`QuestionError::Encrypt`].
    pub fn sealed(&self, keys: &Keys) -> Result<ApprovalRequest, QuestionError> {
        let claims = Claims {
            version: VERSION,
            conversation: self.conversation.clone(),
            tenant: self.tenant.clone(),
            requester: self.requester.clone(),
            bound: self.bound.clone(),
            asked_at: self.asked_at,
            call: self.call,
            begins_with: self.begins_with,
            askers: self.askers.clone(),
            held: self.held.clone(),
            edited: self.edited.clone(),
            journals: self.journals.clone(),
        };
        // As it is, and not in its canonical form, in which 28800 is `288e2`: numbers are read as they were written.
        let claims = json::to_string(&claims).map_err(|_| QuestionError::TooLarge)?;
        let token = keys.encrypt(Purpose::Approval, &context(&self.request)?, claims.as_bytes())?;
        if token.len() > MAX_TOKEN {
            return Err(QuestionError::TooLarge);
        }
        Ok(ApprovalRequest { approval_token: Some(token), ..self.request.clone() })
    }

    /// The question behind a request that came back.
    ///
    /// # Errors
    /// Where its token was not made with one of these keys, or anything of the request was changed since.
    pub fn open(request: &RequestPart, keys: &Keys) -> Result<Self, QuestionError> {
        let token = request.approval_token.as_deref().ok_or(QuestionError::NoToken)?;
        let malformed = QuestionError::Malformed;
        if token.len() > MAX_TOKEN {
            return Err(malformed("its token is too large"));
        }
        let shown = shown(request)?;
        let claims =
            keys.decrypt(Purpose::Approval, &context(&shown)?, token).map_err(QuestionError::Seal)?;
        let claims = String::from_utf8(claims).ok().and_then(|text| json::parse(&text).ok());
        let claims = claims.ok_or(malformed("its token can't be read"))?;
        let claims: Claims =
            json::from_value(claims).map_err(|_| malformed("its token says what is not known here"))?;
        if claims.version != VERSION {
            return Err(malformed("its token is of another version"));
        }
        let Claims {
            version: _,
            conversation,
            tenant,
            requester,
            bound,
            asked_at,
            call,
            begins_with,
            askers,
            held,
            edited,
            journals,
        } = claims;
        Ok(Self {
            request: shown,
            conversation,
            tenant,
            requester,
            bound,
            asked_at,
            call,
            begins_with,
            askers,
            held,
            edited,
            journals,
        })
    }
}

/// All that people are shown: the token is bound to it.
fn context(request: &ApprovalRequest) -> Result<Value, QuestionError> {
    let shown = ApprovalRequest { approval_token: None, ..request.clone() };
    json::to_value(&shown).map_err(|_| QuestionError::TooLarge)
}

/// What a request shows.
fn shown(request: &RequestPart) -> Result<ApprovalRequest, QuestionError> {
    let missing = QuestionError::Malformed("it does not say all that ours say");
    let RequestPart {
        approval_id,
        tool_call_id,
        tool_name: Some(tool_name),
        input: Some(input),
        message,
        policies,
        expires_at,
        input_digest: Some(input_digest),
        server,
        relevant,
        repeats,
        card,
        approval_token: _,
    } = request.clone()
    else {
        return Err(missing);
    };
    Ok(ApprovalRequest {
        approval_id,
        tool_call_id,
        tool_name,
        input,
        message,
        policies,
        expires_at,
        input_digest,
        server,
        relevant,
        repeats,
        card,
        approval_token: None,
    })
}
