//! A model that follows a script, behind the APIs that agents call: its n-th answer is the n-th call, and a text after the last one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use callgate::json::{self, Value, json};

/// A call of the script: the agent's tool and its input.
pub(super) type ScriptedCall = (&'static str, Value);

/// A model server on this machine, which lives as long as the test process.
pub(super) struct ModelServer {
    pub(super) port: u16,
    results: Arc<Mutex<Vec<String>>>,
}

impl ModelServer {
    pub(super) fn start(script: Vec<ScriptedCall>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let results = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&results);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, seen) = (script.clone(), Arc::clone(&seen));
                std::thread::spawn(move || answer(stream.unwrap(), &script, &seen));
            }
        });
        Self { port, results }
    }

    /// What the agent reported to the model of each call.
    pub(super) fn results(&self) -> Vec<String> {
        self.results.lock().unwrap().clone()
    }
}

/// Reads one request, and writes its answer. `None` if the connection ends before.
fn answer(stream: TcpStream, script: &[ScriptedCall], seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let path = line.split(' ').nth(1)?.split('?').next()?.to_owned();
    let body = read_body(&mut reader)?;
    let request = json::parse(&String::from_utf8(body).ok()?).unwrap_or_default();
    let (results, events) = match path.rsplit(['/', ':']).next()? {
        "responses" => openai_responses(&request, script),
        "completions" => openai_chat(&request, script),
        "streamGenerateContent" => gemini(&request, script),
        _ => return respond(reader.into_inner(), "application/json", "{}"),
    };
    *seen.lock().unwrap() = results;
    let text: String = events
        .iter()
        .map(|event| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    respond(reader.into_inner(), "text/event-stream", &text)
}

fn read_body(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    let mut body = Vec::new();
    if let Some(length) = length {
        reader.take(length).read_to_end(&mut body).ok()?;
        return Some(body);
    }
    // In chunks, or without a body.
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
        if size == 0 {
            return Some(body);
        }
        reader.take(size).read_to_end(&mut body).ok()?;
        reader.read_line(&mut String::new()).ok()?;
    }
}

fn respond(mut stream: TcpStream, kind: &str, text: &str) -> Option<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).ok()
}

/// A result as text.
fn text_of(result: &Value) -> String {
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn openai_responses(request: &Value, script: &[ScriptedCall]) -> (Vec<String>, Vec<Value>) {
    let outputs = items(&request["input"]).filter(|item| item["type"] == json!("function_call_output"));
    let results: Vec<String> = outputs.map(|item| text_of(&item["output"])).collect();
    let number = results.len();
    let item = match script.get(number) {
        Some((tool, input)) => json!({
            "type": "function_call", "id": format!("item-{number}"), "call_id": format!("call-{number}"), "name": tool,
            "arguments": input.to_string(),
        }),
        None => json!({
            "type": "message", "id": "end", "role": "assistant", "content": [{ "type": "output_text", "text": "Done." }],
        }),
    };
    let id = format!("response-{number}");
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    let events = vec![
        json!({ "type": "response.created", "response": { "id": id } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": id, "usage": usage } }),
    ];
    (results, events)
}

fn openai_chat(request: &Value, script: &[ScriptedCall]) -> (Vec<String>, Vec<Value>) {
    let tools = items(&request["messages"]).filter(|message| message["role"] == json!("tool"));
    let results: Vec<String> = tools.map(|message| text_of(&message["content"])).collect();
    let number = results.len();
    let (delta, reason) = match script.get(number) {
        Some((tool, input)) => {
            let function = json!({ "name": tool, "arguments": input.to_string() });
            let call = json!({
                "index": 0, "id": format!("call-{number}"), "type": "function", "function": function,
            });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
        None => (json!({ "role": "assistant", "content": "Done." }), "stop"),
    };
    let chunk = |delta: Value, reason: Value| {
        json!({
            "id": "chat", "object": "chat.completion.chunk", "created": 1, "model": "local",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        })
    };
    (results, vec![chunk(delta, Value::Null), chunk(json!({}), json!(reason))])
}

fn gemini(request: &Value, script: &[ScriptedCall]) -> (Vec<String>, Vec<Value>) {
    let parts = items(&request["contents"]).flat_map(|content| items(&content["parts"]));
    let responses = parts.filter_map(|part| part.get("functionResponse"));
    let results: Vec<String> = responses.map(|response| text_of(&response["response"])).collect();
    let part = match script.get(results.len()) {
        Some((tool, input)) => json!({ "functionCall": { "name": tool, "args": input } }),
        None => json!({ "text": "Done." }),
    };
    let candidate =
        json!({ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 });
    (results, vec![json!({ "candidates": [candidate] })])
}
