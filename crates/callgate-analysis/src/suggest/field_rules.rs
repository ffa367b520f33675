//! Derives the rule of a path from what was seen there: usual values are permitted, rare ones become findings.

use std::collections::BTreeMap;

use callgate::address::{Directory, DomainPattern, HostPattern};
use callgate::json::{Number, Value};
use callgate::path::PathStep;
use callgate::safe_text::look_alike_form;

use super::confidential_values::{ConfidentialValues, is_secret_name};
use super::field_profile::{ArrayProfile, FieldProfile, NumberProfile, ObjectProfile};
use super::number_rounding::{Rounding, round, round_count};
use super::rare_finding::{MAX_FINDINGS, RareFinding, shown, shown_text};
use super::string_profile::{LONG_VALUE, StringClass, StringProfile};
use super::support::{ExtremeValue, Support, ValueCounts};
use super::usual_directories::usual_directories;
use super::value_rule::{FieldRule, MemberRule, ShapeRule, ValueRule};

/// The most values of an enumeration.
const MAX_ENUMERATED: usize = 20;
/// The most numbers of an enumeration.
const MAX_NUMBERS: usize = 3;
/// The least calls for each value of an enumeration, on average.
const CALLS_PER_VALUE: u64 = 4;
/// The part of the sessions whose first values an enumeration or a set of shapes must cover: 9 of 10.
const COVERED: (u64, u64) = (9, 10);
/// The most hosts, domains and directories of a rule.
const MAX_LISTED: usize = 30;
/// The most shapes of a rule.
const MAX_SHAPES: usize = 3;
/// A range begins near 0 if its end is this many times its beginning.
const SMALL_PART: f64 = 10.0;
/// The shortest bound on the length of a text.
const MIN_LENGTH: u64 = 20;

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

    fn number(&mut self, path: &str, name: &str, numbers: &NumberProfile) -> (ValueRule, String) {
        if is_secret_name(name) {
            return self.secret(path);
        }
        let usual: Vec<&Number> = numbers.values.usual(self.required).map(|(value, _)| value).collect();
        let is_enumerated = usual.len() <= MAX_NUMBERS
            && self.is_enumeration(
                numbers.values.usual(self.required).map(|(_, support)| support),
                &numbers.calls,
            )
            && usual.iter().all(|value| !self.is_confidential(name, &Value::Number((*value).clone())));
        if is_enumerated {
            let evidence =
                enumeration_evidence(numbers.values.usual(self.required), |value| value.to_string());
            let values = usual.into_iter().map(|value| Value::Number(value.clone())).collect();
            self.rare_values(path, name, &numbers.values, |value| Some(Value::Number(value.clone())));
            return (ValueRule::OneOf(values), evidence);
        }
        let bounds = (numbers.smallest.usual(self.required), numbers.largest.usual(self.required));
        let (Some(smallest), Some(largest)) = bounds else { return unlimited() };
        let (usual_least, most) = (round(&smallest.0, Rounding::Down), round(largest, Rounding::Up));
        let least = begin_of_range(&usual_least, &most, numbers.fractions.is_usual(self.required));
        for extreme in numbers.largest.beyond(&most) {
            self.beyond(path, name, &extreme.value, extreme);
        }
        for extreme in numbers.smallest.beyond(&std::cmp::Reverse(least.clone())) {
            self.beyond(path, name, &extreme.value.0, extreme);
        }
        (
            ValueRule::Range { least, most: most.clone() },
            format!("usual from {usual_least} to {most}, in {}", calls_phrase(numbers.calls.calls())),
        )
    }

    /// Reports a number beyond the bounds of a range.
    fn beyond<T>(&mut self, path: &str, name: &str, number: &Number, extreme: &ExtremeValue<T>) {
        let value = Value::Number(number.clone());
        let shown = match self.is_confidential(name, &value) {
            true => "another number".to_owned(),
            false => shown(&value),
        };
        self.finding(RareFinding::beyond(format!("{path}: {shown}"), extreme));
    }

    fn string(&mut self, path: &str, name: &str, strings: &StringProfile) -> (ValueRule, String) {
        if is_secret_name(name) {
            return self.secret(path);
        }
        if let Some(found) = self.enumeration(path, name, strings) {
            return found;
        }
        let usual: Vec<StringClass> = strings.classes.usual(self.required).map(|(class, _)| *class).collect();
        let found = match usual.as_slice() {
            [StringClass::Url] => self.hosts(path, name, strings),
            [StringClass::MailAddresses] => self.domains(path, strings),
            [StringClass::AbsolutePath] => self.directories(path, strings, false),
            [StringClass::RelativePath] => self.directories(path, strings, true),
            [StringClass::Identifier] => self.shapes(path, name, strings),
            _ => None,
        };
        let of_class = found.is_some();
        if of_class {
            let rare: Vec<_> =
                strings.classes.rare(self.required).map(|(_, support)| support.clone()).collect();
            for support in rare {
                self.rare(&format!("{path}: a string of another form"), &support);
            }
        }
        found.unwrap_or_else(|| self.length(path, strings))
    }

    /// An enumeration, if few values are most of all.
    fn enumeration(
        &mut self,
        path: &str,
        name: &str,
        strings: &StringProfile,
    ) -> Option<(ValueRule, String)> {
        let usual: Vec<(&String, &Support)> = strings.values.usual(self.required).collect();
        let is_enumerated = usual.len() <= MAX_ENUMERATED
            && self.is_enumeration(usual.iter().map(|(_, support)| *support), &strings.calls)
            && usual.iter().all(|(value, _)| {
                *value != LONG_VALUE && !self.is_confidential(name, &Value::from(value.as_str()))
            });
        if !is_enumerated {
            return None;
        }
        // Of two values that look alike, only the one with more calls is permitted.
        let mut by_form: BTreeMap<String, (&String, u64)> = BTreeMap::new();
        for (value, support) in &usual {
            let kept = by_form.entry(look_alike_form(value)).or_insert((value, support.calls()));
            if support.calls() > kept.1 {
                *kept = (value, support.calls());
            }
        }
        let is_kept =
            |value: &String| by_form.get(&look_alike_form(value)).is_some_and(|(kept, _)| *kept == value);
        for (value, support) in usual.iter().filter(|(value, _)| !is_kept(value)) {
            let text = format!("{path}: {}, which looks like another value", shown_text(value));
            self.finding(RareFinding::new(text, support));
        }
        let kept = || usual.iter().filter(|(value, _)| is_kept(value)).copied();
        let evidence = enumeration_evidence(kept(), |value| shown_text(value));
        let values: Vec<Value> = kept().map(|(value, _)| value.as_str().into()).collect();
        self.rare_values(path, name, &strings.values, |value| {
            (value != LONG_VALUE).then(|| value.as_str().into())
        });
        Some((ValueRule::OneOf(values), evidence))
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

    fn hosts(&mut self, path: &str, name: &str, strings: &StringProfile) -> Option<(ValueRule, String)> {
        let hosts = self.listed(path, "hosts", name, &strings.hosts, |host| {
            let example = format!("https://{host}/");
            HostPattern::parse(host).is_ok_and(|pattern| pattern.matches(&example) == Ok(true))
        })?;
        let only_https = !strings.unencrypted.is_usual(self.required);
        self.rare(&format!("{path}: a URL that is not https"), &strings.unencrypted);
        let evidence =
            enumeration_evidence(strings.hosts.iter().filter(|(host, _)| hosts.contains(host)), |host| {
                shown_text(host)
            });
        Some((ValueRule::Hosts { hosts, only_https }, evidence))
    }

    fn domains(&mut self, path: &str, strings: &StringProfile) -> Option<(ValueRule, String)> {
        let domains = self.listed(path, "mail domains", "domain", &strings.domains, |domain| {
            DomainPattern::parse(domain).is_ok()
        })?;
        let evidence = enumeration_evidence(
            strings.domains.iter().filter(|(domain, _)| domains.contains(domain)),
            |domain| shown_text(domain),
        );
        Some((ValueRule::Domains(domains), evidence))
    }

    fn directories(
        &mut self,
        path: &str,
        strings: &StringProfile,
        is_relative: bool,
    ) -> Option<(ValueRule, String)> {
        let chosen = usual_directories(&strings.directories, self.required)?;
        let text = |segments: &[String]| format!("/{}", segments.join("/"));
        let directories: Vec<String> = chosen
            .iter()
            .map(|segments| text(segments))
            .filter(|directory| Directory::parse(directory, None).is_ok())
            .filter(|directory| !self.is_confidential("directory", &directory.as_str().into()))
            .collect();
        if directories.is_empty() {
            return None;
        }
        let is_inside =
            |segments: &Vec<String>| chosen.iter().any(|directory| segments.starts_with(directory));
        let rare: Vec<_> = strings
            .directories
            .direct
            .rare(self.required)
            .map(|(segments, support)| (segments.clone(), support.clone()))
            .collect();
        let (below, outside): (Vec<_>, Vec<_>) =
            rare.into_iter().partition(|(segments, _)| is_inside(segments));
        for (segments, support) in outside.iter().take(MAX_FINDINGS) {
            let shown = self.shown_unless_confidential("directory", &text(segments));
            self.rare(&format!("{path} in {shown}"), support);
        }
        for (segments, support) in below.iter().take(MAX_FINDINGS) {
            // Nothing has been seen of most of what is below a permitted directory. Where something was seen, and rarely, it is named.
            let shown = self.shown_unless_confidential("directory", &text(segments));
            self.finding(RareFinding::new(
                format!("{path} in {shown}, below a permitted directory"),
                support,
            ));
        }
        let evidence = format!(
            "{} in {}",
            count(directories.len(), "directory", "directories"),
            calls_phrase(strings.calls.calls())
        );
        Some((ValueRule::Directories { directories, is_relative }, evidence))
    }

    fn shapes(&mut self, path: &str, name: &str, strings: &StringProfile) -> Option<(ValueRule, String)> {
        for counts in &strings.shapes {
            let usual: Vec<_> = counts.usual(self.required).collect();
            let calls: u64 = usual.iter().map(|(_, support)| support.calls()).sum();
            let firsts = usual.iter().map(|(_, support)| support.firsts()).sum();
            if usual.is_empty() || usual.len() > MAX_SHAPES || !self.covers(firsts, &strings.calls) {
                continue;
            }
            let mut shapes = Vec::new();
            for (shape, _) in usual {
                let runs = strings.shape_lengths.get(shape)?;
                let lengths: Option<Vec<(u64, u64)>> = runs
                    .shortest
                    .iter()
                    .zip(&runs.longest)
                    .map(|(shortest, longest)| {
                        Some((shortest.usual(self.required)?.0, *longest.usual(self.required)?))
                    })
                    .collect();
                if shape.literals().any(|text| self.is_confidential(name, &text.into())) {
                    return None;
                }
                // The shortest and the longest of enough sessions need not be in order.
                let lengths = lengths?.into_iter().map(|(one, other)| (one.min(other), one.max(other)));
                shapes.push(ShapeRule { shape: shape.clone(), lengths: lengths.collect() });
            }
            let rare: Vec<Support> = counts.rare(self.required).map(|(_, support)| support.clone()).collect();
            for support in rare.iter().take(MAX_FINDINGS) {
                self.rare(&format!("{path}: a string of another form"), support);
            }
            let evidence = format!("the form of {}", calls_phrase(calls));
            return Some((ValueRule::Shapes(shapes), evidence));
        }
        None
    }

    fn length(&mut self, path: &str, strings: &StringProfile) -> (ValueRule, String) {
        let Some(longest) = strings.lengths.usual(self.required).copied() else { return unlimited() };
        let most = round_count(longest.max(MIN_LENGTH));
        for extreme in strings.lengths.beyond(&most) {
            let text = format!("{path}: a string of {} characters", extreme.value);
            self.finding(RareFinding::beyond(text, extreme));
        }
        self.finding(RareFinding::note(format!(
            "{path} is limited in length only: its values have nothing else in common"
        )));
        (ValueRule::Length(most), format!("any text, in {}", calls_phrase(strings.calls.calls())))
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

    /// The usual hosts or domains that can be listed. Returns `None` if there are none, or too many.
    fn listed(
        &mut self,
        path: &str,
        what: &str,
        name: &str,
        counts: &ValueCounts<String>,
        is_valid: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let usual: Vec<String> = counts
            .usual(self.required)
            .map(|(value, _)| value.clone())
            .filter(|value| is_valid(value) && !self.is_confidential(name, &value.as_str().into()))
            .collect();
        if usual.len() > MAX_LISTED {
            self.finding(RareFinding::note(format!(
                "{path} is not limited to {}: {} {what} are usual",
                what,
                usual.len()
            )));
            return None;
        }
        if usual.is_empty() {
            return None;
        }
        self.rare_values(path, name, counts, |value| Some(value.as_str().into()));
        Some(usual)
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

    fn shown_unless_confidential(&self, name: &str, text: &str) -> String {
        if self.is_confidential(name, &text.into()) { "another one".to_owned() } else { shown_text(text) }
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

/// Where a range begins. One that begins near 0 begins at 0, or at 1 for whole numbers: smaller amounts are no surprise.
fn begin_of_range(usual: &Number, most: &Number, has_fractions: bool) -> Number {
    let is_near = match (usual.as_f64(), most.as_f64()) {
        (Some(usual), Some(most)) => usual > 0.0 && usual * SMALL_PART <= most,
        _ => false,
    };
    match (is_near, has_fractions) {
        (false, _) => usual.clone(),
        (true, true) => Number::from(0),
        (true, false) => Number::from(1).min(usual.clone()),
    }
}

fn unlimited() -> (ValueRule, String) {
    (ValueRule::Unlimited, String::new())
}

/// `EUR 700, USD 112`
fn enumeration_evidence<'k, K: 'k>(
    values: impl Iterator<Item = (&'k K, &'k Support)>,
    show: impl Fn(&K) -> String,
) -> String {
    let mut values: Vec<_> = values.collect();
    values.sort_by_key(|(_, support)| std::cmp::Reverse(support.calls()));
    let more = values.len().saturating_sub(MAX_FINDINGS);
    let mut parts: Vec<String> = values
        .into_iter()
        .take(MAX_FINDINGS)
        .map(|(value, support)| format!("{} {}", show(value), support.calls()))
        .collect();
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    format!("calls: {}", parts.join(", "))
}

fn calls_phrase(calls: u64) -> String {
    count(usize::try_from(calls).unwrap_or(usize::MAX), "call", "calls")
}

fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
