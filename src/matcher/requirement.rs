//! What a value must be for a test to hold, as far as an index can look it up: operator → [`Requirement`].
//!
//! A requirement is necessary, not sufficient: a policy that an index finds is still evaluated.

use std::sync::OnceLock;

use regex_syntax::hir::literal::{ExtractKind, Extractor};

use super::comparison::FieldComparison;
use super::field_test::ScalarKey;
use super::operand::{Operand, PatternSet};
use super::operator::Operator;
use crate::address::{Directory, HostPattern};
use crate::call::NodeRef;
use crate::json::{Number, Value};

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
    fn of(&self, regexes: &[String]) -> Option<&[String]> {
        let find = || {
            let parts = regexes.iter().map(|regex| required_parts(regex)).collect::<Option<Vec<_>>>()?;
            Some(parts.concat().into())
        };
        self.0.get_or_init(find).as_deref()
    }
}

/// The shortest part that is worth a search.
const MIN_PART_BYTES: usize = 3;

fn required_parts(regex: &str) -> Option<Vec<String>> {
    let parsed = regex_syntax::parse(regex).ok()?;
    [ExtractKind::Prefix, ExtractKind::Suffix].into_iter().find_map(|kind| {
        // Texts end before a class of characters, because there is a text for each combination of these.
        let found = Extractor::new().kind(kind).limit_class(1).extract(&parsed);
        let texts =
            found.literals()?.iter().map(|literal| String::from_utf8(literal.as_bytes().to_vec()).ok());
        let texts = texts.collect::<Option<Vec<String>>>()?;
        texts.iter().all(|text| text.len() >= MIN_PART_BYTES).then_some(texts)
    })
}

impl Operator {
    /// What a value must be for the operator to hold. Returns `None` if no index can look it up.
    pub(super) fn requirement(&self) -> Option<Requirement<'_>> {
        Some(match self {
            Self::Compare(
                FieldComparison::Gt | FieldComparison::Gte,
                Operand::Literal(Value::Number(bound)),
            ) => Requirement::AtLeast(bound),
            Self::Compare(
                FieldComparison::Lt | FieldComparison::Lte,
                Operand::Literal(Value::Number(bound)),
            ) => Requirement::AtMost(bound),
            Self::StartsWith(PatternSet::Literals(starts, _)) => Requirement::Start(starts),
            Self::EndsWith(PatternSet::Literals(ends, _)) => Requirement::End(ends),
            Self::Contains(Operand::Literal(Value::String(part))) => Requirement::Part(vec![part]),
            Self::Matches(_, texts, parts) => {
                Requirement::Part(parts.of(texts)?.iter().map(String::as_str).collect())
            }
            Self::Inside { directories: PatternSet::Literals(directories, _), .. } => {
                Requirement::Inside(directories)
            }
            Self::Host(PatternSet::Literals(hosts, _)) => Requirement::Host(hosts),
            _ => {
                let keys = self.required_literals()?.iter();
                let keys: Vec<_> =
                    keys.map(|value| ScalarKey::from_node(NodeRef::Json(value))).collect::<Option<_>>()?;
                let first = keys.first()?.json_type();
                return keys.iter().all(|key| key.json_type() == first).then_some(Requirement::OneOf(keys));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::required_parts;

    #[test]
    fn each_match_of_a_regular_expression_has_one_of_its_parts() {
        let parts = |regex| required_parts(regex).map(|parts| parts.join(" "));
        assert_eq!(parts("^order-[0-9]+$").as_deref(), Some("order-"));
        assert_eq!(parts("refund|invoice").as_deref(), Some("refund invoice"));
        assert_eq!(parts(r"\d+ EUR$").as_deref(), Some(" EUR"));
        for open in ["", "a?", "[a-z]+", "(?i)order", "order|.*", "ab", "(", r"\bx"] {
            assert_eq!(parts(open), None, "{open}");
        }
    }
}
