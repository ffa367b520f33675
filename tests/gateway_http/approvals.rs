//! Approvals through the gateway: found again on every transport by who asked, used once, and nothing in an agent's hands that
//! approves.

use std::sync::{Arc, Mutex};

use callgate::approval::{Inbox, Item};
use callgate::host::{StateStore, SystemClock};
use callgate::json::{Value, json};
use callgate::mcp::{Gateway, HttpSpec, Reach, ServerSpec};
use callgate::message::{Approver, approval_response};
use callgate::seal::Keys;
use callgate::state::{FileStore, MemoryStore};
use callgate::{Engine, engine};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::identity::{Desk, digest};
use super::scene::{MODERN, Served, Upstream, initialize, modern};
use crate::approvals::scene::KEY;

const ASK: &str = "policies: [ { id: ask, match: echo, approval: { message: 'May it?' } } ]";
/// Only a principal's call can be approved: without one the approver may be the requester.
const ASK_LEA: &str =
    "policies: [ { id: ask, match: echo, approval: { message: 'May it?', approvers: [lea] } } ]";
const STATE: &str = "file:/var/lib/secret-place/state.db";

/// What gateways share, and the log of all of them.
struct Shared {
    upstream: Upstream,
    store: Arc<dyn StateStore>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Shared {
    async fn new() -> Self {
        Self {
            upstream: Upstream::plain().await,
            store: Arc::new(MemoryStore::default()),
            log: Arc::default(),
        }
    }

    /// A gateway that was started just now.
    fn gateway(&self, rules: &str) -> Gateway {
        let rules = engine::load_text(rules).unwrap();
        let engine =
            Engine::builder(rules).store(Arc::clone(&self.store)).keys(Keys::parse(KEY).unwrap()).build();
        let reach = Reach::Http(HttpSpec { url: self.upstream.url.clone(), headers: Vec::new() });
        let server = ServerSpec { name: "server".to_owned(), prefix: None, reach, rules: None };
        let log = Arc::clone(&self.log);
        Gateway::new(engine, [server])
            .answered_in(STATE)
            .logging(move |line| log.lock().unwrap().push(line.to_owned()))
    }

    async fn served(&self, door: impl FnOnce(callgate::mcp::HttpDoor) -> callgate::mcp::HttpDoor) -> Served {
        Served::of(self.gateway(ASK), Arc::default(), door).await
    }

    fn executions(&self) -> usize {
        self.upstream.asked("tools/call").len()
    }

    async fn pending(&self) -> Vec<Item> {
        let inbox = Inbox::new(Arc::clone(&self.store), Keys::parse(KEY).unwrap(), SystemClock);
        inbox.list().await.unwrap().into_iter().filter(Item::waits).collect()
    }

    /// Answers all that is pending; how much that was.
    async fn answer(&self, approved: bool) -> usize {
        let inbox = Inbox::new(Arc::clone(&self.store), Keys::parse(KEY).unwrap(), SystemClock);
        let pending = self.pending().await;
        for item in &pending {
            let by = Some(Approver::new("lea"));
            inbox.answer(&item.name, approval_response("", approved), by).await.unwrap();
        }
        pending.len()
    }
}

/// Makes one call over lines, on a connection of its own; the answer.
async fn over_lines(gateway: Gateway, capabilities: Value) -> Value {
    let (client, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(theirs);
    let served = tokio::spawn(Arc::new(gateway).serve_lines(from, to));
    let (heard, mut say) = tokio::io::split(client);
    let mut heard = BufReader::new(heard).lines();
    let mut greeting = initialize();
    greeting["params"]["capabilities"] = capabilities;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": { "n": 1 } } });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for message in [greeting, initialized, call] {
        say.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let answer = loop {
        let line = heard.next_line().await.unwrap().expect("no answer");
        let message: Value = callgate::json::parse(&line).unwrap();
        if message["id"] == 1 || message["method"] == "elicitation/create" {
            break message;
        }
    };
    drop((say, heard));
    served.await.unwrap().unwrap();
    answer
}

fn code(answer: &Value) -> Value {
    answer["result"]["_meta"]["dev.callgate/outcome"]["code"].clone()
}

const PENDING: &str = "approval_required";

fn people() -> Desk {
    let token = |who: &str, more: &str| {
        format!("- {{ sha256: {}, principal: {who}{more} }}\n", digest(&format!("of-{who}{more}")))
    };
    let file = ["ana", "bob"].map(|who| token(who, "")).concat() + &token("ana", ", tenant: acme");
    Desk::new(&[("auth.yaml", &format!("tokens:\n{file}"))])
}

fn bearer(who: &str) -> String {
    format!("Bearer of-{who}")
}

#[tokio::test]
async fn an_approval_is_found_on_every_transport_by_its_principal_and_by_nobody_else() {
    let shared = Shared::new().await;
    let people = people();
    let ana_over_lines = || shared.gateway(ASK).with_context(json!({ "principal": "ana" }));
    assert_eq!(code(&over_lines(ana_over_lines(), json!({})).await), PENDING);
    assert_eq!(shared.answer(true).await, 1);
    let served = shared.served(|door| door.with_identity(people.identity())).await;
    let call = async |who: &str| {
        let authorization = bearer(who);
        served.call(&[("authorization", &authorization)], "echo", json!({ "n": 1 })).await.code()
    };
    for other in ["bob", "ana, tenant: acme"] {
        assert_eq!(call(other).await, PENDING, "{other}");
    }
    for context in [
        Value::Null,
        json!({ "principal": "bob" }),
        json!({ "principal": ["ana"] }),
        json!({ "user": "ana" }),
    ] {
        let gateway = shared.gateway(ASK).with_context(context.clone());
        assert_eq!(code(&over_lines(gateway, json!({})).await), PENDING, "{context}");
        let gateway = shared.gateway(ASK).with_context(context.clone()).in_session("ana");
        assert_eq!(code(&over_lines(gateway, json!({})).await), PENDING, "{context} in a session");
    }
    assert_eq!(shared.executions(), 0);
    assert_eq!(call("ana").await, json!(null), "the principal's own, over HTTP");
    assert_eq!(shared.executions(), 1);
    assert_eq!(call("ana").await, PENDING, "it is used up");
    // And the other way round, in a session that shakes hands.
    shared.answer(true).await;
    let authorization = bearer("bob");
    let session = served.begin(&[("authorization", &authorization)]).await;
    let headers = [
        ("authorization", authorization.as_str()),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": { "n": 1 } } });
    assert_eq!(served.post(&headers, &call.to_string()).await.code(), json!(null));
    assert_eq!(code(&over_lines(ana_over_lines(), json!({})).await), json!(null));
    assert_eq!(shared.executions(), 3);
}

#[tokio::test]
async fn without_a_principal_it_is_found_by_the_session_and_the_context() {
    let shared = Shared::new().await;
    let gateways = || {
        let plain = || shared.gateway(ASK);
        vec![
            plain(),
            plain().in_session("one"),
            plain().in_session("other"),
            plain().with_context(json!({ "tenant": "a" })),
            plain().with_context(json!({ "tenant": "b" })),
        ]
    };
    for (number, gateway) in gateways().into_iter().enumerate() {
        assert_eq!(code(&over_lines(gateway, json!({})).await), PENDING);
        assert_eq!(shared.pending().await.len(), number + 1, "one question each");
    }
    let served = shared.served(|door| door.with_session_from("header:x-conversation".parse().unwrap())).await;
    let call =
        async |name: &str| served.call(&[("x-conversation", name)], "echo", json!({ "n": 1 })).await.code();
    for name in ["one", "other"] {
        assert_eq!(call(name).await, PENDING);
    }
    assert_eq!(shared.answer(true).await, 7);
    for (number, gateway) in gateways().into_iter().enumerate() {
        assert_eq!(
            code(&over_lines(gateway, json!({})).await),
            json!(null),
            "{number} goes on in a gateway that was started again"
        );
        assert_eq!(shared.executions(), number + 1);
    }
    assert_eq!(call("one").await, json!(null));
    assert_eq!(call("third").await, PENDING);
    assert_eq!(shared.executions(), 6);
}

#[tokio::test]
async fn a_denial_is_reported_and_the_operator_learns_how_to_answer() {
    let shared = Shared::new().await;
    over_lines(shared.gateway(ASK), json!({})).await;
    over_lines(shared.gateway(ASK), json!({})).await;
    let id = shared.pending().await[0].request.approval_id.clone();
    let told = shared.log.lock().unwrap().clone();
    let of_it: Vec<&String> = told.iter().filter(|line| line.contains(&id)).collect();
    assert_eq!(of_it.len(), 1, "once: {told:?}");
    for part in
        ["`echo` on `server`", "callgate approvals approve", "--as NAME", STATE, "callgate approvals list"]
    {
        assert!(of_it[0].contains(part), "{}", of_it[0]);
    }
    shared.answer(false).await;
    assert_eq!(code(&over_lines(shared.gateway(ASK), json!({})).await), "approval_denied");
    assert_eq!(code(&over_lines(shared.gateway(ASK), json!({})).await), PENDING, "asked anew");
    assert_eq!(shared.executions(), 0);
}

/// What an agent with a shell could use: commands, files, ids, tokens.
fn scan(of: &str, text: &str) {
    // Reason codes are for everybody.
    let codes = ["approval_denied", "approval_expired", "approval_required"];
    let lower = codes.iter().fold(text.to_lowercase(), |text, code| text.replace(code, ""));
    let id = regex::Regex::new("approval_[0-9a-f]{8}").unwrap();
    assert!(!id.is_match(&lower), "{of} has an id: {text}");
    for part in [
        "callgate approvals",
        "callgate pins",
        "callgate run",
        "--state",
        "--as",
        "file:",
        "secret-place",
        "state.db",
        ".key",
        "/tmp",
        "/var",
    ] {
        assert!(!lower.contains(part), "{of} has `{part}`: {text}");
    }
}

/// All texts of an answer that clients show to models or people. `_meta` and `requestState` are for programs.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => {
            let shown = members.iter().filter(|(name, _)| !matches!(name.as_str(), "_meta" | "requestState"));
            shown.flat_map(|(_, value)| texts(value)).collect()
        }
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn no_text_for_the_agent_says_how_to_approve() {
    let place = tempfile::tempdir().unwrap();
    let shared = Shared::new().await;
    let lea = |rules: &str| shared.gateway(rules).with_context(json!({ "principal": "agent" }));
    let mut seen: Vec<(&str, Value)> = Vec::new();
    let named = over_lines(lea(ASK_LEA), json!({})).await;
    assert!(
        named["result"]["content"][0]["text"].as_str().unwrap().contains("Approval needed from lea."),
        "{named}"
    );
    seen.push(("pending", named));
    seen.push(("pending again", over_lines(lea(ASK_LEA), json!({})).await));
    shared.answer(false).await;
    seen.push(("denied", over_lines(lea(ASK_LEA), json!({})).await));
    seen.push(("a form", over_lines(shared.gateway(ASK), json!({ "elicitation": {} })).await));
    let expiring = ASK_LEA.replace("approvers", "expires: 1ms, approvers");
    over_lines(lea(&expiring), json!({})).await;
    seen.push(("expired", over_lines(lea(&expiring), json!({})).await));
    let quorum = ASK_LEA.replace("approvers: [lea]", "approvers: [lea, kim], quorum: 2");
    let both = over_lines(lea(&quorum), json!({})).await;
    assert!(both["result"]["content"][0]["text"].as_str().unwrap().contains("2 of lea or kim"), "{both}");
    seen.push(("a quorum", both));

    // Results that ask for input.
    let served = Served::of(shared.gateway(ASK), Arc::default(), |door| door).await;
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let mut request = modern(1, "tools/call", json!({ "name": "echo", "arguments": {} }));
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    let asked = served.post(&headers, &request.to_string()).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    request["params"]["requestState"] = asked["result"]["requestState"].clone();
    request["params"]["inputResponses"] = json!({ "dev.callgate/approval": { "action": "cancel" } });
    seen.push(("a result that asks", asked));
    seen.push(("dismissed", served.post(&headers, &request.to_string()).await.json()));

    // A store that fails, and tools that nobody has reviewed.
    let file = place.path().join("state.db");
    let broken = Shared { store: Arc::new(FileStore::open(&file).unwrap()), ..Shared::new().await };
    seen.push(("with a file", over_lines(broken.gateway(ASK), json!({})).await));
    std::fs::remove_file(&file).unwrap();
    let unavailable = over_lines(broken.gateway(ASK), json!({})).await;
    assert_eq!(code(&unavailable), "store_unavailable", "{unavailable}");
    seen.push(("a store that is gone", unavailable));
    let pinned = shared.gateway(ASK).pinned_by(place.path().join("callgate.lock"), None).unwrap();
    let quarantined = over_lines(pinned, json!({})).await;
    assert_eq!(code(&quarantined), "tool_quarantined", "{quarantined}");
    seen.push(("a tool that nobody has reviewed", quarantined));

    for (of, answer) in &seen {
        let texts = texts(answer);
        assert!(!texts.is_empty(), "{of}: {answer}");
        texts.iter().for_each(|text| scan(of, text));
        assert!(!answer.to_string().contains(&place.path().display().to_string()), "{of}: {answer}");
    }
    assert_eq!(shared.executions() + broken.executions(), 0);
}
