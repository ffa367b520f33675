//! What a decision does with its call.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// What a decision does with its call, in order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The tool may run.
    Run,
    /// A policy answers in the tool's place.
    Answer,
    /// A person must approve it first.
    Suspend,
    /// The arguments are invalid.
    Invalid,
    /// The call must not run.
    Deny,
    /// The call must not run, nor any later one of the session.
    Halt,
}

impl Effect {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Answer => "answer",
            Self::Suspend => "suspend",
            Self::Invalid => "invalid",
            Self::Deny => "deny",
            Self::Halt => "halt",
        }
    }

    /// Compares how strictly two effects treat a call. Invalid arguments count as a denial.
    #[doc(hidden)]
    pub fn compare_strictness(self, other: Self) -> Ordering {
        let strictness = |effect| if effect == Self::Invalid { Self::Deny } else { effect };
        strictness(self).cmp(&strictness(other))
    }
}
