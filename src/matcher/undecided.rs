//! The third answer of a test.

/// Why a test can't be judged: readers of the value differ on what it means, so neither "matches" nor "does not match"
/// is safe to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecided(
    /// The reason, in words that follow "the test is undecided: ".
    pub &'static str,
);
