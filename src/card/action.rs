//! The ids of a card's buttons: `tool-approval:approve:approval_c1`. They say which question and which answer, nothing more.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json::Digest;
use crate::text::{cut, inert};

/// The longest action id in bytes: what the strictest chat products take.
pub const MAX_ACTION_BYTES: usize = 64;

const PREFIX: &str = "tool-approval:";
/// What is left for an id beside the longest choice, so that its form does not depend on the choice.
const MAX_ID_BYTES: usize = MAX_ACTION_BYTES - PREFIX.len() - "approve:".len();
/// Stands before a digest. No id that goes by itself has this character.
const DIGEST_MARK: char = '~';
/// 160 bits: too many for another id with the same digest to be found.
const DIGEST_DIGITS: usize = 40;

/// What a click on a card says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

impl Choice {
    /// The word in action ids.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}

/// The id of a button, at most [`MAX_ACTION_BYTES`] long: `tool-approval:{approve|deny}:{approval id}`. An approval id that is too long
/// or has other characters than ASCII letters, digits, `_`, `-` and `.` goes by its digest, `~` and 40 hex digits.
///
/// It is a key to find the question by and proves nothing: who may answer is for the host and the token to say.
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

/// Why a text is no action id of an approval.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// It does not begin as one; only [`FromStr`] says so.
    #[error("`{}` is no action of an approval: they begin with `{PREFIX}`", cut(&inert(.0)))]
    NotOurs(String),
    /// Neither yes nor no.
    #[error("`{}` is no choice of an approval: an action is `{PREFIX}approve:…` or `{PREFIX}deny:…`", cut(&inert(.0)))]
    UnknownChoice(String),
    /// The id is missing.
    #[error("the action names no approval: an id follows after `{PREFIX}{}:`", .0.name())]
    NoId(Choice),
    /// The id is not one that is put into an action id.
    #[error("`{}` can't stand in an action: ids longer than {MAX_ID_BYTES} bytes, or with other characters than letters, digits, `_`, `-` and `.`, go by `{DIGEST_MARK}` and {DIGEST_DIGITS} hex digits", cut(&inert(.0)))]
    BadId(String),
}

impl ActionId {
    /// The id of the button that answers this question so.
    pub fn new(choice: Choice, approval_id: &str) -> Self {
        Self { choice, key: key_of(approval_id) }
    }

    /// Reads the id of a clicked button. Nothing where it is none of an approval, so that a host can go on with its other
    /// actions; errors where it begins as one and is none.
    pub fn parse(text: &str) -> Result<Option<Self>, ActionError> {
        let Some(rest) = text.strip_prefix(PREFIX) else { return Ok(None) };
        let (choice, key) = rest.split_once(':').unwrap_or((rest, ""));
        let choice = match choice {
            "approve" => Choice::Approve,
            "deny" => Choice::Deny,
            other => return Err(ActionError::UnknownChoice(other.to_owned())),
        };
        if key.is_empty() {
            return Err(ActionError::NoId(choice));
        }
        if !is_plain(key) && !is_digest(key) {
            return Err(ActionError::BadId(key.to_owned()));
        }
        Ok(Some(Self { choice, key: key.to_owned() }))
    }

    /// Yes or no.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Whether it answers the question of this id.
    pub fn matches(&self, approval_id: &str) -> bool {
        self.key == key_of(approval_id)
    }

    /// The approval id, or the digest that stands for it.
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
        Self::parse(text)?.ok_or_else(|| ActionError::NotOurs(text.to_owned()))
    }
}

fn key_of(approval_id: &str) -> String {
    if is_plain(approval_id) {
        return approval_id.to_owned();
    }
    let digest = Digest::of(approval_id.as_bytes()).to_string();
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
