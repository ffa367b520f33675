//! One server of several that is silent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::Engine;
use callgate::json::{Value, json};
use callgate::mcp::{ChildSpec, Gateway, Reach, ServerSpec};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, ReadHalf, WriteHalf, split};

use super::behind::{self, Folder, answers};
use super::{OPEN, said};

/// A client in this process, whose time can be made to stand still.
struct Client {
    to: WriteHalf<tokio::io::DuplexStream>,
    from: Lines<BufReader<ReadHalf<tokio::io::DuplexStream>>>,
    heard: Vec<Value>,
    /// How long the last answer was waited for.
    waited: Duration,
}

impl Client {
    async fn send(&mut self, message: Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    async fn hear(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let heard = async {
            loop {
                let line = self.from.next_line().await.unwrap().expect("the gateway still talks");
                let message: Value = callgate::json::from_str(&line).unwrap();
                self.heard.push(message.clone());
                if is_so(&message) {
                    return message;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(50), heard).await.expect("it is heard")
    }

    async fn answer(&mut self, id: u64) -> Value {
        self.hear(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The answer that comes although one server is silent, after what the other one has said.
    async fn answer_without_the_silent(&mut self, id: u64, method: &str) -> Value {
        let told = format!("after {method}");
        self.hear(|message| message["params"]["data"] == told.as_str()).await;
        // From here on nobody but the silent server is waited for, so time need not pass.
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let answer = self.answer(id).await;
        self.waited = begun.elapsed();
        tokio::time::resume();
        answer
    }
}

fn server(name: &str, folder: &Folder) -> ServerSpec {
    let mut words = folder.server().into_iter();
    let child =
        ChildSpec { command: words.next().unwrap(), args: words.collect(), env: Vec::new(), cwd: None };
    let prefix = Some(format!("{name}_"));
    ServerSpec { name: name.to_owned(), prefix, reach: Reach::Child(child), rules: None }
}

fn has_tools_of(list: &Value, prefix: &str) -> bool {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().any(|tool| tool["name"].as_str().unwrap().starts_with(prefix))
}

#[tokio::test]
async fn a_silent_server_is_left_out_until_it_talks() {
    let (silent, other) = (Folder::new(), Folder::new());
    silent.write("silent", "");
    other.write("tells", "");
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let servers = [server("silent", &silent), server("other", &other)];
    let gateway = Gateway::new(Engine::from_text(OPEN).unwrap(), servers)
        .logging(move |message| tell.lock().unwrap().push(message.to_owned()));
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = split(theirs);
    let served = tokio::spawn(Arc::new(gateway).serve_lines(from, to));
    let (from, to) = split(ours);
    let mut client =
        Client { to, from: BufReader::new(from).lines(), heard: Vec::new(), waited: Duration::ZERO };

    let about = json!({ "name": "test", "version": "1" });
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
    client.ask(1, "initialize", greeting).await;
    let answer = client.answer_without_the_silent(1, "initialize").await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "callgate", "{answer}");
    let log = told.lock().unwrap().join("\n");
    assert!(log.contains("the server `silent`: it is left out: it does not answer"), "{log}");
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client.ask(2, "tools/list", json!({})).await;
    let list = client.answer_without_the_silent(2, "tools/list").await;
    assert!(has_tools_of(&list, "other_") && !has_tools_of(&list, "silent_"), "{list}");
    assert!(client.waited < Duration::from_secs(5), "it is known to be silent: {:?}", client.waited);

    // A greeting is not to be cancelled; a list is.
    behind::until("the server hears that it took too long", || {
        silent.log().iter().any(|message| message["method"] == "notifications/cancelled")
    });
    let cancelled = silent.got("notifications/cancelled", 1);
    assert_eq!((cancelled.len(), &cancelled[0]["params"]["requestId"]), (1, &json!(2)), "{cancelled:?}");

    // Now it answers all that it was asked, and takes part.
    std::fs::remove_file(silent.path("silent")).unwrap();
    client.ask(3, "tools/list", json!({})).await;
    let list = client.answer(3).await;
    assert!(has_tools_of(&list, "other_") && has_tools_of(&list, "silent_"), "{list}");
    client.ask(4, "tools/call", json!({ "name": "silent_echo", "arguments": { "text": "at last" } })).await;
    assert_eq!(said(&client.answer(4).await), "done at last");
    for id in 1..=4 {
        assert_eq!(answers(&client.heard, &id.into()), 1, "{:#?}", client.heard);
    }
    client.to.shutdown().await.unwrap();
    served.await.unwrap().unwrap();
    silent.nobody_stays();
    other.nobody_stays();
}
