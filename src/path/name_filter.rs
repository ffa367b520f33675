//! A quick check that no name in a call's arguments could be taken for one that policies read. Arguments → certainly none, or unknown.
//!
//! It reads each name once, and finds the names that policies read by a hash of their folded form. Only what it is not certain of takes
//! the search for the name, which is [`ArgumentNames::find_misread`](super::ArgumentNames::find_misread).

use crate::json::Value;
use crate::safe_text::fold_name;

/// The names that policies read from a value, by the hash of their folded form.
#[derive(Clone, Debug, Default)]
pub struct NameFilter {
    /// Sorted by hash.
    members: Vec<FilteredName>,
    /// The names read from every element or member.
    any_member: Option<Box<NameFilter>>,
    /// Whether names are read from everything below the value. Then nothing is certain.
    is_open: bool,
}

#[derive(Clone, Debug)]
struct FilteredName {
    hash: u64,
    start: NameStart,
    name: Box<str>,
    below: NameFilter,
}

impl NameFilter {
    /// A filter of these names.
    pub(super) fn new<'n>(
        members: impl Iterator<Item = (&'n str, NameFilter)>,
        any_member: Option<NameFilter>,
        is_open: bool,
    ) -> Self {
        let filtered = members.map(|(name, below)| {
            // The form of a name that is not ASCII may be.
            let hash = fold_name(name).fold(HASH_START, |hash, c| add_to_hash(hash, u64::from(c)));
            FilteredName { hash, start: NameStart::of(name), name: name.into(), below }
        });
        let mut members: Vec<_> = filtered.collect();
        members.sort_by_key(|member| member.hash);
        Self { members, any_member: any_member.map(Box::new), is_open }
    }

    /// Whether no name is read.
    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.any_member.is_none() && !self.is_open
    }

    /// Whether names are read from a value by name only, not from all of its elements or members.
    pub fn is_by_name(&self) -> bool {
        self.any_member.is_none() && !self.is_open
    }

    /// Whether a member's name is one of those that are read from a value by name, or could be taken for one.
    pub fn concerns(&self, name: &str) -> bool {
        !matches!(self.find(name), Found::Nothing)
    }

    /// Whether it is certain that no name in a value could be taken for one that is read.
    pub fn is_certain(&self, value: &Value) -> bool {
        if self.is_empty() {
            return true;
        }
        if self.is_open {
            return false;
        }
        let is_certain_of = |filter: Option<&NameFilter>, value: &Value| match value {
            Value::Object(_) | Value::Array(_) => filter.is_none_or(|filter| filter.is_certain(value)),
            _ => true,
        };
        match value {
            Value::Object(members) => members.iter().all(|(name, member)| {
                let below = match self.find(name) {
                    Found::Member(below) => Some(below),
                    Found::Nothing => None,
                    Found::Lookalike => return false,
                };
                is_certain_of(below, member) && is_certain_of(self.any_member.as_deref(), member)
            }),
            Value::Array(items) => match self.any_member.as_deref() {
                None => true,
                filter => items.iter().all(|item| is_certain_of(filter, item)),
            },
            _ => true,
        }
    }

    fn find(&self, name: &str) -> Found<'_> {
        // Most names of most calls are read exactly so.
        let start = NameStart::of(name);
        let is_same =
            |member: &&FilteredName| member.start == start && (start.is_whole() || *member.name == *name);
        if let Some(same) = self.members.iter().take(LISTED_NAMES).find(is_same) {
            return Found::Member(&same.below);
        }
        if !name.is_ascii() {
            return Found::Lookalike;
        }
        let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
        let hash =
            letters.fold(HASH_START, |hash, byte| add_to_hash(hash, u64::from(byte.to_ascii_lowercase())));
        let from = self.members.partition_point(|member| member.hash < hash);
        let mut equal = self.members.iter().skip(from).take_while(|member| member.hash == hash).peekable();
        if equal.peek().is_none() {
            return Found::Nothing;
        }
        equal
            .find(|member| *member.name == *name)
            .map_or(Found::Lookalike, |member| Found::Member(&member.below))
    }
}

/// The length of a name and some of its bytes, which are compared at once. They are all of a short name, as most are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NameStart {
    length: usize,
    /// The first bytes. Of a name with fewer the first and the last ones, which may overlap.
    bytes: u64,
}

impl NameStart {
    #[inline]
    fn of(name: &str) -> Self {
        let name = name.as_bytes();
        let bytes = match (name.first_chunk(), name.first_chunk(), name.last_chunk()) {
            (Some(all), _, _) => u64::from_le_bytes(*all),
            (None, Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
            }
            _ => name.iter().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte)),
        };
        Self { length: name.len(), bytes }
    }

    /// Whether names with this start are equal.
    fn is_whole(self) -> bool {
        self.length <= size_of::<u64>()
    }
}

/// What a name in the arguments is to the names that are read.
enum Found<'f> {
    /// It is read: the names that are read below it.
    Member(&'f NameFilter),
    /// It could be taken for one of them, or that is unknown.
    Lookalike,
    /// It has nothing to do with them.
    Nothing,
}

/// The names that are compared before any hash is computed.
const LISTED_NAMES: usize = 16;

/// FNV-1a. Names that collide are only searched for as if they were similar.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

fn add_to_hash(hash: u64, character: u64) -> u64 {
    (hash ^ character).wrapping_mul(0x0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ArgumentNames;
    use crate::json::Value;

    fn names() -> impl Strategy<Value = ArgumentNames> {
        let name = || prop_oneof!["[aA_]{1,2}", Just("\u{ff41}".to_owned()), Just("\u{17f}".to_owned())];
        let path = proptest::collection::vec(name(), 1..3);
        (proptest::collection::vec(path, 0..3), any::<bool>(), any::<bool>()).prop_map(
            |(paths, any_member, descendant)| {
                let mut names = ArgumentNames::default();
                for path in &paths {
                    names.add_member(path);
                }
                if any_member {
                    names.add_any_member().add_member(&["a".to_owned()]);
                }
                if descendant {
                    names.add_descendant("s");
                }
                names
            },
        )
    }

    fn arguments() -> impl Strategy<Value = Value> {
        let name = prop_oneof![
            "[aAsS_-]{0,2}",
            Just("\u{ff41}".to_owned()),
            Just("\u{17f}".to_owned()),
            Just("\u{e4}".to_owned()),
        ];
        Just(Value::from(1)).prop_recursive(3, 12, 3, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::vec((name.clone(), inner), 0..3)
                    .prop_map(|members| members.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn whatever_is_certain_has_no_name_that_could_be_mistaken(names in names(), arguments in arguments()) {
            let misread = ArgumentNames::find_misread([&names], &arguments, &|_, _| false);
            prop_assert!(!names.filter().is_certain(&arguments) || misread.is_none(), "{misread:?}");
        }
    }

    #[test]
    fn ordinary_arguments_are_certain() {
        let mut names = ArgumentNames::default();
        names.add_member(&["customer".to_owned(), "tier".to_owned()]);
        names.add_member(&["amount".to_owned()]);
        let filter = names.filter();
        let arguments = crate::json::json!({"amount": 1, "customer": {"tier": 2, "age": 3}, "lines": [{"Tier": 1}], "_": 1});
        assert!(filter.is_certain(&arguments));
        for disguised in [crate::json::json!({"Amount": 1}), crate::json::json!({"customer": {"TIER": 1}})] {
            assert!(!filter.is_certain(&disguised), "{disguised}");
        }
    }
}
