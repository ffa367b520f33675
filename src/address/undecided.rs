//! Reason of an undecided test.

/// Reason why a test is undecided: programs interpret the value differently, so neither "matches" nor "does not match" is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecided(
    /// The reason, phrased to follow "the test is undecided: ".
    pub &'static str,
);
