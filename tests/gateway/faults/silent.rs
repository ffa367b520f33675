//! One unresponsive server among several.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::Engine;
use callgate::json::{Value, json};
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, Transport};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, ReadHalf, WriteHalf, split};

use super::harness::{self, Folder, response_count};
use super::{OPEN, result_text};

/// A client in this process, so that a test can pause its time.
struct Client {
    to: WriteHalf<tokio::io::DuplexStream>,
    from: Lines<BufReader<ReadHalf<tokio::io::DuplexStream>>>,
    received: Vec<Value>,
    /// The waiting time for the last response.
    waited: Duration,
}

impl Client {
    async fn send(&mut self, message: Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    async fn wait_for_message(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let heard = async {
            loop {
                let line = self.from.next_line().await.unwrap().expect("the gateway closed the connection");
                let message: Value = callgate::json::from_str(&line).unwrap();
                self.received.push(message.clone());
                if is_so(&message) {
                    return message;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(50), heard).await.expect("timed out waiting for a message")
    }

    async fn response(&mut self, id: u64) -> Value {
        self.wait_for_message(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The response despite the silent server, once the other server has answered.
    async fn response_without_the_silent(&mut self, id: u64, method: &str) -> Value {
        let told = format!("after {method}");
        self.wait_for_message(|message| message["params"]["data"] == told.as_str()).await;
        // From here on only the silent server is waited for, so skip the time.
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let answer = self.response(id).await;
        self.waited = begun.elapsed();
        tokio::time::resume();
        answer
    }
}

fn server(name: &str, folder: &Folder) -> ServerSpec {
    let mut words = folder.server().into_iter();
    let child =
        StdioSpec { command: words.next().unwrap(), args: words.collect(), env: Vec::new(), cwd: None };
    ServerSpec::new(name, Transport::Child(child)).with_prefix(format!("{name}_"))
}

fn has_tools_of(list: &Value, prefix: &str) -> bool {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().any(|tool| tool["name"].as_str().unwrap().starts_with(prefix))
}

#[tokio::test]
async fn silent_server_is_omitted_until_it_responds() {
    let (silent, other) = (Folder::new(), Folder::new());
    silent.write("silent", "");
    other.write("tells", "");
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let servers = [server("silent", &silent), server("other", &other)];
    let gateway = Gateway::new(Engine::from_text(OPEN).unwrap(), servers)
        .with_log(move |message| tell.lock().unwrap().push(message.to_owned()));
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = split(theirs);
    let served = tokio::spawn(Arc::new(gateway).serve_stdio(from, to));
    let (from, to) = split(ours);
    let mut client =
        Client { to, from: BufReader::new(from).lines(), received: Vec::new(), waited: Duration::ZERO };

    let about = json!({ "name": "test", "version": "1" });
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
    client.request(1, "initialize", greeting).await;
    let answer = client.response_without_the_silent(1, "initialize").await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "callgate", "{answer}");
    let log = told.lock().unwrap().join("\n");
    assert!(
        log.contains("the server `silent`: omitted from a merged response: it does not respond"),
        "{log}"
    );
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client.request(2, "tools/list", json!({})).await;
    let list = client.response_without_the_silent(2, "tools/list").await;
    assert!(has_tools_of(&list, "other_") && !has_tools_of(&list, "silent_"), "{list}");
    assert!(
        client.waited < Duration::from_secs(5),
        "a server known to be silent delays the response only briefly: {:?}",
        client.waited
    );

    // `initialize` must not be cancelled; `tools/list` is.
    harness::wait_until("the server receives the cancellation", || {
        silent.log().iter().any(|message| message["method"] == "notifications/cancelled")
    });
    let cancelled = silent.wait_for_received("notifications/cancelled", 1);
    assert_eq!((cancelled.len(), &cancelled[0]["params"]["requestId"]), (1, &json!(2)), "{cancelled:?}");

    // Now the server answers its queued requests, and takes part.
    std::fs::remove_file(silent.path("silent")).unwrap();
    client.request(3, "tools/list", json!({})).await;
    let list = client.response(3).await;
    assert!(has_tools_of(&list, "other_") && has_tools_of(&list, "silent_"), "{list}");
    client
        .request(4, "tools/call", json!({ "name": "silent_echo", "arguments": { "text": "at last" } }))
        .await;
    assert_eq!(result_text(&client.response(4).await), "done at last");
    for id in 1..=4 {
        assert_eq!(response_count(&client.received, &id.into()), 1, "{:#?}", client.received);
    }
    client.to.shutdown().await.unwrap();
    served.await.unwrap().unwrap();
    silent.assert_server_ended();
    other.assert_server_ended();
}
