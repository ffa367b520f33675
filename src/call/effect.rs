//! What a decision does with its call.

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
