//! Reads one call of a test file and its tool's answers: document nodes → [`CallStep`].

use crate::case::CallStep;
use crate::expectation::Expectation;
use crate::stub::{StubbedAnswer, StubbedAnswers};
use crate::test_file_reader::TestFileReader;
use callgate::call::ToolCall;
use callgate::diagnostic::{CONFLICTING_KEYS, Diagnostic, EMPTY_VALUE};
use callgate::host::ToolError;
use callgate::json::{Map, Value};
use callgate::source::{MappingEntry, YamlNode, YamlValue};

/// A call, with the row of a table merged over it.
pub(super) struct LayeredCall<'n> {
    /// The call that the row varies, if any.
    pub(super) base: Option<&'n YamlNode>,
    /// The row, or the call itself.
    pub(super) own: &'n YamlNode,
}

/// The keys that define a tool's answer.
const ANSWER_KEYS: [&str; 3] = ["returns", "fails", "answers"];

impl<'n> LayeredCall<'n> {
    fn get(&self, key: &str) -> Option<&'n YamlNode> {
        self.own.get(key).or_else(|| self.base?.get(key))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_str().map(str::to_owned)
    }

    /// The value of a key; if both are mappings, the row's members replace those of the call.
    fn merged(&self, key: &str) -> Option<Value> {
        let under = self.base.and_then(|base| base.get(key)).map(YamlNode::to_json);
        let over = self.own.get(key).map(YamlNode::to_json);
        match (under, over) {
            (Some(Value::Object(mut under)), Some(Value::Object(over))) => {
                under.extend(over);
                Some(Value::Object(under))
            }
            (under, over) => over.or(under),
        }
    }

    /// The node that defines the tool's answers, if any.
    fn answers_node(&self) -> Option<&'n YamlNode> {
        let has_answers = |node: &&YamlNode| node.entries().unwrap_or_default().iter().any(is_answer_key);
        Some(self.own).filter(has_answers).or_else(|| self.base.filter(has_answers))
    }
}

fn is_answer_key(entry: &MappingEntry) -> bool {
    entry.key == "takes" || ANSWER_KEYS.contains(&entry.key.as_str())
}

/// Reads a call, the `number`th of its case. Returns `None` if its shape is invalid, which is already reported.
pub(super) fn read(
    laid: &LayeredCall<'_>,
    expect: Option<&YamlNode>,
    context: &Map,
    number: usize,
    reader: &mut TestFileReader<'_>,
) -> Option<CallStep> {
    let mut context = context.clone();
    for node in [laid.base, Some(laid.own)].into_iter().flatten() {
        if let Some(own) = node.get("context") {
            context.extend(reader.read_mapping(own, "context"));
        }
    }
    let answers = laid.answers_node().and_then(|node| read_answers(node, reader));
    let expect = expect.map(|node| Expectation::read(node, reader));
    let id = laid.text("id").filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{number}"));
    let input = laid.merged("input").unwrap_or_else(|| Value::Object(Map::new()));
    let call = ToolCall {
        server: laid.text("server"),
        context: if context.is_empty() { Value::Null } else { Value::Object(context) },
        ..ToolCall::recorded(id, &laid.text("tool")?, input)
    };
    let task = laid.get("task").and_then(|node| reader.read_task(node));
    Some(CallStep { call, task, answers, expect })
}

/// Reads a tool's answers from a call or a stub. Returns `None` if there are none, or if they conflict.
pub(super) fn read_answers(node: &YamlNode, reader: &mut TestFileReader<'_>) -> Option<StubbedAnswers> {
    let entries = node.entries()?;
    let mut answers = entries.iter().filter(|entry| ANSWER_KEYS.contains(&entry.key.as_str()));
    let first = answers.next();
    if let (Some(first), Some(second)) = (first, answers.next()) {
        let message = format!("`{}` and `{}` exclude each other", first.key, second.key);
        reader.report(
            Diagnostic::new(&CONFLICTING_KEYS, second.key_span, message)
                .with_label(first.key_span, "the first one")
                .with_help("keep one of them; `answers` lists the answers to successive runs of the tool"),
        );
        return None;
    }
    match first.filter(|entry| entry.key == "answers") {
        Some(list) => {
            if let Some(takes) = entries.iter().find(|entry| entry.key == "takes") {
                reader.report(
                    Diagnostic::new(
                        &CONFLICTING_KEYS,
                        takes.key_span,
                        "`takes` has no effect beside `answers`",
                    )
                    .with_label(list.key_span, "the answers")
                    .with_help("move it into each of the answers"),
                );
            }
            let items = list.value.items()?.iter().filter(|item| item.entries().is_some());
            Some(items.filter_map(|item| read_list_answer(item, reader)).collect())
        }
        None if entries.iter().any(is_answer_key) => Some(vec![read_answer(node, reader)]),
        None => None,
    }
}

fn read_list_answer(node: &YamlNode, reader: &mut TestFileReader<'_>) -> Option<StubbedAnswer> {
    if node.entries()?.is_empty() {
        reader.report(
            Diagnostic::new(&EMPTY_VALUE, node.span, "this answer is empty")
                .with_help("add `returns:` or `fails:`, as in `{ fails: \"try again\" }`"),
        );
    }
    read_answers(node, reader)?.into_iter().next()
}

fn read_answer(node: &YamlNode, reader: &mut TestFileReader<'_>) -> StubbedAnswer {
    let takes = node.get("takes").and_then(|node| reader.read_duration(node));
    let returns = node.get("returns").map(|node| Ok(node.to_json()));
    let fails = node.get("fails").map(|node| Err(read_failure(node)));
    StubbedAnswer { result: returns.or(fails), takes }
}

fn read_failure(node: &YamlNode) -> ToolError {
    let text = |key| node.get(key).and_then(YamlNode::as_str);
    match &node.value {
        YamlValue::String(message) => ToolError::new(&message.text),
        _ => ToolError {
            kind: text("kind").map(str::to_owned),
            ..ToolError::new(text("message").unwrap_or_default())
        },
    }
}
