//! What a value must be for a test to hold, as far as an index can look it up.
//!
//! A requirement is necessary, not sufficient: a policy that an index finds is still evaluated.

use std::sync::OnceLock;

use super::scalar_key::ScalarKey;
use crate::address::{Directory, HostPattern};
use crate::json::Number;
use crate::pattern_analysis::required_parts;

/// What a value must be for a test to hold. If it is another value of the same type, the test certainly does not hold.
#[derive(Clone, Debug)]
pub enum Requirement<'t> {
    /// It equals one of these, which are of one type.
    OneOf(Vec<ScalarKey<'t>>),
    /// It is the URL of one of these hosts.
    Host(&'t [HostPattern]),
    /// It is a path inside one of these directories.
    Inside(&'t [Directory]),
    /// It is a text that starts with one of these.
    Start(&'t [String]),
    /// It is a text that ends with one of these.
    End(&'t [String]),
    /// It is a text that has one of these parts.
    Part(Vec<&'t str>),
    /// It is a number that is not smaller.
    AtLeast(&'t Number),
    /// It is a number that is not greater.
    AtMost(&'t Number),
}

impl Requirement<'_> {
    /// The kind, by how few values satisfy such requirements: an index of a smaller kind finds fewer policies.
    pub fn kind(&self) -> usize {
        match self {
            Self::OneOf(_) => 0,
            Self::Host(_) => 1,
            Self::Inside(_) => 2,
            Self::Start(_) => 3,
            Self::End(_) => 4,
            Self::Part(_) => 5,
            Self::AtLeast(_) => 6,
            Self::AtMost(_) => 7,
        }
    }
}

/// Texts of which one is part of each text that some regular expressions match; found when they are first asked for.
#[derive(Debug, Default)]
pub struct RequiredParts(OnceLock<Option<Box<[String]>>>);

impl RequiredParts {
    /// The parts for these regular expressions. Returns `None` if there are none, or too many.
    pub(super) fn of(&self, regexes: &[String]) -> Option<&[String]> {
        let find = || {
            let parts = regexes.iter().map(|regex| required_parts(regex)).collect::<Option<Vec<_>>>()?;
            Some(parts.concat().into())
        };
        self.0.get_or_init(find).as_deref()
    }
}
