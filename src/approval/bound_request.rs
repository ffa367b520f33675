//! Approval requests and what they are bound to. The binding is encrypted in the request's token → [`BoundRequest`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::approvers::name_comparison;
use super::argument_edit::common_editable_paths;
use super::bound_context::BoundContext;
use super::requirement::{ApprovalRequirement, Permit};
use crate::call::{ApprovalRequest, ToolCall};
use crate::json::{self, Digest, Value, json};
use crate::message::RequestPart;
use crate::path::{Path, PathStep};
use crate::principal::{Principal, PrincipalComparison, PrincipalValue};
use crate::seal::{EncryptError, Keys, Purpose, SealError};

/// The largest token, in bytes; it includes the journals of scripts.
const MAX_TOKEN: usize = 1 << 20;

/// An approval request: what people are shown, and what it is bound to.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundRequest {
    /// What is shown, without its token.
    pub request: ApprovalRequest,
    /// The conversation of the call.
    pub conversation: String,
    /// The tenant, as the host named it.
    pub tenant: Value,
    /// The agent's principal.
    pub requester: Option<String>,
    /// The identity and the context members that the request is bound to.
    pub bound: BoundContext,
    /// When approval was requested.
    pub asked_at: Timestamp,
    /// The digest of the call as the model requested it: its tool, its server and its arguments.
    pub call: Digest,
    /// The digest of the arguments with which the call starts to run, after hooks and transforms. The request is about the same
    /// arguments, unless a script or a hook around the call requires approval of others.
    pub execution_input: Digest,
    /// The policies that require approval.
    pub requirements: Vec<ApprovalRequirement>,
    /// What is already approved for this call.
    pub granted: Vec<Permit>,
    /// The arguments that an approver set in place of the model's.
    pub edited_input: Option<Value>,
    /// The journals of the scripts around the call.
    pub journals: Vec<ScriptJournal>,
}

/// The journal of a script so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptJournal {
    /// The layer of its policy.
    pub layer: u32,
    /// Its policy.
    pub policy: String,
    /// The journal.
    pub journal: Value,
}

/// The token's encrypted content.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenClaims {
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
    askers: Vec<ApprovalRequirement>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    held: Vec<Permit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edited: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    journals: Vec<ScriptJournal>,
}

const VERSION: u64 = 2;

/// Why an approval request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundRequestError {
    /// It has no token.
    #[error("the approval request has no token")]
    NoToken,
    /// The request or its token does not have the expected form.
    #[error("the approval request is malformed: {0}")]
    Malformed(&'static str),
    /// The token was not made for this request with one of the keys.
    #[error("{0}")]
    Seal(SealError),
    /// The token could not be encrypted.
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    /// The request is too large for a token.
    #[error("the journals of the scripts around the call are too large for an approval token")]
    TooLarge,
}

impl BoundRequest {
    /// The digest of a call as the model requests it.
    pub fn call_digest(tool: &str, server: Option<&str>, input: &Value) -> Digest {
        json::digest(&json!([tool, server, input]))
    }

    /// When the request expires.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.request.expires_at.as_deref().map(|text| text.parse().unwrap_or(Timestamp::MIN))
    }

    /// How long the request is valid, from when it was made.
    pub fn lifetime(&self) -> Option<std::time::Duration> {
        std::time::Duration::try_from(self.expires_at()?.duration_since(self.asked_at)).ok()
    }

    /// The call to evaluate now: as the model requested it, or with the arguments that an approver set.
    pub fn current_call(&self, requested: &ToolCall) -> ToolCall {
        match &self.edited_input {
            Some(input) => requested.with_input(input.clone()),
            None => requested.clone(),
        }
    }

    /// How principals are compared.
    pub fn comparison(&self) -> PrincipalComparison {
        name_comparison(&self.requirements)
    }

    /// Checks whether the request was made in this context: for the same principal with the same roles in the same tenant, and with
    /// the same values in all members that policies read.
    ///
    /// # Errors
    /// What differs.
    pub fn check_context(&self, context: &Value) -> Result<(), String> {
        let comparison = self.comparison();
        if self.bound.matches(context, comparison) {
            return Ok(());
        }
        let own = |name: &Option<String>| name.as_deref().and_then(|name| Principal::parse(name, comparison));
        let now = match PrincipalValue::from_context(context, comparison) {
            PrincipalValue::Principal(principal) => Some(principal),
            PrincipalValue::Missing | PrincipalValue::Invalid(_) => None,
        };
        let tenant = context.get("tenant").unwrap_or(&Value::Null);
        Err(if own(&self.requester) != now {
            "approval was requested for another principal".to_owned()
        } else if self.tenant != *tenant {
            "approval was requested for another tenant".to_owned()
        } else {
            format!(
                "the context has changed since approval was requested, in one of {}",
                self.bound.describe()
            )
        })
    }

    /// The paths of the arguments that an approver may change.
    pub fn editable_paths(&self) -> Vec<Vec<PathStep>> {
        let paths = |requirement: &ApprovalRequirement| {
            requirement.edits.iter().filter_map(|text| Path::parse(text).ok()).collect()
        };
        common_editable_paths(&self.requirements.iter().map(paths).collect::<Vec<_>>())
    }

    /// Whether the other request is equivalent: for the same call, by the same policies, about the same arguments.
    pub fn is_equivalent_to(&self, other: &Self) -> bool {
        let about = |question: &Self| {
            let askers = question.requirements.iter().map(|asker| asker.permit.clone()).collect::<Vec<_>>();
            let id = question.request.tool_call_id.clone();
            let of = (id, question.call, question.execution_input, question.bound.clone());
            (of, askers, question.granted.clone(), question.journals.clone())
        };
        self.conversation == other.conversation && self.tenant == other.tenant && about(self) == about(other)
    }

    /// The request with its token, as people get it. The token is encrypted, so that it reveals nothing of the call to its holder.
    ///
    /// # Errors
    /// [`BoundRequestError::TooLarge`]; [`BoundRequestError::Encrypt`].
    pub fn seal(&self, keys: &Keys) -> Result<ApprovalRequest, BoundRequestError> {
        let claims = TokenClaims {
            version: VERSION,
            conversation: self.conversation.clone(),
            tenant: self.tenant.clone(),
            requester: self.requester.clone(),
            bound: self.bound.clone(),
            asked_at: self.asked_at,
            call: self.call,
            begins_with: self.execution_input,
            askers: self.requirements.clone(),
            held: self.granted.clone(),
            edited: self.edited_input.clone(),
            journals: self.journals.clone(),
        };
        // Not in canonical form, in which 28800 is `288e2`: numbers are read as they were written.
        let claims = json::to_string(&claims).map_err(|_| BoundRequestError::TooLarge)?;
        let token = keys.encrypt(Purpose::Approval, &seal_context(&self.request)?, claims.as_bytes())?;
        if token.len() > MAX_TOKEN {
            return Err(BoundRequestError::TooLarge);
        }
        Ok(ApprovalRequest { approval_token: Some(token), ..self.request.clone() })
    }

    /// Decrypts and verifies a request that came back.
    ///
    /// # Errors
    /// The token was not made with one of these keys, or the request was changed since.
    pub fn open(request: &RequestPart, keys: &Keys) -> Result<Self, BoundRequestError> {
        let token = request.approval_token.as_deref().ok_or(BoundRequestError::NoToken)?;
        let malformed = BoundRequestError::Malformed;
        if token.len() > MAX_TOKEN {
            return Err(malformed("its token is too large"));
        }
        let displayed = displayed_request(request)?;
        let claims = keys
            .decrypt(Purpose::Approval, &seal_context(&displayed)?, token)
            .map_err(BoundRequestError::Seal)?;
        let claims = String::from_utf8(claims).ok().and_then(|text| json::parse(&text).ok());
        let claims = claims.ok_or(malformed("its token can't be read"))?;
        let claims: TokenClaims =
            json::from_value(claims).map_err(|_| malformed("its token has missing or unknown fields"))?;
        if claims.version != VERSION {
            return Err(malformed("its token has an unsupported version"));
        }
        let TokenClaims {
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
            request: displayed,
            conversation,
            tenant,
            requester,
            bound,
            asked_at,
            call,
            execution_input: begins_with,
            requirements: askers,
            granted: held,
            edited_input: edited,
            journals,
        })
    }
}

/// All that people are shown: the token is bound to it.
fn seal_context(request: &ApprovalRequest) -> Result<Value, BoundRequestError> {
    let displayed = ApprovalRequest { approval_token: None, ..request.clone() };
    json::to_value(&displayed).map_err(|_| BoundRequestError::TooLarge)
}

/// The part of a request that people are shown.
fn displayed_request(request: &RequestPart) -> Result<ApprovalRequest, BoundRequestError> {
    let missing = BoundRequestError::Malformed("required fields are missing");
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
