//! One kernel for every door: the same recorded sessions come to the same outcomes, results and observations, whether Callgate drives
//! the rounds or an SDK does, live or resumed by another process between any two rounds, and in every dialect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use callgate::call::{CallRecord, Outcome, Recorded};
use callgate::host::{Observer, ToolSpan, ToolStart};
use callgate::message::{CallPart, Content, Dialect, History, Message, Part, Role, approval_response};
use callgate::seal::Keys;
use callgate::state::MemoryStore;
use callgate::{Engine, Session, ToolAnswer, ToolCall, ToolError, ToolExecutor, engine};
use serde_json::{Value, json};

use crate::playback::{project, records, sessions};
use crate::workshop::noon;

/// What was seen of a session from outside.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Observer for Seen {
    fn on_outcome(&self, outcome: &Outcome) {
        self.0.lock().unwrap().push(format!("outcome {}", essence(outcome)));
    }
    fn on_tool_start(&self, start: &ToolStart<'_>) {
        self.0.lock().unwrap().push(format!("start {} {}", start.call_id, start.args));
    }
    fn on_tool_end(&self, span: &ToolSpan<'_>) {
        self.0.lock().unwrap().push(format!("end {} {:?}", span.outcome.id, span.shown));
    }
    fn on_request(&self, request: &callgate::call::ApprovalRequest) {
        self.0.lock().unwrap().push(format!("asked {} {}", request.approval_id, request.input));
    }
    fn on_approved(&self, decision: &callgate::call::ApprovalDecision) {
        self.0.lock().unwrap().push(format!("approved {}", decision.approval_id));
    }
}

/// An outcome without what changes from run to run.
fn essence(outcome: &Outcome) -> Value {
    let mut value = serde_json::to_value(outcome).unwrap();
    let members = value.as_object_mut().unwrap();
    for changing in ["duration_us", "approval", "retry_after_ms"] {
        members.remove(changing);
    }
    value
}

/// Plays what tools once answered.
#[derive(Clone)]
struct Played(Arc<BTreeMap<String, Recorded>>);

impl ToolExecutor for Played {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        match self.0.get(&call.id).cloned() {
            Some(Recorded::Output(output)) => Ok(output.into()),
            Some(Recorded::Error { message, kind }) => Err(ToolError { message, kind }),
            None => Ok(json!("done").into()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Regime {
    /// Callgate drives the rounds.
    Core,
    /// An SDK drives them, and tells of each round before.
    Sdk,
    /// An SDK drives them call by call.
    SdkUntold,
}

/// How a session is run.
#[derive(Clone, Copy, Debug)]
struct Way {
    regime: Regime,
    /// The history goes through this dialect between any two rounds.
    dialect: Option<Dialect>,
}

/// What came of a session: its outcomes, the results that its model was given, what observers saw.
#[derive(Debug, PartialEq)]
struct Came {
    outcomes: Vec<String>,
    results: Vec<String>,
    seen: Vec<String>,
}

struct Stage {
    rules: Arc<callgate::policy::Chains>,
    context: Value,
    played: Played,
    seen: Seen,
    clock: callgate::host::ManualClock,
    store: Arc<MemoryStore>,
}

impl Stage {
    fn session(&self) -> Session {
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        let engine = Engine::builder(Arc::clone(&self.rules)).clock(self.clock.clone()).seed(1).keys(keys);
        let engine = engine.store(Arc::clone(&self.store) as _).observer(self.seen.clone()).build();
        engine.session().named("talk").with_context(self.context.clone())
    }

    async fn round(&self, session: Session, history: &mut History, way: Way) -> (Session, Vec<Outcome>) {
        if way.regime == Regime::Core {
            let mut session = session;
            let round = session.round(history, &self.played).await.unwrap();
            return (session, round.outcomes);
        }
        let calls: Vec<CallPart> = history
            .messages()
            .last()
            .into_iter()
            .flat_map(Message::parts)
            .filter_map(|part| match part.content() {
                Content::Call(call) => Some(call.clone()),
                _ => None,
            })
            .collect();
        let armed = session.arm(self.played.clone());
        if way.regime == Regime::Sdk {
            armed.tell_round(&calls).await;
        }
        for CallPart { id, name, input } in calls {
            armed.call(&id, &name, input).await;
        }
        let outcomes = armed.suspend(history).await.unwrap().outcomes;
        (armed.disarm().await, outcomes)
    }
}

fn run(rules: &Arc<callgate::policy::Chains>, calls: &[CallRecord], way: Way) -> Came {
    let played = calls.iter().filter_map(|record| Some((record.call.id.clone(), record.recorded.clone()?)));
    let clock = noon();
    let stage = Stage {
        rules: Arc::clone(rules),
        context: calls[0].call.context.clone(),
        played: Played(Arc::new(played.collect())),
        seen: Seen::default(),
        store: Arc::new(MemoryStore::default()),
        clock: clock.clone(),
    };
    let mut history = History::new(vec![Message::new(Role::User, vec![Part::text("help me")])]);
    let mut outcomes = Vec::new();
    clock.drive(async {
        let mut session = stage.session();
        for round in calls.chunk_by(|one, next| one.round.is_some() && one.round == next.round) {
            let parts = round.iter().map(|record| {
                Part::call(record.call.id.clone(), record.call.tool.clone(), record.call.input.clone())
            });
            history.push(Message::new(Role::Assistant, parts.collect()));
            let (next, came) = stage.round(session, &mut history, way).await;
            session = next;
            let suspended = came.iter().any(|outcome| outcome.approval.is_some());
            outcomes.extend(came);
            if let Some(dialect) = way.dialect {
                history = History::read(dialect, &history.write(dialect)).unwrap();
            }
            if suspended {
                // Another process goes on, once a person has said yes.
                let ids: Vec<String> = history
                    .find_approval_requests()
                    .iter()
                    .map(|request| request.approval_id.clone())
                    .collect();
                for id in ids {
                    history.append_approval_response(approval_response(id, true)).unwrap();
                }
                session = stage.session();
                outcomes.extend(session.resume(&mut history, &stage.played).await.unwrap().outcomes);
            }
        }
    });
    let results = history.occurrences().into_iter().map(|call| {
        let told = call.result.map(|result| result.output.text());
        format!("{} {told:?}", call.call.id)
    });
    let seen = stage.seen.0.lock().unwrap().clone();
    Came {
        results: results.collect(),
        outcomes: outcomes.iter().map(|outcome| essence(outcome).to_string()).collect(),
        seen,
    }
}

/// Every way but the plain one, each of which has to come to the same.
fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for regime in [Regime::Core, Regime::Sdk, Regime::SdkUntold] {
        ways.push(Way { regime, dialect: None });
        ways.extend(Dialect::ALL.map(|dialect| Way { regime, dialect: Some(dialect) }));
    }
    ways
}

fn assert_parity(rules: &Arc<callgate::policy::Chains>, name: &str, calls: &[CallRecord]) -> usize {
    let plain = run(rules, calls, Way { regime: Regime::Core, dialect: None });
    for way in ways() {
        let came = run(rules, calls, way);
        assert_eq!(came.outcomes, plain.outcomes, "{name} {way:?}");
        assert_eq!(came.results, plain.results, "{name} {way:?}");
        assert_eq!(came.seen, plain.seen, "{name} {way:?}");
    }
    plain.outcomes.len()
}

#[test]
fn recorded_sessions_of_a_shop_come_to_the_same_whichever_way_they_are_run() {
    let rules = engine::load(&[project("policies/retail")]).unwrap();
    let mut outcomes = 0;
    for file in ["demo", "rules"] {
        let text =
            std::fs::read_to_string(project(&format!("policies/retail/sessions/{file}.jsonl"))).unwrap();
        for (name, calls) in sessions(records(&text)) {
            outcomes += assert_parity(&rules, &name, &calls);
        }
    }
    assert!(outcomes > 50, "{outcomes}");
}

#[test]
fn sessions_that_ask_people_come_to_the_same_whichever_way_they_are_run() {
    let rules = engine::load_text(
        "policies:
  - { id: ask, match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }, approval: {} }
  - { id: never, match: drop, deny: { message: never } }
  - { id: few, match: look, rate_limit: { limit: 2, per: conversation } }
  - { id: mark, match: read, label: { add: [untrusted] } }
  - { id: careful, match: { tool: send, where: [ { path: '$.session.labels[*]', eq: untrusted } ] }, deny: {} }
  - { id: hide, redact: { in: [input, output], detect: [email] } }
  - { id: again, match: shaky, recover: { message: 'try {{ error }}' } }",
    )
    .unwrap();
    let lines = [
        r#"{"id":"a","tool":"look","input":{"q":"ana@example.com"},"round":1,"recorded":{"output":"ana@example.com"}}"#,
        r#"{"id":"b","tool":"pay","input":{"amount":250},"round":1,"recorded":{"output":{"paid":250}}}"#,
        r#"{"id":"c","tool":"drop","input":{},"round":1}"#,
        r#"{"id":"d","tool":"read","input":{},"round":2,"recorded":{"output":{"text":"x"}}}"#,
        r#"{"id":"e","tool":"send","input":{},"round":3,"recorded":{"output":1}}"#,
        r#"{"id":"f","tool":"shaky","input":{},"round":3,"recorded":{"error":{"message":"bad value"}}}"#,
        r#"{"id":"g","tool":"look","input":{},"round":4,"recorded":{"output":1}}"#,
        r#"{"id":"h","tool":"look","input":{},"round":4,"recorded":{"output":1}}"#,
        r#"{"id":"i","tool":"pay","input":{"amount":101},"round":5,"recorded":{"error":{"message":"refused"}}}"#,
    ];
    let calls = records(&lines.join("\n"));
    assert!(assert_parity(&rules, "asking", &calls) > lines.len());
}
