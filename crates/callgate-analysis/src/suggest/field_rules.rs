//! Derives the rule of a path from what was seen there: usual values are permitted, rare ones become findings.

mod evidence;
mod number_rules;
mod string_rules;

use std::collections::BTreeMap;

use callgate::json::Value;
use callgate::path::PathStep;

use self::evidence::calls_phrase;
use super::confidential_values::ConfidentialValues;
use super::field_profile::{ArrayProfile, FieldProfile, ObjectProfile};
use super::number_rounding::round_count;
use super::rare_finding::{MAX_FINDINGS, RareFinding, shown};
use super::support::{Support, ValueCounts};
use super::value_rule::{FieldRule, MemberRule, ValueRule};

/// The least calls for each value of an enumeration, on average.
const CALLS_PER_VALUE: u64 = 4;
/// The part of the sessions whose first values an enumeration or a set of shapes must cover: 9 of 10.
const COVERED: (u64, u64) = (9, 10);

/// Derives the rules of the arguments of one tool.
pub(super) struct FieldRules<'a> {
    pub(super) required: usize,
    pub(super) confidential: &'a ConfidentialValues,
    /// The names of arguments that the tool declares, which are public.
    pub(super) declared: &'a [String],
    pub(super) findings: Vec<RareFinding>,
}

impl FieldRules<'_> {
    /// The rule of the arguments. Returns `None` if they are not usually an object.
    pub(super) fn arguments(&mut self, profile: &FieldProfile) -> Option<FieldRule> {
        let is_object = profile.types.get("object").is_some_and(|support| support.is_usual(self.required));
        is_object.then(|| self.field("$.input", "", profile))
    }

    fn field(&mut self, path: &str, name: &str, profile: &FieldProfile) -> FieldRule {
        self.rare(&format!("{path}: a value that looks redacted"), &profile.redacted);
        if profile.redacted.is_usual(self.required) {
            self.finding(RareFinding::note(format!(
                "{path} is not limited: it is redacted in the recordings"
            )));
            return FieldRule {
                types: Vec::new(),
                is_nullable: true,
                rule: ValueRule::Unlimited,
                evidence: "redacted in the recordings".to_owned(),
            };
        }
        let mut types = Vec::new();
        let mut is_nullable = false;
        for (kind, support) in &profile.types {
            match (support.is_usual(self.required), *kind) {
                (true, "null") => is_nullable = true,
                (true, kind) => types.push(kind),
                (false, kind) => {
                    self.finding(RareFinding::new(format!("{path} of the type {kind}"), support));
                }
            }
        }
        let (rule, evidence) = match types.as_slice() {
            ["boolean"] => self.boolean(path, profile),
            ["number"] => match &profile.numbers {
                Some(numbers) => {
                    if !numbers.fractions.is_usual(self.required) {
                        types = vec!["integer"];
                        self.rare(&format!("{path} with a fraction"), &numbers.fractions);
                    }
                    self.number(path, name, numbers)
                }
                None => unlimited(),
            },
            ["string"] => match &profile.strings {
                Some(strings) => self.string(path, name, strings),
                None => unlimited(),
            },
            ["array"] => match &profile.array {
                Some(array) => self.array(path, name, array),
                None => unlimited(),
            },
            ["object"] => match &profile.object {
                Some(object) => self.object(path, object),
                None => unlimited(),
            },
            [] => unlimited(),
            several => {
                let text = format!("{path} is not limited: it is {}", several.join(" or "));
                self.finding(RareFinding::note(text));
                unlimited()
            }
        };
        FieldRule { types, is_nullable, rule, evidence }
    }

    fn boolean(&mut self, path: &str, profile: &FieldProfile) -> (ValueRule, String) {
        let usual: Vec<bool> = profile
            .booleans
            .iter()
            .filter(|(_, support)| support.is_usual(self.required))
            .map(|(value, _)| *value)
            .collect();
        for (value, support) in &profile.booleans {
            self.rare(&format!("{path}: {value}"), support);
        }
        let [only] = usual.as_slice() else { return unlimited() };
        let calls = profile.booleans.get(only).map(Support::calls).unwrap_or_default();
        (ValueRule::OneOf(vec![(*only).into()]), format!("{only}: {}", calls_phrase(calls)))
    }

    /// Whether these values are most of all: few sessions begin with another one, and each occurs often enough.
    fn is_enumeration<'s>(&self, values: impl Iterator<Item = &'s Support>, all: &Support) -> bool {
        let (mut count, mut calls, mut firsts) = (0, 0, 0);
        for support in values {
            count += 1;
            calls += support.calls();
            firsts += support.firsts();
        }
        count > 0 && calls >= CALLS_PER_VALUE * count && self.covers(firsts, all)
    }

    /// Whether the sessions that begin with these values are most of all. Fewer sessions than are required never matter.
    fn covers(&self, firsts: u64, all: &Support) -> bool {
        let others = all.firsts().saturating_sub(firsts);
        others < self.required as u64
            || firsts.saturating_mul(COVERED.1) >= all.firsts().saturating_mul(COVERED.0)
    }

    fn array(&mut self, path: &str, name: &str, array: &ArrayProfile) -> (ValueRule, String) {
        let Some(longest) = array.lengths.usual(self.required).copied() else { return unlimited() };
        let most = round_count(longest);
        for extreme in array.lengths.beyond(&most) {
            self.finding(RareFinding::beyond(format!("{path} with {} items", extreme.value), extreme));
        }
        let item = self.field(&format!("{path}[*]"), name, &array.items);
        let evidence = format!("usual: up to {longest} items");
        (ValueRule::Items { most, item: Box::new(item) }, evidence)
    }

    fn object(&mut self, path: &str, object: &ObjectProfile) -> (ValueRule, String) {
        if object.unnamed.is_usual(self.required) {
            self.finding(RareFinding::new(
                format!("{path} is not limited: its members have no fixed names"),
                &object.unnamed,
            ));
            return unlimited();
        }
        self.rare(&format!("{path} with a member of an unusual name"), &object.unnamed);
        let mut members = BTreeMap::new();
        for (name, member) in &object.members {
            let support = &member.values.present;
            let is_declared = path != "$.input" || self.declared.is_empty() || self.declared.contains(name);
            let is_public = self.declared.contains(name);
            let is_confidential = !is_public && self.confidential.is_confidential_name(name);
            if is_confidential {
                self.rare(&format!("{path} with a member whose name is confidential"), support);
                continue;
            }
            let member_path = format!("{path}{}", PathStep::Name(name.clone()));
            if !support.is_usual(self.required) || !is_declared {
                let why = if is_declared { "" } else { ", which the tool does not declare" };
                self.finding(RareFinding::new(format!("{member_path}{why}"), support));
                continue;
            }
            let is_required = !member.lacking.is_usual(self.required);
            self.rare(&format!("{path} without {name}"), &member.lacking);
            let field = self.field(&member_path, name, &member.values);
            members.insert(name.clone(), MemberRule { is_required, field });
        }
        (ValueRule::Members(members), String::new())
    }

    fn secret(&mut self, path: &str) -> (ValueRule, String) {
        self.finding(RareFinding::note(format!("{path} is not limited: it is named like a secret")));
        (ValueRule::Unlimited, "its values are not shown".to_owned())
    }

    /// Reports the rare values of an enumeration.
    fn rare_values<K: Ord>(
        &mut self,
        path: &str,
        name: &str,
        counts: &ValueCounts<K>,
        value_of: impl Fn(&K) -> Option<Value>,
    ) {
        let mut left = counts.others();
        for (index, (value, support)) in counts.rare(self.required).enumerate() {
            if index >= MAX_FINDINGS {
                left += support.calls();
                continue;
            }
            let value = value_of(value).filter(|value| !self.is_confidential(name, value));
            let text = value.map_or_else(|| "another value".to_owned(), |value| shown(&value));
            self.finding(RareFinding::new(format!("{path}: {text}"), support));
        }
        if left > 0 {
            self.finding(RareFinding { calls: left, ..RareFinding::note(format!("{path}: further values")) });
        }
    }

    fn is_confidential(&self, name: &str, value: &Value) -> bool {
        self.confidential.has_confidential(name, value)
    }

    /// Reports something rare; nothing if it was never seen.
    fn rare(&mut self, text: &str, support: &Support) {
        if support.is_rare(self.required) {
            self.finding(RareFinding::new(text, support));
        }
    }

    fn finding(&mut self, finding: RareFinding) {
        if !self.findings.iter().any(|known| known.text == finding.text) {
            self.findings.push(finding);
        }
    }
}

fn unlimited() -> (ValueRule, String) {
    (ValueRule::Unlimited, String::new())
}
