//! Lossless forwarding: the server receives what the client sent, and the client what the server returned: every digit, in member order.

use std::sync::Arc;
use std::time::Duration;

use callgate::Engine;
use callgate::json::{Map, Value, parse};
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, Transport};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use tokio::io::AsyncReadExt;

use super::script;
use crate::json::generated;

const RULES: &str = "policies:
  - { id: no-large-amounts, match: { tool: echo, where: { path: $.input.amount, gt: 100 } }, deny: {} }";

const GREETING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

/// Calls the tool with each of these arguments. Returns the responses, in order. The server echoes the bytes of the arguments.
async fn call_echo(arguments: &[String]) -> Vec<Value> {
    let args = ["-S".to_owned(), "-E".to_owned(), script("echo.py").display().to_string()];
    let child = StdioSpec { command: "python3".to_owned(), args: args.into(), env: Vec::new(), cwd: None };
    let server = ServerSpec::new("server", Transport::Child(child));
    let gateway = Arc::new(Gateway::new(Engine::from_text(RULES).unwrap(), [server]));
    let mut said = GREETING.to_owned();
    for (number, arguments) in arguments.iter().enumerate() {
        said.push_str(&format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
        ));
        said.push('\n');
    }
    let (to, mut from) = tokio::io::duplex(1 << 20);
    let mut heard = String::new();
    let session = async {
        let (served, read) =
            tokio::join!(gateway.serve_stdio(said.as_bytes(), to), from.read_to_string(&mut heard));
        served.unwrap();
        read.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(120), session)
        .await
        .expect("timed out waiting for all responses");
    let mut answers: Vec<Value> = heard.lines().map(|line| parse(line).unwrap()).collect();
    answers.retain(|answer| answer["id"].is_number());
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), arguments.len(), "{heard}");
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_are_forwarded_losslessly() {
    let mut runner = TestRunner::default();
    let mut drawn = |_| {
        let tree = (generated::object(), proptest::collection::vec(proptest::num::u8::ANY, 1..40));
        tree.new_tree(&mut runner).unwrap().current()
    };
    let drawn: Vec<(Map, Vec<u8>)> = (0..300).map(&mut drawn).collect();
    // A message must be one line.
    let text = |(members, choices): &(Map, Vec<u8>)| {
        generated::spelled(&Value::Object(members.clone()), choices)
            .replace(['\n', '\r'], " ")
            .trim()
            .to_owned()
    };
    let answers = call_echo(&drawn.iter().map(text).collect::<Vec<_>>()).await;
    for ((members, _), answer) in drawn.iter().zip(answers) {
        assert_eq!(answer["result"]["structuredContent"].to_string(), members.to_string(), "{answer}");
    }
}

/// No key in the arguments is taken for a private key of the JSON parser, at any depth and with any escapes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_parser_keys_in_arguments_hide_nothing() {
    let mut arguments = Vec::new();
    for token in generated::TOKENS {
        let escaped = token.replace('$', r"\u0024");
        for key in [token, &escaped] {
            arguments.push(format!(r#"{{"note":{{"{key}":"5"}},"amount":99999,"z":1e0}}"#));
            arguments.push(format!(r#"{{"note":[{{"x":{{"{key}":"5"}}}}],"amount":1e5}}"#));
            arguments.push(format!(r#"{{"{key}":"5","amount":101}}"#));
            arguments.push(format!(r#"{{"note":{{"{key}":"[1]"}},"amount":100.00000000000000000001}}"#));
        }
    }
    for (answer, arguments) in call_echo(&arguments).await.iter().zip(&arguments) {
        assert_eq!(answer["result"]["isError"], true, "{arguments}: {answer}");
    }
    // As the amount it is not a number: the comparison is undecided, so the `deny` applies.
    let posing = ["{\"amount\":{\"$serde_json::private::Number\":\"5\"}}".to_owned()];
    assert_eq!(call_echo(&posing).await[0]["result"]["isError"], true);
    let harmless: Vec<String> = generated::TOKENS
        .iter()
        .map(|token| format!(r#"{{"note":{{"{token}":"5"}},"amount":100.0,"z":1e0}}"#))
        .collect();
    for (answer, arguments) in call_echo(&harmless).await.iter().zip(&harmless) {
        assert_eq!(answer["result"]["structuredContent"].to_string(), *arguments);
    }
}
