//! Conversion of histories between the canonical form and the providers' dialects.

#[path = "dialects/answers.rs"]
mod answers;
#[path = "dialects/generated.rs"]
pub mod generated;
#[path = "providers/mod.rs"]
mod providers;

use std::fs;
use std::path::PathBuf;

use callgate::json::{self, Value, json};
use callgate::message::{
    CallResult, Dialect, History, HistoryEditError, Message, Part, PartContent, PartPosition, ResultOutput,
    ResultStatus, Role,
};
use proptest::prelude::*;

/// Every history of the corpus: its dialect, file name and document.
pub fn corpus() -> Vec<(Dialect, String, Value)> {
    let mut found = Vec::new();
    for dialect in Dialect::ALL {
        let folder = crate::fixtures::root().join("tests/dialects").join(dialect.name());
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.push((dialect, name, json::parse(&fs::read_to_string(path).unwrap()).unwrap()));
        }
    }
    assert!(found.len() > 25, "the corpus was not found");
    found
}

/// The content of a history as one list, independent of how a dialect splits it into messages.
fn contents(history: &History) -> Vec<String> {
    let mut contents = Vec::new();
    for message in history.messages() {
        let role = match message.role() {
            Role::Developer => "system",
            Role::Tool => "user",
            other => other.name(),
        };
        for part in message.parts() {
            contents.push(match part.content() {
                PartContent::Text(text) if text.is_empty() => continue,
                PartContent::Text(text) => format!("{role}: {text}"),
                PartContent::Call(call) => {
                    format!("call {} {} {}", call.id, call.name, json::canonical_text(&call.input))
                }
                PartContent::Result(result) => format!("result {} {}", result.call_id, result.output.text()),
                PartContent::Request(request) => format!("request {request:?}"),
                PartContent::Response(response) => format!("response {response:?}"),
                PartContent::State(_) | PartContent::Other => continue,
                unknown => panic!("{unknown:?}"),
            });
        }
    }
    contents
}

/// The parts that only one dialect supports, in order.
fn unknown(history: &History) -> Vec<String> {
    let parts = history.messages().iter().flat_map(Message::parts);
    let unknown = parts.filter(|part| *part.content() == PartContent::Other);
    unknown.map(|part| part.source().map(|(dialect, json)| format!("{dialect}: {json}")).unwrap()).collect()
}

/// Asserts that every call has exactly one result, and every result a call, as providers require.
fn assert_settled(sent: &History, dialect: Dialect) {
    let read = History::read(dialect, &sent.write(dialect)).unwrap();
    for history in [sent, &read] {
        let calls = history.occurrences();
        let results = history.messages().iter().flat_map(Message::parts);
        let results = results.filter(|part| matches!(part.content(), PartContent::Result(_))).count();
        let shown = || json::to_string_pretty(&sent.write(dialect)).unwrap();
        assert!(
            calls.iter().all(|call| call.result.is_some()),
            "{dialect}: a call has no result\n{}",
            shown()
        );
        assert_eq!(results, calls.len(), "{dialect}: not one result per call\n{}", shown());
        assert_eq!(history.messages().iter().flat_map(Message::parts).filter(is_approval).count(), 0);
    }
}

/// Asserts what providers require beyond their types: the results of a round directly follow its calls.
fn assert_in_order(dialect: Dialect, document: &Value) {
    let messages = document
        .as_array()
        .or(["messages", "contents"].iter().find_map(|list| document[*list].as_array()))
        .unwrap();
    let parts_key = if dialect == Dialect::Gemini { "parts" } else { "content" };
    let of = |message: &Value, list: &str, id: &dyn Fn(&Value) -> Option<String>| -> Vec<String> {
        message[list].as_array().into_iter().flatten().filter_map(id).collect()
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let typed = |kind: &'static str, id: &'static str| {
        move |block: &Value| (block["type"] == kind).then(|| text(&block[id])).flatten()
    };
    match dialect {
        Dialect::OpenaiResponses => {
            let ids = |kinds: [&str; 2]| {
                let items = messages.iter().filter(|item| kinds.iter().any(|kind| item["type"] == *kind));
                let mut ids: Vec<String> = items.map(|item| item["call_id"].to_string()).collect();
                ids.sort();
                ids
            };
            let results = ids(["function_call_output", "custom_tool_call_output"]);
            assert_eq!(ids(["function_call", "custom_tool_call"]), results, "{document:#}");
        }
        Dialect::OpenaiChat => {
            let mut expected: Vec<String> = Vec::new();
            for message in messages {
                if message["role"] == "tool" {
                    assert_eq!(
                        text(&message["tool_call_id"]),
                        (!expected.is_empty()).then(|| expected.remove(0)),
                        "{document:#}"
                    );
                } else {
                    assert!(expected.is_empty(), "{expected:?} have no result\n{document:#}");
                    expected = of(message, "tool_calls", &|call| text(&call["id"]));
                }
            }
            assert!(expected.is_empty(), "{expected:?} have no result\n{document:#}");
        }
        Dialect::Anthropic | Dialect::Gemini | Dialect::AiSdk => {
            let mut expected: Vec<String> = Vec::new();
            let mut all: Vec<String> = Vec::new();
            let mut last = Value::Null;
            for message in messages {
                let (calls, results) = match dialect {
                    Dialect::Anthropic => (
                        of(message, parts_key, &typed("tool_use", "id")),
                        of(message, parts_key, &typed("tool_result", "tool_use_id")),
                    ),
                    Dialect::AiSdk => (
                        of(message, parts_key, &typed("tool-call", "toolCallId")),
                        of(message, parts_key, &typed("tool-result", "toolCallId")),
                    ),
                    _ => (
                        of(message, parts_key, &|part| text(&part["functionCall"]["id"])),
                        of(message, parts_key, &|part| text(&part["functionResponse"]["id"])),
                    ),
                };
                assert_eq!(results, expected, "{dialect}\n{document:#}");
                let first = &message[parts_key][0];
                let result_first = first["type"] == "tool_result"
                    || first["type"] == "tool-result"
                    || !first["functionResponse"].is_null();
                assert!(
                    results.is_empty() || result_first,
                    "{dialect}: content precedes the results\n{document:#}"
                );
                all.extend(calls.iter().cloned());
                expected = calls;
                if dialect != Dialect::AiSdk && message["role"] != "system" {
                    assert_ne!(message["role"], last, "{dialect}: the roles do not alternate\n{document:#}");
                }
                last = message["role"].clone();
            }
            assert!(expected.is_empty(), "{expected:?} have no result\n{document:#}");
            let unique: std::collections::BTreeSet<&String> = all.iter().collect();
            assert!(dialect != Dialect::Anthropic || unique.len() == all.len(), "ids repeat\n{document:#}");
        }
        unknown => panic!("{unknown:?}"),
    }
}

/// Returns whether a part is an approval part of Callgate, not of the provider.
fn is_approval(part: &&Part) -> bool {
    let hosted = part
        .source()
        .is_some_and(|(_, json)| json["type"].as_str().is_some_and(|kind| kind.starts_with("mcp_approval")));
    matches!(part.content(), PartContent::Request(_) | PartContent::Response(_)) && !hosted
}

#[test]
fn histories_round_trip_in_their_own_dialect() {
    for (dialect, name, document) in corpus() {
        let written = History::read(dialect, &document).unwrap().write(dialect);
        assert!(written == document, "{dialect}/{name}\n{written:#}");
        assert_eq!(written.to_string(), document.to_string(), "{dialect}/{name}: members or numbers changed");
    }
}

#[test]
fn histories_keep_their_content_in_every_other_dialect() {
    for (from, name, document) in corpus() {
        let history = History::read(from, &document).unwrap();
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            let written = history.write(to);
            let read = History::read(to, &written).unwrap();
            assert_eq!(contents(&read), contents(&history), "{from}/{name} in {to}\n{written:#}");
            if name != "strange" {
                assert_eq!(unknown(&read), unknown(&history), "{from}/{name} in {to}\n{written:#}");
                let back = History::read(from, &read.write(from)).unwrap();
                assert_eq!(
                    (contents(&back), unknown(&back)),
                    (contents(&history), unknown(&history)),
                    "{from}/{name} by {to}"
                );
            }
        }
    }
}

#[test]
fn translations_match_snapshots() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        for (from, name, document) in corpus() {
            let history = History::read(from, &document).unwrap();
            let mut shown = String::new();
            for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
                let written = json::to_string_pretty(&history.write(to)).unwrap();
                shown.push_str(&format!("{to}:\n{written}\n\n"));
            }
            insta::assert_snapshot!(format!("dialects__{from}__{name}"), shown);
        }
    });
}

#[test]
fn provider_history_has_exactly_one_result_per_call() {
    for (from, _, document) in corpus() {
        let history = History::read(from, &document).unwrap();
        for to in Dialect::ALL {
            assert_settled(&history.for_provider(to), to);
            if to != from {
                assert_in_order(to, &history.for_provider(to).write(to));
            }
        }
    }
}

#[test]
fn settled_history_is_sent_unchanged() {
    for (dialect, name, document) in corpus() {
        if ["parallel-calls", "built-in-tools", "server-tools", "images-and-refusals", "a-request"]
            .contains(&name.as_str())
        {
            let sent = History::read(dialect, &document).unwrap().for_provider(dialect).write(dialect);
            assert_eq!(sent.to_string(), document.to_string(), "{dialect}/{name}");
        }
    }
}

#[test]
fn rejects_documents_that_are_not_histories() {
    for (document, expected) in [
        (json!(5), "this is a number"),
        (json!("text"), "this is a string"),
        (json!({"model": "m"}), "this is an object without the array `messages`"),
        (json!({"messages": {}}), "this is an object without the array `messages`"),
    ] {
        let error = History::read(Dialect::OpenaiChat, &document).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut deep = json!([]);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let error = History::read(Dialect::Gemini, &deep).unwrap_err().to_string();
    assert!(error.contains("deeper than 128 levels"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn i5_generated_history_keeps_its_content_in_every_dialect(history in generated::history(), detour in 0..Dialect::ALL.len()) {
        for dialect in Dialect::ALL {
            let written = history.write(dialect);
            let read = History::read(dialect, &written).unwrap();
            prop_assert_eq!(contents(&read), contents(&history), "{}\n{:#}", dialect, written);
            prop_assert_eq!(unknown(&read), unknown(&history), "{}\n{:#}", dialect, written);
            prop_assert!(read.write(dialect) == written, "{}\n{:#}", dialect, written);
            let other = Dialect::ALL[detour];
            let twice = History::read(other, &read.write(other)).unwrap();
            prop_assert_eq!(contents(&twice), contents(&history), "{} then {}\n{:#}", dialect, other, written);
        }
    }

    #[test]
    fn i5_provider_history_settles_every_call_once(history in generated::history()) {
        for dialect in Dialect::ALL {
            assert_settled(&history.for_provider(dialect), dialect);
            assert_in_order(dialect, &history.for_provider(dialect).write(dialect));
            let read = History::read(dialect, &history.write(dialect)).unwrap();
            assert_settled(&read.for_provider(dialect), dialect);
        }
    }

    #[test]
    fn i5_appended_results_belong_to_their_calls(history in generated::history()) {
        let mut history = history;
        let open: Vec<(PartPosition, String)> =
            history.calls_without_result().iter().map(|call| (call.position, call.digest.to_string())).collect();
        let settled = |(place, digest): &(PartPosition, String)| CallResult {
            position: *place, output: ResultOutput::Text(digest.clone()), status: ResultStatus::Output,
        };
        let before = history.occurrences().len();
        if let Err(error) = history.append_results(open.iter().map(settled).collect()) {
            // Only if two calls share an id and no position distinguishes their results.
            prop_assert!(matches!(error, HistoryEditError::SharedId { .. }), "{}", error);
            return Ok(());
        }
        prop_assert!(history.calls_without_result().is_empty());
        prop_assert_eq!(history.occurrences().len(), before);
        let given: Vec<String> = open.into_iter().map(|(_, digest)| digest).collect();
        let calls = history.occurrences();
        let own = calls.iter().filter(|call| call.result.is_some_and(|result| given.contains(&result.output.text())));
        for call in own {
            prop_assert_eq!(call.result.unwrap().output.text(), call.digest.to_string());
        }
    }

    #[test]
    fn reading_never_panics_or_loses_content(document in generated::document(), dialect in 0..Dialect::ALL.len(), to in 0..Dialect::ALL.len()) {
        let (dialect, to) = (Dialect::ALL[dialect], Dialect::ALL[to]);
        if let Ok(history) = History::read(dialect, &document) {
            prop_assert!(history.write(dialect) == document, "{}\n{:#}\n{:#}", dialect, document, history.write(dialect));
            let _ = History::read(to, &history.write(to));
            assert_settled(&history.for_provider(to), to);
            history.find_approval_requests();
        }
    }
}

/// A call in each dialect whose arguments are `given`, or missing.
fn without_arguments(dialect: Dialect, given: Option<&Value>) -> Value {
    let with = |mut call: Value, member: &str| {
        if let Some(given) = given {
            call[member] = given.clone();
        }
        call
    };
    match dialect {
        Dialect::OpenaiChat => json!([{ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "function",
            "function": with(json!({ "name": "look" }), "arguments") }] }]),
        Dialect::OpenaiResponses => {
            json!([with(json!({ "type": "function_call", "call_id": "c1", "name": "look" }), "arguments")])
        }
        Dialect::Anthropic => json!([{ "role": "assistant",
            "content": [with(json!({ "type": "tool_use", "id": "c1", "name": "look" }), "input")] }]),
        Dialect::Gemini => {
            json!([{ "role": "model", "parts": [{ "functionCall": with(json!({ "id": "c1", "name": "look" }), "args") }] }])
        }
        Dialect::AiSdk => json!([{ "role": "assistant",
            "content": [with(json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "look" }), "input")] }]),
        unknown => panic!("{unknown:?}"),
    }
}

fn arguments_in(dialect: Dialect, given: Option<&Value>) -> Vec<Value> {
    let history = History::read(dialect, &without_arguments(dialect, given)).unwrap();
    history.occurrences().iter().map(|call| call.call.input.clone()).collect()
}

#[test]
fn missing_null_and_empty_arguments_become_an_empty_object() {
    for dialect in Dialect::ALL {
        for given in [None, Some(json!(null)), Some(json!("")), Some(json!({}))] {
            assert_eq!(arguments_in(dialect, given.as_ref()), [json!({})], "{dialect:?} {given:?}");
        }
        // Malformed arguments stay as they are.
        for given in [json!(" "), json!("{"), json!("\"\""), json!([]), json!(0), json!(false)] {
            let arguments = arguments_in(dialect, Some(&given));
            assert!(!arguments[0].is_object(), "{dialect:?} {given} {arguments:?}");
        }
    }
    // In dialects with arguments as JSON strings, `null` can be that string.
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses] {
        assert_eq!(arguments_in(dialect, Some(&json!("null"))), [json!({})]);
    }
    for given in [json!(null), json!("")] {
        assert!(
            matches!(Part::call("c1", "look", given).content(), PartContent::Call(call) if call.input == json!({}))
        );
    }
}
