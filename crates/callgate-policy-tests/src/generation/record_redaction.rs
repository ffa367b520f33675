//! Redacts recorded calls: a value that policies redact in one place is replaced wherever it occurs.

use std::collections::BTreeMap;

use regex::Regex;

use super::GenerateError;
use callgate::call::{CallRecord, RecordedResult};
use callgate::json::Value;
use callgate::middleware::{PolicyKind, Redact};
use callgate::policy::{CompiledPolicies, Mode, Policy};

/// The replacement of a value that can't be redacted.
const WITHHELD: &str = "[withheld]";
/// The minimum length of a secret to search for: a shorter string may occur elsewhere by chance.
const MIN_SECRET_LENGTH: usize = 4;
/// The number of secrets in one regular expression.
const SECRETS_PER_PATTERN: usize = 200;

/// The redacted values of calls, and the policies that redact them.
#[derive(Default)]
pub(super) struct RedactedSecrets {
    /// The secret → its replacement.
    replacements: BTreeMap<String, String>,
    policies: Vec<String>,
}

/// Returns the redacted records, and the ids of the policies that redact something in them.
///
/// A `redact` policy applies to all calls of its tools, whatever its conditions, for arguments and results alike; all `redact` policies
/// apply to the name of a session.
pub(super) fn redact_records(
    records: Vec<CallRecord>,
    policies: &CompiledPolicies,
) -> Result<(Vec<CallRecord>, Vec<String>), GenerateError> {
    let redactions: Vec<(&Policy, &Redact)> = policies
        .policies()
        .iter()
        .filter(|policy| policy.mode == Mode::Enforce)
        .filter_map(|policy| match &policy.kind {
            PolicyKind::Redact(redact) => Some((policy.as_ref(), &**redact)),
            _ => None,
        })
        .collect();
    if redactions.is_empty() {
        return Ok((records, Vec::new()));
    }
    let mut secrets = RedactedSecrets::default();
    let mut records: Vec<CallRecord> = records
        .into_iter()
        .map(|mut record| {
            let (server, tool) = (record.call.server.clone().unwrap_or_default(), record.call.tool.clone());
            for (policy, redact) in
                redactions.iter().filter(|(policy, _)| policy.matcher.matches_tool(&server, &tool))
            {
                secrets.redact_value(policy, redact, &mut record.call.input);
                secrets.redact_recorded(policy, redact, record.recorded.as_mut());
            }
            for (policy, redact) in &redactions {
                secrets.redact_string(policy, redact, record.session.as_mut());
            }
            record
        })
        .collect();
    let everywhere = secrets.secret_patterns()?;
    for record in &mut records {
        let mut replace = |text: &mut String| secrets.replace(&everywhere, text);
        for_each_string(&mut record.call.input, &mut replace);
        for_each_string(&mut record.call.context, &mut replace);
        if let Some(task) = &mut record.task {
            for_each_string(task, &mut replace);
        }
        record.session.iter_mut().for_each(&mut replace);
        match &mut record.recorded {
            Some(RecordedResult::Output(output)) => for_each_string(output, &mut replace),
            Some(RecordedResult::Error { message, .. }) => replace(message),
            None => {}
        }
    }
    secrets.policies.sort_unstable();
    secrets.policies.dedup();
    Ok((records, secrets.policies))
}

impl RedactedSecrets {
    fn redact_value(&mut self, policy: &Policy, redact: &Redact, value: &mut Value) {
        let before = value.clone();
        if redact.redactor.redact_value(value).is_err() {
            *value = WITHHELD.into();
        }
        self.record_differences(policy, redact, &before, value);
    }

    fn redact_recorded(&mut self, policy: &Policy, redact: &Redact, recorded: Option<&mut RecordedResult>) {
        match recorded {
            Some(RecordedResult::Output(output)) => self.redact_value(policy, redact, output),
            Some(RecordedResult::Error { message, .. }) => self.redact_string(policy, redact, Some(message)),
            None => {}
        }
    }

    fn redact_string(&mut self, policy: &Policy, redact: &Redact, name: Option<&mut String>) {
        let Some(name) = name else { return };
        let before = name.clone();
        *name = redact.redactor.redact_text(&before).into_owned();
        self.record_differences(policy, redact, &before.into(), &name.as_str().into());
    }

    /// Records the differences between the two values.
    fn record_differences(&mut self, policy: &Policy, redact: &Redact, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                for ((_, before), (_, after)) in before.iter().zip(after) {
                    self.record_differences(policy, redact, before, after);
                }
            }
            (Value::Array(before), Value::Array(after)) => {
                before
                    .iter()
                    .zip(after)
                    .for_each(|(before, after)| self.record_differences(policy, redact, before, after));
            }
            (before, after) if before == after => {}
            (before, after) => {
                self.policies.push(policy.id.clone());
                let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let (before, after) = (words(before), words(after));
                self.add_secret(differing_parts(&before, &after));
                // Each of several secrets in one string may occur alone elsewhere.
                for word in before.split(|c: char| c.is_whitespace() || ",;\"'()<>".contains(c)) {
                    let redacted = redact.redactor.redact_text(word);
                    if redacted != word {
                        self.add_secret((word.to_owned(), redacted.into_owned()));
                    }
                }
            }
        }
    }

    fn add_secret(&mut self, (secret, redacted): (String, String)) {
        if secret.chars().count() >= MIN_SECRET_LENGTH {
            self.replacements.insert(secret, redacted);
        }
    }

    /// The regular expressions that find all recorded secrets, the longest first.
    fn secret_patterns(&self) -> Result<Vec<Regex>, GenerateError> {
        let mut texts: Vec<&String> = self.replacements.keys().collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let pattern = |texts: &[&String]| {
            let texts: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
            Regex::new(&texts.join("|")).map_err(|error| GenerateError::Redaction(error.to_string()))
        };
        texts.chunks(SECRETS_PER_PATTERN).map(pattern).collect()
    }

    fn replace(&self, patterns: &[Regex], text: &mut String) {
        for pattern in patterns {
            if pattern.is_match(text) {
                let replacement = |found: &regex::Captures<'_>| {
                    found
                        .get(0)
                        .and_then(|found| self.replacements.get(found.as_str()))
                        .cloned()
                        .unwrap_or_default()
                };
                *text = pattern.replace_all(text, replacement).into_owned();
            }
        }
    }
}

/// The parts of two strings between their common prefix and suffix.
fn differing_parts(before: &str, after: &str) -> (String, String) {
    let (before, after): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
    let start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let rest = before.len().min(after.len()) - start;
    let end = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(one, other)| one == other);
    let end = end.count();
    let part = |chars: &[char]| chars.iter().skip(start).take(chars.len() - start - end).collect::<String>();
    (part(&before), part(&after))
}

fn for_each_string(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_string(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| for_each_string(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::engine;

    const RULES: &str = "policies:
      - { id: hide, match: get_customer, redact: { in: [output], detect: [payment_card], with: mask } }
      - { id: last-four, match: { tool: charge, where: { path: $.input.show, eq: false } }, redact: { detect: [payment_card], with: { keep_last: 4 } } }
      - { id: tried, match: '*', mode: shadow, redact: { detect: [email], with: mask } }
";

    fn hidden(lines: &[&str]) -> (Vec<CallRecord>, Vec<String>) {
        let records = lines.iter().map(|line| CallRecord::parse(line).unwrap()).collect();
        redact_records(records, &engine::load_text(RULES).unwrap()).unwrap()
    }

    /// A value that is redacted in one place is redacted wherever it occurs; a policy in shadow mode redacts nothing.
    #[test]
    fn redacts_a_secret_wherever_it_occurs() {
        let (records, by) = hidden(&[
            r#"{"tool":"note","input":{"text":["paid with 4111111111111111, a@b.example"]},"context":{"card":"4111111111111111"}}"#,
            r#"{"tool":"get_customer","session":"of 4111111111111111","recorded":{"output":{"a":[{"b":"cards 4111111111111111, 371449635398431"}]}}}"#,
            r#"{"tool":"get_customer","input":{"of":"5500005555555559"},"recorded":{"error":"no 4111111111111111"}}"#,
            r#"{"tool":"charge","input":{"card":"4012888888881881"},"recorded":{"output":"5500005555555559, or not"}}"#,
            r#"{"tool":"note","input":{"text":"371449635398431"}}"#,
        ]);
        let text = format!("{records:?}");
        for secret in ["4111111111111111", "5500005555555559", "4012888888881881", "371449635398431"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(by, ["hide", "last-four"]);
        assert_eq!(records[0].call.input["text"][0], "paid with [payment_card], a@b.example");
        assert_eq!(records[0].call.context["card"], "[payment_card]");
        assert_eq!(records[1].session.as_deref(), Some("of [payment_card]"));
        assert_eq!(records[3].call.input["card"], "************1881");
        assert_eq!(records[3].recorded, Some(RecordedResult::Output("************5559, or not".into())));
    }

    #[test]
    fn leaves_calls_unchanged_if_nothing_is_redacted() {
        let line = r#"{"tool":"note","input":{"text":"4111111111111111"}}"#;
        let (records, by) = hidden(&[line]);
        assert_eq!((records, by), (vec![CallRecord::parse(line).unwrap()], Vec::<String>::new()));
    }

    #[test]
    fn middle_is_between_the_common_prefix_and_suffix() {
        for (before, after, expected) in [
            ("a 123 b", "a [x] b", ("123", "[x]")),
            ("123", "[x]", ("123", "[x]")),
            ("aa", "aaa", ("", "a")),
            ("", "[x]", ("", "[x]")),
        ] {
            let (secret, redacted) = differing_parts(before, after);
            assert_eq!((secret.as_str(), redacted.as_str()), expected, "{before} {after}");
        }
    }
}
