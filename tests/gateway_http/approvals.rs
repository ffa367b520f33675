//! Approvals through the gateway: they are bound to the requester on every transport and used once, and an agent gets nothing that it
//! could approve with.

use std::sync::{Arc, Mutex};

use callgate::approval::{Inbox, InboxItem};
use callgate::host::{StateStore, SystemClock};
use callgate::json::{Value, json};
use callgate::message::{Approver, approval_response};
use callgate::seal::Keys;
use callgate::state::MemoryStore;
use callgate::{Engine, engine};
use callgate_mcp::{Gateway, HttpSpec, ServerSpec, Transport};
use callgate_sqlite::SqliteStore;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::harness::{RunningGateway, STATELESS_VERSION, Upstream, initialize, stateless_request};
use super::identity::{IdentityFiles, digest};
use crate::approvals::scene::KEY;

const ASK: &str = "policies: [ { id: ask, match: echo, approval: { message: 'May it?' } } ]";
/// Requires a principal: without one the approver might be the requester.
const ASK_LEA: &str =
    "policies: [ { id: ask, match: echo, approval: { message: 'May it?', approvers: [lea] } } ]";
const STATE: &str = "file:/var/lib/secret-place/state.db";

/// The server, store and log that several gateways share.
struct Shared {
    upstream: Upstream,
    store: Arc<dyn StateStore>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Shared {
    async fn new() -> Self {
        Self {
            upstream: Upstream::with_defaults().await,
            store: Arc::new(MemoryStore::default()),
            log: Arc::default(),
        }
    }

    /// A newly started gateway.
    fn gateway(&self, rules: &str) -> Gateway {
        let rules = engine::load_text(rules).unwrap();
        let engine =
            Engine::builder(rules).store(Arc::clone(&self.store)).keys(Keys::parse(KEY).unwrap()).build();
        let reach =
            Transport::Http(HttpSpec { url: self.upstream.url.clone(), headers: Vec::new(), auth: None });
        let server = ServerSpec::new("server", reach);
        let log = Arc::clone(&self.log);
        Gateway::new(engine, [server])
            .with_approval_state(STATE)
            .with_log(move |line| log.lock().unwrap().push(line.to_owned()))
    }

    async fn served(
        &self,
        server: impl FnOnce(callgate_mcp::HttpServer) -> callgate_mcp::HttpServer,
    ) -> RunningGateway {
        RunningGateway::from_gateway(self.gateway(ASK), Arc::default(), server).await
    }

    fn executions(&self) -> usize {
        self.upstream.requests_for("tools/call").len()
    }

    async fn pending(&self) -> Vec<InboxItem> {
        let inbox = Inbox::new(Arc::clone(&self.store), Keys::parse(KEY).unwrap(), SystemClock);
        inbox.list().await.unwrap().into_iter().filter(InboxItem::is_pending).collect()
    }

    /// Answers all pending approvals. Returns their number.
    async fn answer(&self, approved: bool) -> usize {
        let inbox = Inbox::new(Arc::clone(&self.store), Keys::parse(KEY).unwrap(), SystemClock);
        let pending = self.pending().await;
        for item in &pending {
            let by = Some(Approver::new("lea"));
            inbox.answer(&item.key, approval_response("", approved), by).await.unwrap();
        }
        pending.len()
    }
}

/// Makes one call over stdio lines, on its own connection. Returns the response.
async fn call_over_stdio(gateway: Gateway, capabilities: Value) -> Value {
    let (client, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(theirs);
    let served = tokio::spawn(Arc::new(gateway).serve_stdio(from, to));
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
        let line = heard.next_line().await.unwrap().expect("no response");
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

fn people() -> IdentityFiles {
    let token = |who: &str, more: &str| {
        format!("- {{ sha256: {}, principal: {who}{more} }}\n", digest(&format!("of-{who}{more}")))
    };
    let file = ["ana", "bob"].map(|who| token(who, "")).concat() + &token("ana", ", tenant: acme");
    IdentityFiles::new(&[("auth.yaml", &format!("tokens:\n{file}"))])
}

fn bearer(who: &str) -> String {
    format!("Bearer of-{who}")
}

#[tokio::test]
async fn approval_is_bound_to_its_principal_on_every_transport() {
    let shared = Shared::new().await;
    let people = people();
    let ana_over_lines = || shared.gateway(ASK).with_context(json!({ "principal": "ana" }));
    assert_eq!(code(&call_over_stdio(ana_over_lines(), json!({})).await), PENDING);
    assert_eq!(shared.answer(true).await, 1);
    let served = shared.served(|server| server.with_authenticator(people.identity())).await;
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
        assert_eq!(code(&call_over_stdio(gateway, json!({})).await), PENDING, "{context}");
        let gateway = shared.gateway(ASK).with_context(context.clone()).with_session("ana");
        assert_eq!(code(&call_over_stdio(gateway, json!({})).await), PENDING, "{context} in a session");
    }
    assert_eq!(shared.executions(), 0);
    assert_eq!(call("ana").await, json!(null), "the principal's own, over HTTP");
    assert_eq!(shared.executions(), 1);
    assert_eq!(call("ana").await, PENDING, "the approval is used up");
    // The other way round, in an initialized session.
    shared.answer(true).await;
    let authorization = bearer("bob");
    let session = served.initialize_session(&[("authorization", &authorization)]).await;
    let headers = [
        ("authorization", authorization.as_str()),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": { "n": 1 } } });
    assert_eq!(served.post(&headers, &call.to_string()).await.code(), json!(null));
    assert_eq!(code(&call_over_stdio(ana_over_lines(), json!({})).await), json!(null));
    assert_eq!(shared.executions(), 3);
}

#[tokio::test]
async fn approval_without_a_principal_is_bound_to_session_and_context() {
    let shared = Shared::new().await;
    let gateways = || {
        let plain = || shared.gateway(ASK);
        vec![
            plain(),
            plain().with_session("one"),
            plain().with_session("other"),
            plain().with_context(json!({ "tenant": "a" })),
            plain().with_context(json!({ "tenant": "b" })),
        ]
    };
    for (number, gateway) in gateways().into_iter().enumerate() {
        assert_eq!(code(&call_over_stdio(gateway, json!({})).await), PENDING);
        assert_eq!(shared.pending().await.len(), number + 1, "one pending approval each");
    }
    let served = shared
        .served(|server| server.with_session_name_source("header:x-conversation".parse().unwrap()))
        .await;
    let call =
        async |name: &str| served.call(&[("x-conversation", name)], "echo", json!({ "n": 1 })).await.code();
    for name in ["one", "other"] {
        assert_eq!(call(name).await, PENDING);
    }
    assert_eq!(shared.answer(true).await, 7);
    for (number, gateway) in gateways().into_iter().enumerate() {
        assert_eq!(
            code(&call_over_stdio(gateway, json!({})).await),
            json!(null),
            "{number} resumes in a restarted gateway"
        );
        assert_eq!(shared.executions(), number + 1);
    }
    assert_eq!(call("one").await, json!(null));
    assert_eq!(call("third").await, PENDING);
    assert_eq!(shared.executions(), 6);
}

#[tokio::test]
async fn operator_log_says_how_to_answer_and_denials_are_reported() {
    let shared = Shared::new().await;
    call_over_stdio(shared.gateway(ASK), json!({})).await;
    call_over_stdio(shared.gateway(ASK), json!({})).await;
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
    assert_eq!(code(&call_over_stdio(shared.gateway(ASK), json!({})).await), "approval_denied");
    assert_eq!(
        code(&call_over_stdio(shared.gateway(ASK), json!({})).await),
        PENDING,
        "it requires a new approval"
    );
    assert_eq!(shared.executions(), 0);
}

/// Asserts that a text contains nothing that an agent with a shell could use: commands, files, ids, tokens.
fn assert_nothing_usable(of: &str, text: &str) {
    // Reason codes may be shown.
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

/// All strings of a response that clients show to models or people. `_meta` and `requestState` are for programs.
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
async fn responses_to_the_agent_do_not_say_how_to_approve() {
    let place = tempfile::tempdir().unwrap();
    let shared = Shared::new().await;
    let lea = |rules: &str| shared.gateway(rules).with_context(json!({ "principal": "agent" }));
    let mut seen: Vec<(&str, Value)> = Vec::new();
    let named = call_over_stdio(lea(ASK_LEA), json!({})).await;
    assert!(
        named["result"]["content"][0]["text"].as_str().unwrap().contains("Approval needed from lea."),
        "{named}"
    );
    seen.push(("pending", named));
    seen.push(("pending again", call_over_stdio(lea(ASK_LEA), json!({})).await));
    shared.answer(false).await;
    seen.push(("denied", call_over_stdio(lea(ASK_LEA), json!({})).await));
    seen.push(("a form", call_over_stdio(shared.gateway(ASK), json!({ "elicitation": {} })).await));
    let expiring = ASK_LEA.replace("approvers", "expires: 1ms, approvers");
    call_over_stdio(lea(&expiring), json!({})).await;
    seen.push(("expired", call_over_stdio(lea(&expiring), json!({})).await));
    let quorum = ASK_LEA.replace("approvers: [lea]", "approvers: [lea, kim], quorum: 2");
    let both = call_over_stdio(lea(&quorum), json!({})).await;
    assert!(both["result"]["content"][0]["text"].as_str().unwrap().contains("2 of lea or kim"), "{both}");
    seen.push(("a quorum", both));

    // Results that request input.
    let served = RunningGateway::from_gateway(shared.gateway(ASK), Arc::default(), |server| server).await;
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let mut request = stateless_request(1, "tools/call", json!({ "name": "echo", "arguments": {} }));
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    let asked = served.post(&headers, &request.to_string()).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    request["params"]["requestState"] = asked["result"]["requestState"].clone();
    request["params"]["inputResponses"] = json!({ "dev.callgate/approval": { "action": "cancel" } });
    seen.push(("a result that asks", asked));
    seen.push(("dismissed", served.post(&headers, &request.to_string()).await.json()));

    // A failing store, and unreviewed tools.
    let file = place.path().join("state.db");
    let broken = Shared { store: Arc::new(SqliteStore::open(&file).unwrap()), ..Shared::new().await };
    seen.push(("with a file", call_over_stdio(broken.gateway(ASK), json!({})).await));
    std::fs::remove_file(&file).unwrap();
    let unavailable = call_over_stdio(broken.gateway(ASK), json!({})).await;
    assert_eq!(code(&unavailable), "store_unavailable", "{unavailable}");
    seen.push(("a store that is gone", unavailable));
    let pinned = shared.gateway(ASK).with_pins(place.path().join("callgate.lock"), None).unwrap();
    let quarantined = call_over_stdio(pinned, json!({})).await;
    assert_eq!(code(&quarantined), "tool_quarantined", "{quarantined}");
    seen.push(("a tool that nobody has reviewed", quarantined));

    for (of, answer) in &seen {
        let texts = texts(answer);
        assert!(!texts.is_empty(), "{of}: {answer}");
        texts.iter().for_each(|text| assert_nothing_usable(of, text));
        assert!(!answer.to_string().contains(&place.path().display().to_string()), "{of}: {answer}");
    }
    assert_eq!(shared.executions() + broken.executions(), 0);
}
