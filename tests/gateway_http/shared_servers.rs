//! Servers to which all clients share one connection: nobody gets what belongs to others.

use std::fs;
use std::sync::{Arc, Mutex};

use callgate::Engine;
use callgate::json::{Value, json};
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, Transport};
use tempfile::TempDir;

use super::harness::{NO_RULES, Response, RunningGateway, initialize};
use crate::gateway::script;

/// A gateway in front of one shared process.
struct Shared {
    running: Arc<RunningGateway>,
    folder: TempDir,
}

impl Shared {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let arguments =
            [script("faulty.py"), folder.path().to_owned()].map(|path| path.display().to_string());
        let args = ["-S", "-E"].map(str::to_owned).into_iter().chain(arguments).chain(["shared".to_owned()]);
        let child =
            StdioSpec { command: "python3".to_owned(), args: args.collect(), env: Vec::new(), cwd: None };
        let server = ServerSpec::new("server", Transport::Child(child)).with_shared_connection();
        let gateway = Gateway::new(Engine::from_text(NO_RULES).unwrap(), [server]);
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let running = RunningGateway::from_gateway(gateway, log, |server| server).await;
        Self { running: Arc::new(running), folder }
    }

    /// The messages that the process has received.
    fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(|line| callgate::json::from_str(line).unwrap()).collect()
    }

    fn count(&self, is_so: impl Fn(&Value) -> bool) -> usize {
        self.log().iter().filter(|message| is_so(message)).count()
    }

    fn starts(&self) -> usize {
        self.count(|message| message.get("started").is_some())
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waited = tokio::time::timeout(super::harness::TIMEOUT, async {
            while !is_so(self) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("timed out waiting until {what}: {:#?}", self.log()));
    }

    async fn client(&self) -> Client {
        let session = self.running.initialize_session(&[]).await;
        Client { running: Arc::clone(&self.running), session }
    }
}

#[derive(Clone)]
struct Client {
    running: Arc<RunningGateway>,
    session: String,
}

impl Client {
    fn headers(&self) -> [(&str, &str); 2] {
        [("mcp-session-id", &self.session), ("mcp-protocol-version", "2025-11-25")]
    }

    async fn send(&self, message: Value) -> Response {
        self.running.post(&self.headers(), &message.to_string()).await
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        let response =
            self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        messages(&response)
            .into_iter()
            .find(|message| message["id"] == 1)
            .unwrap_or_else(|| panic!("{response:?}"))
    }

    /// All clients use the same id and the same progress token.
    async fn call(&self, tool: &str, arguments: Value) -> Vec<Value> {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "tok" } });
        messages(
            &self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await,
        )
    }

    /// Starts a call.
    fn start(&self, tool: &'static str, arguments: Value) -> tokio::task::JoinHandle<Vec<Value>> {
        let client = self.clone();
        tokio::spawn(async move { client.call(tool, arguments).await })
    }
}

fn messages(response: &Response) -> Vec<Value> {
    match response.header("content-type") {
        Some("text/event-stream") => response.events(),
        _ => vec![response.json()],
    }
}

fn text(messages: &[Value]) -> String {
    let response =
        messages.iter().find(|message| message["id"] == 1).unwrap_or_else(|| panic!("{messages:?}"));
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

fn is_call(message: &Value, tool: &str) -> bool {
    message["method"] == "tools/call" && message["params"]["name"] == tool
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_share_a_process_and_each_gets_its_own_responses_and_progress() {
    let shared = Shared::start().await;
    let (ann, bob) = (shared.client().await, shared.client().await);
    let slow = ann.start("slow", json!({ "seconds": 2 }));
    shared.until("the slow call runs", |shared| shared.count(|message| is_call(message, "slow")) == 1).await;
    assert_eq!(text(&bob.call("echo", json!({ "text": "bob" })).await), "done bob");
    let lines = |name: &str| {
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": "$ID", "progress": 1, "message": name } });
        let result = json!({ "jsonrpc": "2.0", "id": "$ID", "result": { "content": [{ "type": "text", "text": name }] } });
        json!({ "lines": format!("{progress}\n{result}\n").replace("\"$ID\"", "$ID") })
    };
    let (of_bob, of_cleo) = (bob.clone(), shared.client().await);
    for _ in 0..20 {
        let (one, other) = tokio::join!(of_bob.call("say", lines("bob")), of_cleo.call("say", lines("cleo")));
        for (messages, name) in [(one, "bob"), (other, "cleo")] {
            assert_eq!(text(&messages), name);
            let progress: Vec<&Value> =
                messages.iter().filter(|message| message["method"] == "notifications/progress").collect();
            assert!(progress.iter().all(|message| message["params"]["message"] == name), "{messages:?}");
            assert!(
                progress.iter().all(|message| message["params"]["progressToken"] == "tok"),
                "{messages:?}"
            );
            assert_eq!(progress.len(), 1, "{messages:?}");
        }
    }
    assert_eq!(text(&slow.await.unwrap()), "at last");
    let handshakes = shared.count(|message| message["method"] == "initialize");
    assert_eq!((shared.starts(), handshakes), (1, 1), "{:#?}", shared.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_cancels_only_its_own_requests_and_the_end_of_its_session_cancels_them() {
    let shared = Shared::start().await;
    let (ann, bob) = (shared.client().await, shared.client().await);
    let never = ann.start("never", json!({}));
    let slow = bob.start("slow", json!({ "seconds": 2 }));
    let running = |shared: &Shared| {
        shared.count(|message| is_call(message, "never")) + shared.count(|message| is_call(message, "slow"))
            == 2
    };
    shared.until("both calls run", running).await;
    let sent_as = |shared: &Shared, tool: &str| {
        let log = shared.log();
        log.iter().find(|message| is_call(message, tool)).map(|message| message["id"].clone())
    };
    let cancelled = |shared: &Shared| -> Vec<Value> {
        let log = shared.log();
        let all = log.iter().filter(|message| message["method"] == "notifications/cancelled");
        all.map(|message| message["params"]["requestId"].clone()).collect()
    };
    ann.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    shared.until("the call is cancelled", |shared| !cancelled(shared).is_empty()).await;
    assert_eq!(cancelled(&shared), [sent_as(&shared, "never").unwrap()]);
    assert_eq!(text(&slow.await.unwrap()), "at last");
    never.abort();

    let _pending = bob.start("brief", json!({ "seconds": 600 }));
    shared.until("the call runs", |shared| sent_as(shared, "brief").is_some()).await;
    let ended = shared.running.send_without_body("DELETE", &bob.headers()).await;
    assert!(ended.status < 300, "{ended:?}");
    shared
        .until("it is cancelled", |shared| cancelled(shared).contains(&sent_as(shared, "brief").unwrap()))
        .await;
    let cleo = shared.client().await;
    assert_eq!(text(&cleo.call("echo", json!({ "text": "cleo" })).await), "done cleo");
    assert_eq!(shared.starts(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_affect_or_reveal_other_clients_is_refused_or_dropped() {
    let shared = Shared::start().await;
    let (ann, bob) = (shared.client().await, shared.client().await);
    for (method, params) in [
        ("logging/setLevel", json!({ "level": "debug" })),
        ("resources/subscribe", json!({ "uri": "file:///a" })),
        ("resources/unsubscribe", json!({ "uri": "file:///a" })),
        ("tasks/list", json!({})),
        ("tasks/result", json!({ "taskId": "t" })),
        ("tools/call", json!({ "name": "echo", "arguments": {}, "task": {} })),
    ] {
        let response = ann.request(method, params).await;
        let shown = response.to_string();
        assert!(shown.contains("several clients share this server"), "{method}: {shown}");
    }
    // The server can't ask the client of a call, as it could mean another one.
    let asked = text(&ann.call("ask", json!({ "message": "Your password?" })).await);
    assert!(asked.contains("-32601") && asked.contains("none can be asked"), "{asked}");
    // Bob's stream gets that a list has changed, and not what the server logs for Ann.
    let stream = shared.running.request("GET", &bob.headers(), "");
    let mut stream = shared.running.send(&stream).await;
    stream.until("text/event-stream").await;
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "of Ann" } });
    let updated = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "file:///ann" } });
    let changed =
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": { "of": "Ann" } });
    let result = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"said"}]}}"#;
    let lines = format!("{log}\n{updated}\n{changed}\n{result}\n");
    assert_eq!(text(&ann.call("say", json!({ "lines": lines })).await), "said");
    let heard = stream.until("list_changed").await;
    assert!(!heard.to_lowercase().contains("ann"), "{heard}");
    let methods =
        ["logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "tasks/result"];
    assert_eq!(shared.count(|message| methods.iter().any(|method| message["method"] == *method)), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_process_dies_pending_calls_fail_and_every_client_goes_on_with_one_new_process() {
    let shared = Shared::start().await;
    let (ann, bob) = (shared.client().await, shared.client().await);
    let pending = bob.start("never", json!({}));
    shared.until("the call runs", |shared| shared.count(|message| is_call(message, "never")) == 1).await;
    assert!(text(&ann.call("die", json!({})).await).contains("may have taken effect"));
    assert!(text(&pending.await.unwrap()).contains("may have taken effect"));
    let (one, other) =
        tokio::join!(ann.call("echo", json!({ "text": "ann" })), bob.call("echo", json!({ "text": "bob" })));
    assert_eq!((text(&one), text(&other)), ("done ann".to_owned(), "done bob".to_owned()));
    assert_eq!((shared.starts(), shared.count(|message| is_call(message, "never"))), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_never_answers_the_handshake_is_given_up_for_all_who_wait_for_it() {
    let shared = Shared::start().await;
    let silent = shared.folder.path().join("silent");
    fs::write(&silent, "").unwrap();
    let initialize = initialize().to_string();
    let (one, other) =
        tokio::join!(shared.running.post(&[], &initialize), shared.running.post(&[], &initialize));
    for response in [one, other] {
        let error = response.json()["error"]["message"].to_string();
        assert!(error.contains("does not answer the handshake"), "{response:?}");
    }
    fs::remove_file(silent).unwrap();
    let ann = shared.client().await;
    assert_eq!(text(&ann.call("echo", json!({ "text": "ann" })).await), "done ann");
    assert_eq!(shared.starts(), 2, "one process each time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_without_a_handshake_share_a_process_of_their_own_protocol_version() {
    let shared = Shared::start().await;
    for name in ["one", "two"] {
        let response = shared.running.call(&[], "echo", json!({ "text": name })).await;
        assert!(response.body.contains(&format!("done {name}")), "{response:?}");
    }
    assert_eq!((shared.starts(), shared.count(|message| message["method"] == "initialize")), (1, 0));
    let ann = shared.client().await;
    assert_eq!(text(&ann.call("echo", json!({ "text": "ann" })).await), "done ann");
    assert_eq!((shared.starts(), shared.count(|message| message["method"] == "initialize")), (2, 1));
}
