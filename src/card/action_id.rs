//! Action ids of a card's buttons: `tool-approval:approve:approval_c1`. They hold the approval id and the choice, nothing more.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json::Digest;
use crate::safe_text::{escape_controls, truncate};

/// The maximum length of an action id in bytes: the limit of the strictest chat products.
pub const MAX_ACTION_BYTES: usize = 64;

const PREFIX: &str = "tool-approval:";
/// Space for an id with the longest choice, so that the form of an id does not depend on the choice.
const MAX_ID_BYTES: usize = MAX_ACTION_BYTES - PREFIX.len() - "approve:".len();
/// Marks a digest. No id that is used as is contains this character.
const DIGEST_MARK: char = '~';
/// 160 bits, against collisions.
const DIGEST_DIGITS: usize = 40;

/// The choice of a click on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Approve the call.
    Approve,
    /// Deny the call.
    Deny,
}

impl Choice {
    /// Its name in action ids.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}

/// The action id of a button, at most [`MAX_ACTION_BYTES`] long: `tool-approval:{approve|deny}:{approval id}`. An approval id that is
/// too long or has other characters than ASCII letters, digits, `_`, `-` and `.` is replaced by its digest, `~` and 40 hex digits.
///
/// It is a lookup key and proves nothing: the host and the approval token decide who may answer.
///
/// ```
/// use callgate::card::{ActionId, Choice};
///
/// let id = ActionId::new(Choice::Approve, "approval_c1");
/// assert_eq!(id.to_string(), "tool-approval:approve:approval_c1");
/// let clicked = ActionId::parse("tool-approval:approve:approval_c1").unwrap().unwrap();
/// assert!(clicked.matches("approval_c1"));
/// assert_eq!(ActionId::parse("open-settings"), Ok(None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActionId {
    choice: Choice,
    key: String,
}

/// Why a string is not an action id of an approval.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// It has another prefix; only [`FromStr`] returns this.
    #[error("`{}` is not an approval action: approval actions start with `{PREFIX}`", truncate(&escape_controls(.0)))]
    OtherPrefix(String),
    /// The choice is neither `approve` nor `deny`.
    #[error("`{}` is not an approval choice: write `{PREFIX}approve:…` or `{PREFIX}deny:…`", truncate(&escape_controls(.0)))]
    UnknownChoice(String),
    /// The id is missing.
    #[error("the approval id is missing: add it after `{PREFIX}{}:`", .0.name())]
    MissingId(Choice),
    /// The id cannot be part of an action id.
    #[error("`{}` is not valid in an action: replace ids longer than {MAX_ID_BYTES} bytes, or with other characters than letters, digits, `_`, `-` and `.`, by `{DIGEST_MARK}` and {DIGEST_DIGITS} hex digits", truncate(&escape_controls(.0)))]
    InvalidId(String),
}

impl ActionId {
    /// Creates the id of the button that gives this answer to an approval request.
    pub fn new(choice: Choice, approval_id: &str) -> Self {
        Self { choice, key: lookup_key(approval_id) }
    }

    /// Parses the id of a clicked button. Returns `None` if it has another prefix, so that a host can try its other actions.
    ///
    /// # Errors
    /// Returns [`ActionError`] if it has the prefix but is invalid.
    pub fn parse(text: &str) -> Result<Option<Self>, ActionError> {
        let Some(rest) = text.strip_prefix(PREFIX) else { return Ok(None) };
        let (choice, key) = rest.split_once(':').unwrap_or((rest, ""));
        let choice = match choice {
            "approve" => Choice::Approve,
            "deny" => Choice::Deny,
            other => return Err(ActionError::UnknownChoice(other.to_owned())),
        };
        if key.is_empty() {
            return Err(ActionError::MissingId(choice));
        }
        if !is_plain(key) && !is_digest(key) {
            return Err(ActionError::InvalidId(key.to_owned()));
        }
        Ok(Some(Self { choice, key: key.to_owned() }))
    }

    /// Approve or deny.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Whether it answers the approval request with this id.
    pub fn matches(&self, approval_id: &str) -> bool {
        self.key == lookup_key(approval_id)
    }

    /// The approval id, or its digest.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}", self.choice.name(), self.key)
    }
}

impl FromStr for ActionId {
    type Err = ActionError;

    fn from_str(text: &str) -> Result<Self, ActionError> {
        Self::parse(text)?.ok_or_else(|| ActionError::OtherPrefix(text.to_owned()))
    }
}

fn lookup_key(approval_id: &str) -> String {
    if is_plain(approval_id) {
        return approval_id.to_owned();
    }
    let digest = Digest::compute(approval_id.as_bytes()).to_string();
    std::iter::once(DIGEST_MARK).chain(digest.chars().take(DIGEST_DIGITS)).collect()
}

fn is_plain(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

fn is_digest(key: &str) -> bool {
    let digits = key.strip_prefix(DIGEST_MARK).unwrap_or_default();
    digits.len() == DIGEST_DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
