//! Generators of histories and of almost valid documents.

use callgate::json::{Value, json};
use callgate::message::{
    Dialect, History, Message, Part, RequestPart, ResponsePart, ResultOutput, ResultPart, ResultStatus, Role,
};
use proptest::prelude::*;

/// Few ids, so that duplicates occur.
fn id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["c1", "c2", "call/3", "toolu_4"]).prop_map(str::to_owned)
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["refund", "lookup", "send"]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("{\"a\":1}".to_owned()), "[a-z \u{e9}\"\\\\\n]{1,12}"]
}

fn input() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (text(), any::<i64>()).prop_map(|(text, number)| json!({"to": text, "n": number})),
        1 => Just(json!({})),
        1 => Just(json!({"deep": [{"er": [null, true, 1.50]}]})),
        1 => text().prop_map(Value::from),
        1 => Just(json!([1, 2])),
        1 => Just(Value::Null),
    ]
}

fn silent() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::other(
            Dialect::OpenaiChat,
            json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}})
        )),
        Just(Part::other(
            Dialect::OpenaiResponses,
            json!({"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"})
        )),
        Just(Part::other(Dialect::Gemini, json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}))),
    ]
}

fn output() -> impl Strategy<Value = ResultOutput> {
    prop_oneof![
        4 => text().prop_map(ResultOutput::Text),
        2 => input().prop_map(ResultOutput::from_value),
        1 => prop::collection::vec(prop_oneof![text().prop_map(Part::text), silent()], 0..3).prop_map(ResultOutput::Parts),
    ]
}

fn settled() -> impl Strategy<Value = ResultStatus> {
    prop_oneof![Just(ResultStatus::Output), Just(ResultStatus::Error), Just(ResultStatus::Denied)]
}

fn result() -> impl Strategy<Value = Part> {
    (id(), name(), output(), settled()).prop_map(|(call_id, name, output, settled)| {
        Part::result(ResultPart { call_id, name, output, status: settled })
    })
}

fn call() -> impl Strategy<Value = Part> {
    (id(), name(), input()).prop_map(|(id, name, input)| Part::call(id, name, input))
}

fn request() -> impl Strategy<Value = Part> {
    (id(), id(), prop::option::of(input())).prop_map(|(approval, call, input)| {
        let policies = vec!["p".to_owned()];
        RequestPart {
            approval_id: format!("approval_{approval}"),
            tool_call_id: call,
            input,
            policies,
            ..Default::default()
        }
        .into()
    })
}

fn response() -> impl Strategy<Value = Part> {
    (id(), any::<bool>(), prop::option::of(text()), prop::option::of(input())).prop_map(
        |(approval, approved, reason, output)| {
            ResponsePart {
                approval_id: format!("approval_{approval}"),
                approved,
                reason,
                output,
                ..Default::default()
            }
            .into()
        },
    )
}

fn spoken() -> impl Strategy<Value = Part> {
    prop_oneof![2 => text().prop_map(Part::text), 4 => call(), 1 => request()]
}

fn message() -> impl Strategy<Value = Message> {
    let parts = |part: BoxedStrategy<Part>| prop::collection::vec(part, 0..4);
    prop_oneof![
        2 => parts(prop_oneof![4 => text().prop_map(Part::text), 1 => silent()].boxed()).prop_map(|parts| Message::new(Role::User, parts)),
        1 => parts(text().prop_map(Part::text).boxed()).prop_map(|parts| Message::new(Role::System, parts)),
        4 => parts(spoken().boxed()).prop_map(|parts| Message::new(Role::Assistant, parts)),
        3 => parts(prop_oneof![4 => result(), 1 => response()].boxed()).prop_map(|parts| Message::new(Role::Tool, parts)),
    ]
}

/// A disordered history: ids repeat; results are missing, duplicate, or match no call.
pub fn history() -> impl Strategy<Value = History> {
    prop::collection::vec(message(), 0..9).prop_map(History::new)
}

const KEYS: [&str; 34] = [
    "role",
    "content",
    "parts",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "call_id",
    "tool_call_id",
    "type",
    "text",
    "input",
    "output",
    "tool_use_id",
    "functionCall",
    "functionResponse",
    "response",
    "args",
    "toolCallId",
    "toolName",
    "messages",
    "contents",
    "system",
    "instructions",
    "systemInstruction",
    "approvalId",
    "approved",
    "part",
    "dialect",
    "slot",
    "refusal",
    "function_call",
    "value",
];

const WORDS: [&str; 28] = [
    "user",
    "assistant",
    "model",
    "tool",
    "system",
    "function",
    "text",
    "tool_use",
    "tool_result",
    "tool-call",
    "tool-result",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "message",
    "tool-approval-request",
    "tool-approval-response",
    "callgate-part",
    "gemini",
    "openai-chat",
    "anthropic",
    "c1",
    "",
    "{\"a\":1}",
    "{",
    "json",
    "mcp_approval_request",
    "mcp_approval_response",
];

/// Values built from strings that the dialects use.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => prop::sample::select(WORDS.to_vec()).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::vec((prop::sample::select(KEYS.to_vec()), inner), 0..5).prop_map(|members| {
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<callgate::json::Map>().into()
            }),
        ]
    })
}

/// A history of the corpus with some values replaced, or a list of values built from the dialects' strings.
pub fn document() -> impl Strategy<Value = Value> {
    let corpus: Vec<Value> = super::corpus().into_iter().map(|(_, _, document)| document).collect();
    let mutated = (prop::sample::select(corpus), prop::collection::vec((any::<usize>(), value()), 1..4))
        .prop_map(|(mut document, changes)| {
            for (at, new) in changes {
                let count = nodes(&document);
                replace(&mut document, &mut (at % count), &new);
            }
            document
        });
    prop_oneof![mutated, prop::collection::vec(value(), 0..5).prop_map(Value::from)]
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(map) => map.values().map(nodes).sum(),
        _ => 0,
    }
}

/// Replaces the node with number `at` by `new`; `at` counts down to it.
fn replace(value: &mut Value, at: &mut usize, new: &Value) -> bool {
    if *at == 0 {
        *value = new.clone();
        return true;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, at, new)),
        Value::Object(map) => map.values_mut().any(|item| replace(item, at, new)),
        _ => false,
    }
}
