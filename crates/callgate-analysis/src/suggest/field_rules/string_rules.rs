//! Rules of strings: a few values, hosts, mail domains, directories, a form, or a length.

use std::collections::BTreeMap;

use callgate::address::{Directory, DomainPattern, HostPattern};
use callgate::json::Value;
use callgate::safe_text::look_alike_form;

use super::evidence::{calls_phrase, count, enumeration_evidence};
use super::{FieldRules, unlimited};
use crate::suggest::confidential_values::is_secret_name;
use crate::suggest::number_rounding::round_count;
use crate::suggest::rare_finding::{MAX_FINDINGS, RareFinding, shown_text};
use crate::suggest::string_profile::{LONG_VALUE, StringClass, StringProfile};
use crate::suggest::support::{Support, ValueCounts};
use crate::suggest::usual_directories::usual_directories;
use crate::suggest::value_rule::{ShapeRule, ValueRule};

/// The most values of an enumeration.
const MAX_ENUMERATED: usize = 20;
/// The most hosts, domains and directories of a rule.
const MAX_LISTED: usize = 30;
/// The most shapes of a rule.
const MAX_SHAPES: usize = 3;
/// The shortest bound on the length of a text.
const MIN_LENGTH: u64 = 20;

impl FieldRules<'_> {
    pub(super) fn string(&mut self, path: &str, name: &str, strings: &StringProfile) -> (ValueRule, String) {
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

    fn shown_unless_confidential(&self, name: &str, text: &str) -> String {
        if self.is_confidential(name, &text.into()) { "another one".to_owned() } else { shown_text(text) }
    }
}
