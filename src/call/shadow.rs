//! What policies in shadow would have done to a run, apart from its calls.

use serde::{Deserialize, Serialize};

use super::{Reason, Verdict};

/// What a policy in shadow would have done to a run around its calls. (What one would have done to a call stands in the call's
/// outcome.)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunShadow {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: String,
    /// `rewrite`: it would have changed what the model is called with, or what it streams. `deny`: nothing more of what it bounds
    /// would have begun. `halt`: the run would have been halted.
    pub verdict: Verdict,
    /// What it would have said, where it would have stopped something.
    pub reason: Option<Reason>,
}
