//! The sides of a place, of which tests are to come to each.

use serde::Serialize;

/// One side of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The policy counts as matching.
    Matched,
    /// It was asked, and does not.
    NotMatched,
    /// The test, the condition or the pattern holds.
    True,
    /// It does not.
    False,
    /// The policy is why the call was decided so.
    Reason,
    /// It asks a person.
    Asked,
    /// Its schema fits the arguments.
    Fits,
    /// It does not.
    Misfits,
    /// The limit had enough left.
    Enough,
    /// It had too little.
    UsedUp,
    /// It answers in the tool's place.
    Answered,
    /// What was kept is given out.
    Kept,
    /// The script runs.
    Ran,
    /// The tool is called once more.
    Repeated,
    /// The call was given up.
    GivenUp,
    /// The error is turned into a message.
    Recovered,
    /// Something is changed.
    Changed,
    /// Something is found.
    Found,
    /// The default decides.
    Applied,
    /// A policy permits what it would have stopped.
    Lifted,
}

impl Side {
    /// What is said of a side that no case came to.
    pub fn missing(self) -> &'static str {
        match self {
            Self::Matched => "never matched",
            Self::NotMatched => "never failed to match",
            Self::True => "never true",
            Self::False => "never false",
            Self::Reason => "never gave the reason",
            Self::Asked => "never asked a person",
            Self::Fits => "never fitted",
            Self::Misfits => "never failed to fit",
            Self::Enough => "never had enough left",
            Self::UsedUp => "never used up",
            Self::Answered => "never answered",
            Self::Kept => "never gave what it kept",
            Self::Ran => "never ran",
            Self::Repeated => "never tried again",
            Self::GivenUp => "never gave up",
            Self::Recovered => "never recovered an error",
            Self::Changed => "never changed anything",
            Self::Found => "never found anything",
            Self::Applied => "never applied",
            Self::Lifted => "never lifted",
        }
    }
}
