//! I10: values that a `redact` policy covers never leave the process: neither plain nor encoded, nor as a digest that
//! anyone can compute.

mod computed;
mod derived;
mod follows;
mod programs;
mod rotation;
mod search;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use callgate::approval::{BoundRequest, seal_answer};
use callgate::call::{ApprovalDecision, ApprovalRequest, RunShadowEffect};
use callgate::card::Card;
use callgate::explain::render;
use callgate::host::{Clock, Observer, SystemClock};
use callgate::json::{Value, json};
use callgate::message::{
    Approver, Dialect, History, Message, Part, PartContent, RequestPart, ResponsePart, Role,
    approval_response,
};
use callgate::seal::Keys;
use callgate::{Engine, Outcome, ToolCall, ToolError, ToolExecutor, ToolResponse, policy};
use callgate_sqlite::SqliteStore;
use proptest::prelude::*;
use proptest::sample::select;

use search::Search;

const KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
/// The redacted patterns: words anywhere in a string, and a number of nine digits that is a whole value.
const PATTERNS: [&str; 2] = ["CANARY [0-9a-f]{8}/[0-9]{2}", r"^\d{9}$"];

/// Secrets of one test case.
#[derive(Clone, Debug)]
struct Secrets {
    words: Vec<String>,
    pin: u32,
}

impl Secrets {
    fn all(&self) -> Vec<String> {
        self.words.iter().cloned().chain([self.pin.to_string()]).collect()
    }
}

fn secrets() -> impl Strategy<Value = Secrets> {
    let word = any::<u32>().prop_map(|number| format!("CANARY {number:08x}/77"));
    (prop::collection::vec(word, 3), 100_000_000_u32..999_999_999)
        .prop_map(|(words, pin)| Secrets { words, pin })
}

/// A value with a secret: as a string, inside a string, as a number, nested, as a key, as JSON in a string.
fn secret_value(secrets: &Secrets) -> impl Strategy<Value = Value> + use<> {
    let pin = secrets.pin;
    let leaf = (select(secrets.words.clone()), 0..8).prop_map(move |(word, way)| match way {
        0 => json!(word),
        1 => json!(format!("my {word}, keep it")),
        2 => json!({ word: 1 }),
        3 => json!(json!({ "inner": word }).to_string()),
        4 => json!(pin),
        5 => json!(pin.to_string()),
        6 => json!({ (pin.to_string()): word }),
        _ => json!("harmless"),
    });
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from),
            inner.prop_map(|inner| json!({ "inner": inner }))
        ]
    })
}

/// Policies of every kind that expose as much as possible of a call and of the session. Nothing is redacted for the tool `tell`.
fn exposing_policy() -> impl Strategy<Value = Value> {
    let all = "{{ input.a }} {{ input }} {{ session.facts }} {{ context.note }}";
    let facts = "{{ session.facts.kept }} {{ session.facts }}";
    let on = |tool: &str, kind: &str, value: Value| json!({ "match": tool, kind: value });
    let asks = json!({ "message": all, "edits": ["$.input.note"], "remember": { "scope": "arguments", "for": "1h" } });
    select(vec![
        json!({ "match": { "tool": "give", "where": { "path": "$.input.a", "gt": 5 } }, "deny": { "message": all } }),
        json!({ "match": { "tool": "give", "where": { "path": "$.input.a", "exists": true } }, "deny": { "message": all } }),
        json!({ "match": { "tool": "give", "where": { "path": "$.input.b", "inside": "/srv" } }, "halt": { "message": all } }),
        on("give", "approval", asks.clone()),
        on(
            "give",
            "validate",
            json!({ "schema": { "type": "object", "properties": { "b": { "type": "integer" } } } }),
        ),
        on("give", "transform", json!({ "input": [{ "path": "$.input.new", "template": all }] })),
        on("give", "transform", json!({ "output": [{ "path": "$.output.said", "template": all }] })),
        on(
            "give",
            "rate_limit",
            json!({ "limit": 1, "per": "1h", "key": ["$.input.a", "$.context.note"], "message": all }),
        ),
        on("give", "rate_limit", json!({ "limit": 9, "per": "run", "key": "$.input.b" })),
        on("give", "concurrency", json!({ "max": 1, "key": "$.input.a" })),
        on("give", "cache", json!({ "ttl": "1h", "key": ["$.input.a"], "scope": "tenant" })),
        on(
            "give",
            "retry",
            json!({ "attempts": 2, "idempotent": true, "on": "*invalid*", "backoff": { "initial": "1ms" } }),
        ),
        on("give", "recover", json!({ "message": format!("{{{{ error }}}} {{{{ suggestion }}}} {all}") })),
        on("give", "fact", json!({ "name": "kept", "value": "$.input.a" })),
        on("give", "fact", json!({ "name": "kept", "key": "$.input.b", "value": "$.input" })),
        on("give", "fact", json!({ "name": "out", "value": "$.output" })),
        on("give", "audit", json!({ "fields": ["$.input", "$.output", "$.error", "$.session.facts"] })),
        on("give", "label", json!({ "add": ["given"] })),
        on(
            "give",
            "around",
            json!({ "script": "audit(#{ a: input.a }); cache_set(1, input, \"1h\"); let out = next(input); [out, cache_get(1)]" }),
        ),
        on(
            "give",
            "around",
            json!({ "script": "let known = cache_get(1); approve(`${input.a} ${known}`); next(input)" }),
        ),
        on("give", "around", json!({ "script": "throw #{ message: `${input.a}`, kind: `${input.b}` };" })),
        on(
            "give",
            "around",
            json!({ "script": "let out = next(input); audit(#{ said: `got ${out.echo}` }); throw `bad: ${out.echo}`;" }),
        ),
        on("give", "around", json!({ "script": "let out = next(input); `it was ${out.echo}`" })),
        on("give", "respond", json!({ "output": { "said": "nothing" } })),
        on("give", "timeout", json!("1h")),
        on("give", "allow", json!({})),
        on("tell", "approval", json!({ "message": facts })),
        on("tell", "transform", json!({ "input": [{ "path": "$.input.new", "template": facts }] })),
        on("tell", "transform", json!({ "output": [{ "path": "$.output.said", "template": facts }] })),
        on("tell", "audit", json!({ "fields": ["$.input", "$.session.facts"] })),
        on("tell", "around", json!({ "script": "audit(#{ facts: session.facts }); next(input)" })),
        json!({ "match": { "tool": "tell", "where": { "path": "$.session.facts.kept", "exists": true } }, "deny": { "message": facts } }),
        json!({ "match": { "tool": "tell", "where": { "path": "$.session.facts.kept", "gt": 7 } }, "deny": { "message": facts } }),
        json!({ "match": { "tool": "tell", "where": { "path": "$.session.facts.kept", "exists": true } }, "halt": { "message": facts } }),
        json!({ "match": "tell", "rate_limit": { "limit": 1, "per": "1h", "key": "$.session.facts.kept", "message": facts } }),
    ])
}

/// What the `redact` policy covers. Secrets occur only there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Covered {
    Both,
    Input,
    Output,
}

/// `give` returns as much as possible; `tell` returns nothing.
struct LeakyTool {
    covered: Covered,
    fails: bool,
    /// The secret in results, if only results are covered.
    secret: Value,
}

impl ToolExecutor for LeakyTool {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let echo = |value: &Value| Ok(json!({ "echo": value, "text": value.to_string() }).into());
        match (call.tool.as_str(), self.covered, self.fails) {
            ("give", Covered::Both | Covered::Input, true) => {
                Err(ToolError::new(format!("invalid: {}", call.input)))
            }
            ("give", Covered::Both, false) => echo(&call.input),
            ("give", Covered::Output, _) => echo(&self.secret),
            _ => Ok(json!({}).into()),
        }
    }
}

/// Everything that observers receive.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, what: &impl std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{what:?}"));
    }
}

impl Observer for Log {
    fn on_outcome(&self, outcome: &Outcome) {
        self.add(outcome);
    }

    fn on_request(&self, request: &ApprovalRequest) {
        self.add(request);
    }

    fn on_approved(&self, decision: &ApprovalDecision) {
        self.add(decision);
    }

    fn on_denied(&self, decision: &ApprovalDecision) {
        self.add(decision);
    }

    fn on_run_shadow(&self, _: &str, shadow: &RunShadowEffect) {
        self.add(shadow);
    }
}

/// A history without its calls, which come from the model itself.
fn beside_calls(history: &History) -> String {
    let of = |message: &Message| {
        let parts = message.parts().iter().filter(|part| !matches!(part.content(), PartContent::Call(_)));
        Message::new(message.role().clone(), parts.cloned().collect())
    };
    let written = History::new(history.messages().iter().map(of).collect());
    written.write(Dialect::AiSdk).to_string()
}

/// The content of every file of a directory.
fn files(directory: &Path) -> Vec<u8> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| fs::read(path).unwrap()).collect()
}

fn cards(request: &RequestPart, outcome: Option<&Outcome>) -> String {
    format!("{:?} {outcome:?}", Card::pending(request))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn i10_no_secret_leaves_the_process(
        (secrets, calls) in secrets().prop_flat_map(|secrets| {
            let call = (secret_value(&secrets), secret_value(&secrets), any::<bool>());
            (Just(secrets), prop::collection::vec(call, 1..3))
        }),
        mut policies in prop::collection::vec(exposing_policy(), 1..7),
        covered in select(vec![Covered::Both, Covered::Input, Covered::Output]),
        style in select(vec![json!("mask"), json!("hash"), json!("remove"), json!({ "keep_last": 3 })]),
    ) {
        let places = match covered {
            Covered::Both => json!(["input", "output"]),
            Covered::Input => json!(["input"]),
            Covered::Output => json!(["output"]),
        };
        // Results are not covered there: a script that returns arguments shows them.
        policies.retain(|policy| covered != Covered::Input || !policy.to_string().contains("[out, cache_get(1)]"));
        let redact = json!({ "in": places, "patterns": PATTERNS, "with": style });
        policies.push(json!({ "match": "give", "redact": redact }));
        for (place, policy) in policies.iter_mut().enumerate() {
            policy["id"] = format!("p{place}").into();
        }
        let rules = json!({ "policies": policies }).to_string();
        let mut built = policy::build_texts([("rules.yaml", rules.clone())]);
        let chains = Arc::new(built.policies.take().unwrap_or_else(|| panic!("{:?}", built.diagnostics)));
        let directory = tempfile::tempdir().unwrap();
        let log = Log::default();
        let store = Arc::new(SqliteStore::open(&directory.path().join("state.db")).unwrap());
        let engine = Engine::builder(chains)
            .keys(Keys::parse(KEY).unwrap())
            .store(store)
            .observer(log.clone())
            .build();
        // Arguments have a source: the context may contain the same values. If only arguments are covered, results show what
        // policies take from the context.
        let note = match covered {
            Covered::Input => "n",
            Covered::Both | Covered::Output => &secrets.words[1],
        };
        let context = match covered {
            Covered::Output => json!({ "principal": "ana", "note": "n" }),
            Covered::Both | Covered::Input => {
                json!({ "principal": "ana", "tenant": secrets.words[0], "note": note })
            }
        };
        let mut documents = vec![context.clone(), json!(secrets.pin)];
        let mut seen: Vec<String> = Vec::new();
        let mut history = History::default();
        for (index, (a, b, fails)) in calls.iter().enumerate() {
            let secret = json!({ "a": a, "b": b, "note": "n" });
            let input = match covered {
                Covered::Output => json!({ "a": "harmless", "b": 1, "note": "n" }),
                Covered::Both | Covered::Input => secret.clone(),
            };
            for tool in ["give", "tell"] {
                let call = json!([tool, null, input]);
                documents.extend([a.clone(), b.clone(), input.clone(), call]);
            }
            let tool = LeakyTool { covered, fails: *fails, secret };
            // With an explanation, each call in its own session.
            let mut session = engine.session().with_name(format!("explained {index}"));
            for (name, input) in [("give", input.clone()), ("tell", json!({ "a": 1 }))] {
                let call = ToolCall::new("c1", name, input).with_context(context.clone());
                let (outcome, explanation) = drive(session.explain(call, &tool, &built.sources));
                seen.push(callgate::json::to_string(&outcome).unwrap());
                if let Some(explanation) = explanation {
                    seen.push(render::json(&explanation).unwrap());
                    seen.push(render::text(&explanation, Some(&built.sources), false, true));
                }
            }
            // And over a history with approvals.
            let session = || engine.session().with_name("talk").with_context(context.clone());
            let parts = vec![
                Part::call(format!("g{index}"), "give", input.clone()),
                Part::call(format!("t{index}"), "tell", json!({ "a": 1 })),
            ];
            history.push(Message::new(Role::Assistant, parts));
            let round = drive(session().run_round(&mut history, &tool)).unwrap();
            seen.extend(round.outcomes.iter().map(|outcome| callgate::json::to_string(outcome).unwrap()));
            for request in history.find_approval_requests().into_iter().cloned().collect::<Vec<_>>() {
                seen.push(cards(&request, None));
                let question = BoundRequest::open(&request, engine.keys()).unwrap();
                let edited = request.input.clone().map(|mut input| { input["note"] = "other".into(); input });
                let answer = ResponsePart {
                    edited_input: edited.filter(|_| index == 0 && question.editable_paths().len() == 1),
                    ..approval_response(&request.approval_id, true)
                };
                let answer = seal_answer(&question, answer, Approver::new("bea"), SystemClock.now(), engine.keys());
                history.append_approval_response(answer).unwrap();
            }
            let round = drive(session().resume(&mut history, &tool)).unwrap();
            seen.push(format!("{round:?}"));
            seen.push(beside_calls(&history));
        }
        seen.extend(log.0.lock().unwrap().iter().cloned());
        let search = Search::new(&secrets.all(), &documents);
        for seen in &seen {
            prop_assert_eq!(search.find(seen.as_bytes()), None, "{}\n{:?}", rules, calls);
        }
        prop_assert_eq!(search.find(&files(directory.path())), None, "{}\n{:?}", rules, calls);
    }
}

/// The store answers from its own thread, so real time has to pass.
fn drive<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}
