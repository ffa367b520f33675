//! What policies in shadow mode would have done to a run, apart from its calls.

use serde::{Deserialize, Serialize};

use super::{Reason, Verdict};

/// What a policy in shadow mode would have done to a run around its calls. (Its effect on a call is part of the call's outcome.)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunShadowEffect {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: String,
    /// `rewrite`: it would have changed the model's configuration or its stream. `deny`: nothing further that it
    /// bounds would have started. `halt`: it would have halted the run.
    pub verdict: Verdict,
    /// The reason it would have given for stopping something.
    pub reason: Option<Reason>,
}
