//! What the values at one path of the arguments have in common.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use callgate::json::{JsonType, Map, Number, Value};

use super::string_profile::StringProfile;
use super::support::{Evidence, Support, UsualMaximum, ValueCounts};
use crate::recording::is_redacted;

/// The most members of an object that are counted by name, and the most of them that one session adds.
const MAX_MEMBERS: usize = 512;
const MAX_ADDED_MEMBERS: u32 = 64;
/// The most bytes of a member's name that is counted.
const MAX_NAME_BYTES: usize = 64;
/// The deepest value whose members and items are looked at.
const MAX_DEPTH: usize = 6;
/// The most items of an array that are looked at.
const MAX_ITEMS: usize = 200;
/// The most distinct numbers that are counted.
const MAX_NUMBERS: usize = 16;

/// The values at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldProfile {
    pub(super) present: Support,
    /// The sessions that have a value.
    sessions: HashSet<u32>,
    /// Values that redaction changed.
    pub(super) redacted: Support,
    pub(super) types: BTreeMap<&'static str, Support>,
    pub(super) booleans: BTreeMap<bool, Support>,
    pub(super) numbers: Option<Box<NumberProfile>>,
    pub(super) strings: Option<Box<StringProfile>>,
    pub(super) array: Option<Box<ArrayProfile>>,
    pub(super) object: Option<Box<ObjectProfile>>,
}

/// Numbers at one path.
#[derive(Clone, Debug)]
pub(super) struct NumberProfile {
    pub(super) calls: Support,
    pub(super) largest: UsualMaximum<Number>,
    pub(super) smallest: UsualMaximum<Reverse<Number>>,
    pub(super) values: ValueCounts<Number>,
    /// Numbers with a fraction.
    pub(super) fractions: Support,
}

/// Arrays at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayProfile {
    pub(super) lengths: UsualMaximum<u64>,
    pub(super) items: FieldProfile,
}

/// Objects at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectProfile {
    pub(super) objects: Support,
    pub(super) sizes: UsualMaximum<u64>,
    pub(super) members: BTreeMap<String, MemberProfile>,
    /// The number of members that a session has added.
    added: HashMap<u32, u32>,
    /// Objects with members that are not counted by name: there are too many, or their names are unusual.
    pub(super) unnamed: Support,
}

/// A member of objects.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberProfile {
    pub(super) values: FieldProfile,
    /// Objects without it.
    pub(super) lacking: Support,
}

impl FieldProfile {
    pub(super) fn add(&mut self, value: &Value, evidence: &Evidence<'_>) {
        self.add_at(value, evidence, 0);
    }

    fn add_at(&mut self, value: &Value, evidence: &Evidence<'_>, depth: usize) {
        let evidence = &Evidence { is_first: self.sessions.insert(evidence.session), ..*evidence };
        self.present.add(evidence);
        self.types.entry(JsonType::from_value(value).name()).or_default().add(evidence);
        match value {
            Value::Null => {}
            Value::Bool(value) => self.booleans.entry(*value).or_default().add(evidence),
            Value::Number(number) => self.numbers.get_or_insert_default().add(number, evidence),
            Value::String(_) if is_redacted(value) => self.redacted.add(evidence),
            Value::String(text) => self.strings.get_or_insert_default().add(text, evidence),
            Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => {}
            Value::Array(items) => {
                let array = self.array.get_or_insert_default();
                array.lengths.add(&(items.len() as u64), evidence.session, evidence);
                for item in items.iter().take(MAX_ITEMS) {
                    array.items.add_at(item, evidence, depth + 1);
                }
            }
            Value::Object(members) => {
                self.object.get_or_insert_default().add(members, evidence, depth);
            }
        }
    }
}

impl Default for NumberProfile {
    fn default() -> Self {
        Self {
            calls: Support::default(),
            largest: UsualMaximum::default(),
            smallest: UsualMaximum::default(),
            values: ValueCounts::with_capacity(MAX_NUMBERS),
            fractions: Support::default(),
        }
    }
}

impl NumberProfile {
    fn add(&mut self, number: &Number, evidence: &Evidence<'_>) {
        self.calls.add(evidence);
        self.largest.add(number, evidence.session, evidence);
        self.smallest.add(&Reverse(number.clone()), evidence.session, evidence);
        self.values.add(number.clone(), evidence);
        if !number.is_integer() {
            self.fractions.add(evidence);
        }
    }
}

impl ObjectProfile {
    fn add(&mut self, members: &Map, evidence: &Evidence<'_>, depth: usize) {
        for (name, value) in members {
            if !self.members.contains_key(name.as_str()) {
                let added = self.added.entry(evidence.session).or_default();
                if self.members.len() >= MAX_MEMBERS || *added >= MAX_ADDED_MEMBERS || !is_plain_name(name) {
                    self.unnamed.add(evidence);
                    continue;
                }
                *added += 1;
                // The objects before this one lacked it.
                let member = MemberProfile { lacking: self.objects.clone(), ..MemberProfile::default() };
                self.members.insert(name.to_string(), member);
            }
            if let Some(member) = self.members.get_mut(name.as_str()) {
                member.values.add_at(value, evidence, depth + 1);
            }
        }
        for (name, member) in &mut self.members {
            if !members.contains_key(name) {
                member.lacking.add(evidence);
            }
        }
        self.objects.add(evidence);
        self.sizes.add(&(members.len() as u64), evidence.session, evidence);
    }
}

/// Whether the name of a member can be one of an argument: it needs no quotes anywhere, and nobody takes it for another one.
fn is_plain_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
