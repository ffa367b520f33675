//! `expect`: reads the expectation on a call, and compares it with the outcome.

use regex::Regex;

use crate::comparison::differences;
use crate::report::Failure;
use crate::test_file_reader::TestFileReader;
use crate::test_schema::{EXPECT, TEXT_TEST};
use callgate::call::{CallView, Outcome, OutcomeKind, SessionState, ToolCall};
use callgate::diagnostic::{Diagnostic, Location, NOTHING_EXPECTED};
use callgate::json::{Value, json};
use callgate::matcher::{Condition, Truth};
use callgate::path::Path;
use callgate::source::{MappingEntry, YamlNode};

/// The expectation on a call.
#[derive(Debug)]
pub(super) struct Expectation {
    checks: Vec<FieldCheck>,
}

/// One expected value, with its location.
#[derive(Debug)]
struct FieldCheck {
    location: Location,
    field: &'static str,
    expected: ExpectedValue,
}

#[derive(Debug)]
enum ExpectedValue {
    Outcome(OutcomeKind),
    Policy(String),
    Code(String),
    Message(StringTest),
    Question(StringTest),
    Input(Value),
    Output(Value),
    Error(StringTest),
    /// With the condition as written.
    Condition(Condition, Value),
    PolicyMatched(String),
    PolicyNotMatched(String),
    Runs(usize),
    Ignored(StringTest),
}

/// The expectation on a string.
#[derive(Debug)]
enum StringTest {
    Equals(String),
    Partial { contains: Option<String>, matches: Option<Regex> },
}

/// The actual result of a call: everything that expectations can test.
pub(super) struct ActualResult<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) outcome: &'a Outcome,
    /// The session's state after the call.
    pub(super) session: &'a SessionState,
    pub(super) runs: usize,
    /// Why the answer to its approval request does not count.
    pub(super) ignored: Option<&'a str>,
}

impl Expectation {
    /// Reads an `expect`. Reports problems to the reader.
    pub(super) fn read(node: &YamlNode, reader: &mut TestFileReader<'_>) -> Self {
        let mut checks = Vec::new();
        if let Some(word) = node.as_str() {
            checks.extend(
                parse_outcome(word)
                    .map(|kind| FieldCheck::new(node, "outcome", ExpectedValue::Outcome(kind), reader)),
            );
        }
        if node.entries().is_some_and(<[_]>::is_empty) {
            reader.report(Diagnostic::new(&NOTHING_EXPECTED, node.span, "`expect` is empty").with_help(
                "write for example `expect: denied`, or remove it from a step that only prepares others",
            ));
        }
        for entry in node.entries().unwrap_or_default() {
            read_field(entry, reader, &mut checks);
        }
        Self { checks }
    }

    /// The expectations that do not hold; `number` is the call's number in its case.
    pub(super) fn failures(&self, number: usize, result: &ActualResult<'_>) -> Vec<Failure> {
        self.checks.iter().filter_map(|check| check.failure(number, result)).collect()
    }
}

fn parse_outcome(word: &str) -> Option<OutcomeKind> {
    OutcomeKind::ALL.into_iter().find(|kind| kind.name() == word)
}

fn read_field(entry: &MappingEntry, reader: &mut TestFileReader<'_>, checks: &mut Vec<FieldCheck>) {
    let node = &entry.value;
    let Some(field) = EXPECT.fields.iter().map(|field| field.name).find(|name| *name == entry.key) else {
        return;
    };
    let text = || node.as_str().map(str::to_owned);
    let many = || node.items().unwrap_or(std::slice::from_ref(node));
    let wanted = match field {
        "outcome" => node.as_str().and_then(parse_outcome).map(ExpectedValue::Outcome),
        "policy" => reader.read_policy_id(node).map(ExpectedValue::Policy),
        "code" => text().map(ExpectedValue::Code),
        "message" => StringTest::read(node, reader).map(ExpectedValue::Message),
        "question" => StringTest::read(node, reader).map(ExpectedValue::Question),
        "error" => StringTest::read(node, reader).map(ExpectedValue::Error),
        "ignored" => StringTest::read(node, reader).map(ExpectedValue::Ignored),
        "input" => Some(ExpectedValue::Input(node.to_json())),
        "output" => Some(ExpectedValue::Output(node.to_json())),
        "runs" => node
            .as_number()
            .and_then(callgate::json::Number::as_u64)
            .and_then(|number| usize::try_from(number).ok())
            .map(ExpectedValue::Runs),
        _ => {
            for item in many() {
                let wanted = match field {
                    "policies" => reader.read_policy_id(item).map(ExpectedValue::PolicyMatched),
                    "not_policies" => reader.read_policy_id(item).map(ExpectedValue::PolicyNotMatched),
                    _ => reader
                        .read_condition(item)
                        .map(|condition| ExpectedValue::Condition(condition, item.to_json())),
                };
                checks.extend(wanted.map(|wanted| FieldCheck::new(item, field, wanted, reader)));
            }
            None
        }
    };
    checks.extend(wanted.map(|wanted| FieldCheck::new(node, field, wanted, reader)));
}

impl FieldCheck {
    fn new(
        node: &YamlNode,
        field: &'static str,
        expected: ExpectedValue,
        reader: &TestFileReader<'_>,
    ) -> Self {
        Self { location: reader.locate(node.span), field, expected }
    }

    fn failure(&self, number: usize, result: &ActualResult<'_>) -> Option<Failure> {
        let outcome = result.outcome;
        let took_part = || outcome.policies.iter().map(|policy| policy.id.as_str()).collect::<Vec<_>>();
        let optional = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let mut note = None;
        let mut value_differences = Vec::new();
        let (holds, expected, actual) = match &self.expected {
            ExpectedValue::Outcome(kind) => {
                note = result.ignored.map(|why| format!("the answer does not count: {why}"));
                (outcome.outcome == *kind, kind.name().into(), outcome.outcome.name().into())
            }
            ExpectedValue::Policy(id) => {
                let policy = outcome.reason.policy.as_deref();
                (policy == Some(id), id.as_str().into(), optional(policy))
            }
            ExpectedValue::Code(code) => {
                (outcome.reason.code == *code, code.as_str().into(), outcome.reason.code.as_str().into())
            }
            ExpectedValue::Message(test) => {
                let message = outcome.reason.message.as_str();
                (test.holds(Some(message)), test.to_json(), message.into())
            }
            ExpectedValue::Question(test) => {
                let question = outcome.approval.as_ref().and_then(|approval| approval.message.as_deref());
                (test.holds(question), test.to_json(), optional(question))
            }
            ExpectedValue::Error(test) => {
                let error = outcome.error.as_deref();
                (test.holds(error), test.to_json(), optional(error))
            }
            ExpectedValue::Input(expected) => {
                value_differences = differences("$.input", expected, &outcome.input);
                (value_differences.is_empty(), expected.clone(), outcome.input.clone())
            }
            ExpectedValue::Output(expected) => match &outcome.output {
                Some(output) => {
                    value_differences = differences("$.output", expected, output);
                    (value_differences.is_empty(), expected.clone(), output.clone())
                }
                None => {
                    note = Some("the call has no output".to_owned());
                    (false, expected.clone(), Value::Null)
                }
            },
            ExpectedValue::Condition(condition, written) => {
                let truth = condition.eval(&result.view());
                note = match &truth {
                    Truth::Yes => None,
                    Truth::No | Truth::Absent => describe_found_values(written, &result.view()),
                    Truth::Undecided(why) => Some(format!("it is undecided: {why}")),
                };
                let word = match truth {
                    Truth::Yes => "holds",
                    Truth::No | Truth::Absent => "does not hold",
                    Truth::Undecided(_) => "undecided",
                };
                (truth == Truth::Yes, written.clone(), word.into())
            }
            ExpectedValue::PolicyMatched(id) => {
                let policies = took_part();
                (policies.contains(&id.as_str()), id.as_str().into(), policies.into())
            }
            ExpectedValue::PolicyNotMatched(id) => {
                let policies = took_part();
                (!policies.contains(&id.as_str()), id.as_str().into(), policies.into())
            }
            ExpectedValue::Ignored(test) => {
                (test.holds(result.ignored), test.to_json(), optional(result.ignored))
            }
            ExpectedValue::Runs(runs) => (result.runs == *runs, json!(runs), json!(result.runs)),
        };
        (!holds).then(|| Failure {
            place: self.location.clone(),
            call: Some(number),
            field: self.field.to_owned(),
            expected,
            actual,
            note,
            differences: value_differences,
        })
    }
}

/// The values at a condition's path, as a note. Returns `None` if it has no path, or an invalid one.
fn describe_found_values(written: &Value, view: &CallView<'_>) -> Option<String> {
    let path = Path::parse(written.get("path")?.as_str()?).ok()?;
    let values: Vec<String> = path.nodes(view).ok()?.iter().map(|node| node.to_value().to_string()).collect();
    Some(match values.as_slice() {
        [] => format!("`{}` is absent", path.text()),
        [value] => format!("`{}` is {value}", path.text()),
        several => format!("`{}` are {}", path.text(), several.join(", ")),
    })
}

impl ActualResult<'_> {
    /// The call document after the call.
    fn view(&self) -> CallView<'_> {
        CallView {
            input: &self.outcome.input,
            output: self.outcome.output.as_ref(),
            error: self.outcome.error.as_deref(),
            ..CallView::new(self.call, self.session)
        }
    }
}

impl StringTest {
    fn read(node: &YamlNode, reader: &mut TestFileReader<'_>) -> Option<Self> {
        if let Some(text) = node.as_str() {
            return Some(Self::Equals(text.to_owned()));
        }
        let contains = node.get("contains").and_then(YamlNode::as_str).map(str::to_owned);
        let matches = node.get("matches").and_then(|node| reader.read_regex(node));
        if node.entries().is_some_and(<[_]>::is_empty) {
            let keys: Vec<String> =
                TEXT_TEST.fields.iter().map(|field| format!("`{}`", field.name)).collect();
            reader.report(
                Diagnostic::new(&NOTHING_EXPECTED, node.span, "this string has no expectation")
                    .with_help(format!("add {}, or write the whole string", keys.join(" or "))),
            );
            return None;
        }
        Some(Self::Partial { contains, matches })
    }

    fn holds(&self, text: Option<&str>) -> bool {
        let Some(text) = text else { return false };
        match self {
            Self::Equals(expected) => text == expected,
            Self::Partial { contains, matches } => {
                contains.as_ref().is_none_or(|part| text.contains(part.as_str()))
                    && matches.as_ref().is_none_or(|regex| regex.is_match(text))
            }
        }
    }

    /// The test as written.
    fn to_json(&self) -> Value {
        match self {
            Self::Equals(text) => text.as_str().into(),
            Self::Partial { contains, matches } => {
                let contains = contains.as_ref().map(|part| ("contains".to_owned(), part.as_str().into()));
                let matches = matches.as_ref().map(|regex| ("matches".to_owned(), regex.as_str().into()));
                Value::Object(contains.into_iter().chain(matches).collect())
            }
        }
    }
}
