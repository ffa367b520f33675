//! The branches of a coverage point, each of which tests should reach.

use serde::Serialize;

/// One branch of a coverage point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchKind {
    /// The policy matches.
    Matched,
    /// The policy was evaluated and does not match.
    NotMatched,
    /// The test, the condition or the pattern holds.
    True,
    /// The test, the condition or the pattern does not hold.
    False,
    /// The required value exists.
    Present,
    /// The required value is missing.
    Missing,
    /// The policy gives the reason for the decision.
    Reason,
    /// The policy requires approval.
    Asked,
    /// The arguments are valid against the schema.
    Fits,
    /// The arguments are invalid.
    Misfits,
    /// The call is within the limit.
    Enough,
    /// The limit is exceeded.
    UsedUp,
    /// The policy answers in place of the tool.
    Answered,
    /// The cache answers.
    Kept,
    /// The script, the function or the arm of `switch` runs.
    Ran,
    /// The set has no room for a value.
    Full,
    /// The call is retried.
    Repeated,
    /// The call times out.
    GivenUp,
    /// The error is turned into a message.
    Recovered,
    /// The step changes something.
    Changed,
    /// The detector or pattern finds something.
    Found,
    /// The default decides the call.
    Applied,
    /// A policy permits a call that the default would have stopped.
    Lifted,
}

impl BranchKind {
    /// The description of the branch if no case reached it.
    pub fn missing_text(self) -> &'static str {
        match self {
            Self::Matched => "never matched",
            Self::NotMatched => "never failed to match",
            Self::True => "never true",
            Self::False => "never false",
            Self::Present => "never present",
            Self::Missing => "never missing",
            Self::Reason => "never gave the reason",
            Self::Asked => "never required approval",
            Self::Fits => "never valid",
            Self::Misfits => "never invalid",
            Self::Enough => "never within the limit",
            Self::UsedUp => "never exceeded",
            Self::Answered => "never answered",
            Self::Kept => "never answered from the cache",
            Self::Ran => "never ran",
            Self::Full => "never full",
            Self::Repeated => "never retried",
            Self::GivenUp => "never timed out",
            Self::Recovered => "never recovered an error",
            Self::Changed => "never changed anything",
            Self::Found => "never found anything",
            Self::Applied => "never applied",
            Self::Lifted => "never overridden",
        }
    }
}
