//! One kernel behind every API: the same recorded sessions produce the same outcomes, results and notifications, whether Callgate
//! drives the rounds or an SDK does, live or resumed by another process between any two rounds, and in every dialect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use callgate::call::{CallRecord, Outcome, RecordedResult};
use callgate::host::{Observer, ToolCallSpan, ToolCallStart};
use callgate::json::{Value, json};
use callgate::lifecycle::{BeforeAction, ErrorAction, RequiredApproval, ToolHooks};
use callgate::message::{
    CallPart, Dialect, History, Message, Part, PartContent, RequestPart, ResponsePart, Role,
    approval_response,
};
use callgate::seal::Keys;
use callgate::{Engine, Session, ToolCall, ToolError, ToolExecutor, ToolResponse, engine};

use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::noon;
use crate::recorded_calls::{project, records, sessions};

/// Everything about a session that is visible from outside.
#[derive(Clone, Default)]
struct ObserverLog(Arc<Mutex<Vec<String>>>);

impl Observer for ObserverLog {
    fn on_outcome(&self, outcome: &Outcome) {
        self.0.lock().unwrap().push(format!("outcome {}", normalized_outcome(outcome)));
    }
    fn on_tool_start(&self, start: &ToolCallStart<'_>) {
        self.0.lock().unwrap().push(format!("start {} {}", start.call_id, start.args));
    }
    fn on_tool_end(&self, span: &ToolCallSpan<'_>) {
        self.0.lock().unwrap().push(format!("end {} {:?}", span.outcome.id, span.shown));
    }
    fn on_request(&self, request: &callgate::call::ApprovalRequest) {
        self.0.lock().unwrap().push(format!("asked {} {}", request.approval_id, request.input));
    }
    fn on_approved(&self, decision: &callgate::call::ApprovalDecision) {
        self.0.lock().unwrap().push(format!("approved {}", decision.approval_id));
    }
}

/// An outcome without what varies between runs, and whether it is reported for the first time.
fn normalized_outcome(outcome: &Outcome) -> Value {
    let mut value = callgate::json::to_value(outcome).unwrap();
    let members = value.as_object_mut().unwrap();
    for changing in ["duration_us", "approval", "retry_after_ms", "replayed"] {
        members.remove(changing);
    }
    value
}

/// Returns recorded tool results.
#[derive(Clone)]
struct RecordedTool(Arc<BTreeMap<String, RecordedResult>>);

impl ToolExecutor for RecordedTool {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match self.0.get(&call.id).cloned() {
            Some(RecordedResult::Output(output)) => Ok(output.into()),
            Some(RecordedResult::Error { message, kind }) => Err(ToolError { message, kind }),
            None => Ok(json!("done").into()),
        }
    }
}

/// A shared store.
struct Shared;

impl Alteration for Shared {
    fn is_shared(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Regime {
    /// Callgate drives the rounds.
    Core,
    /// An SDK drives them, and announces each round.
    Sdk,
    /// An SDK drives them call by call.
    SdkUntold,
}

/// The point at which the process ends and another one resumes from the store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crash {
    /// Only at a pending approval.
    Never,
    /// After each round, when its history is stored.
    BetweenRounds,
    /// After each round, before its history is stored: another process finds the calls, and the store has their results.
    BeforeStored,
}

/// One way to run a session.
#[derive(Clone, Copy, Debug)]
struct Way {
    regime: Regime,
    /// The history goes through this dialect between any two rounds.
    dialect: Option<Dialect>,
    crash: Crash,
}

/// The definition of a session.
struct Case<'c> {
    name: &'c str,
    rules: &'c Arc<callgate::policy::CompiledPolicies>,
    calls: &'c [CallRecord],
    /// How an approver answers.
    answer: fn(&RequestPart) -> ResponsePart,
    /// Host hooks.
    hooks: fn(&ObserverLog) -> Vec<ToolHooks>,
}

fn no_hooks(_: &ObserverLog) -> Vec<ToolHooks> {
    Vec::new()
}

fn approve(request: &RequestPart) -> ResponsePart {
    approval_response(request.approval_id.clone(), true)
}

/// What a session produced: its outcomes, the results for its model, the notifications of its observers.
#[derive(Debug, PartialEq)]
struct SessionResult {
    outcomes: Vec<String>,
    results: Vec<String>,
    seen: Vec<String>,
}

struct Stage {
    rules: Arc<callgate::policy::CompiledPolicies>,
    context: Value,
    played: RecordedTool,
    seen: ObserverLog,
    hooks: fn(&ObserverLog) -> Vec<ToolHooks>,
    clock: callgate::host::ManualClock,
    store: Arc<Altered<Shared>>,
}

impl Stage {
    /// The session as a process opens it.
    fn session(&self, way: Way) -> Session {
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        let engine = Engine::builder(Arc::clone(&self.rules)).clock(self.clock.clone()).seed(1).keys(keys);
        let engine = engine.store(Arc::clone(&self.store) as _).observer(self.seen.clone()).build();
        let session = engine.session().with_name("talk").with_context(self.context.clone());
        let session = (self.hooks)(&self.seen).into_iter().fold(session, Session::with_middleware);
        if way.crash == Crash::BeforeStored { session.with_call_recording() } else { session }
    }

    async fn round(&self, session: Session, history: &mut History, way: Way) -> (Session, Vec<Outcome>) {
        if way.regime == Regime::Core {
            let mut session = session;
            let round = session.run_round(history, &self.played).await.unwrap();
            return (session, round.outcomes);
        }
        let calls: Vec<CallPart> = history
            .messages()
            .last()
            .into_iter()
            .flat_map(Message::parts)
            .filter_map(|part| match part.content() {
                PartContent::Call(call) => Some(call.clone()),
                _ => None,
            })
            .collect();
        let armed = session.into_sdk_session(self.played.clone());
        if way.regime == Regime::Sdk {
            armed.announce_round(&calls).await;
        }
        for CallPart { id, name, input } in calls {
            armed.call(&id, &name, input).await;
        }
        let outcomes = armed.suspend(history).await.unwrap().outcomes;
        (armed.into_session().await, outcomes)
    }

    /// A round whose process ends before its history is stored, as completed by another process.
    async fn crashed(&self, session: Session, history: &mut History, way: Way) -> (Session, Vec<Outcome>) {
        drop(self.round(session, &mut history.clone(), way).await);
        let mut session = self.session(way);
        let outcomes = session.resume(history, &self.played).await.unwrap().outcomes;
        (session, outcomes)
    }
}

fn run(case: &Case<'_>, way: Way) -> SessionResult {
    let calls = case.calls;
    let played = calls.iter().filter_map(|record| Some((record.call.id.clone(), record.recorded.clone()?)));
    let clock = noon();
    let stage = Stage {
        rules: Arc::clone(case.rules),
        context: calls[0].call.context.clone(),
        played: RecordedTool(Arc::new(played.collect())),
        seen: ObserverLog::default(),
        hooks: case.hooks,
        store: Arc::new(Altered::by(Shared)),
        clock: clock.clone(),
    };
    let mut history = History::new(vec![Message::new(Role::User, vec![Part::text("help me")])]);
    let mut outcomes = Vec::new();
    clock.block_on(async {
        let mut session = stage.session(way);
        for round in calls.chunk_by(|one, next| one.round.is_some() && one.round == next.round) {
            let parts = round.iter().map(|record| {
                Part::call(record.call.id.clone(), record.call.tool.clone(), record.call.input.clone())
            });
            history.push(Message::new(Role::Assistant, parts.collect()));
            let (next, came) = match way.crash {
                Crash::BeforeStored => stage.crashed(session, &mut history, way).await,
                Crash::Never | Crash::BetweenRounds => stage.round(session, &mut history, way).await,
            };
            session = next;
            outcomes.extend(came);
            if let Some(dialect) = way.dialect {
                history = History::read(dialect, &history.write(dialect)).unwrap();
            }
            if way.crash == Crash::BetweenRounds {
                session = stage.session(way);
                assert!(
                    session
                        .resume(&mut history, &stage.played)
                        .await
                        .unwrap()
                        .outcomes
                        .iter()
                        .all(|outcome| outcome.replayed)
                );
            }
            let answers: Vec<ResponsePart> =
                history.find_approval_requests().into_iter().map(case.answer).collect();
            if !answers.is_empty() {
                // Another process resumes after an approver has answered.
                for answer in answers {
                    history.append_approval_response(answer).unwrap();
                }
                session = stage.session(way);
                outcomes.extend(session.resume(&mut history, &stage.played).await.unwrap().outcomes);
            }
        }
    });
    let results = history.occurrences().into_iter().map(|call| {
        let told = call.result.map(|result| result.output.text());
        format!("{} {told:?}", call.call.id)
    });
    let seen = stage.seen.0.lock().unwrap().clone();
    SessionResult {
        results: results.collect(),
        outcomes: outcomes.iter().map(|outcome| normalized_outcome(outcome).to_string()).collect(),
        seen,
    }
}

/// All ways with these regimes and this crash.
fn ways(regimes: &[Regime], crash: Crash) -> Vec<Way> {
    let dialects = || std::iter::once(None).chain(Dialect::ALL.map(Some));
    let of = |regime: &Regime| {
        dialects().map(|dialect| Way { regime: *regime, dialect, crash }).collect::<Vec<_>>()
    };
    regimes.iter().flat_map(of).collect()
}

const ALL: [Regime; 3] = [Regime::Core, Regime::Sdk, Regime::SdkUntold];
/// The regimes in which a round is decided as a whole.
const WHOLE: [Regime; 2] = [Regime::Core, Regime::Sdk];

/// Runs a case in every way and returns the common result.
fn parity(case: &Case<'_>, regimes: &[Regime], crashes: &[Crash]) -> SessionResult {
    let name = case.name;
    let plain = run(case, Way { regime: Regime::Core, dialect: None, crash: crashes[0] });
    for way in crashes.iter().flat_map(|crash| ways(regimes, *crash)) {
        let came = run(case, way);
        assert_eq!(came.outcomes, plain.outcomes, "{name} {way:?}");
        assert_eq!(came.results, plain.results, "{name} {way:?}");
        assert_eq!(came.seen, plain.seen, "{name} {way:?}");
    }
    plain
}

#[test]
fn recorded_shop_sessions_are_the_same_in_every_regime() {
    let rules = engine::load(&[project("policies/retail")]).unwrap();
    let mut outcomes = 0;
    for file in ["demo", "rules"] {
        let text =
            std::fs::read_to_string(project(&format!("policies/retail/sessions/{file}.jsonl"))).unwrap();
        for (name, calls) in sessions(records(&text)) {
            let case = Case { name: &name, rules: &rules, calls: &calls, answer: approve, hooks: no_hooks };
            outcomes += parity(&case, &ALL, &[Crash::Never, Crash::BetweenRounds]).outcomes.len();
        }
    }
    assert!(outcomes > 50, "{outcomes}");
}

#[test]
fn sessions_with_approvals_are_the_same_in_every_regime() {
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
    let case = Case { name: "asking", rules: &rules, calls: &calls, answer: approve, hooks: no_hooks };
    assert!(parity(&case, &ALL, &[Crash::Never, Crash::BetweenRounds]).outcomes.len() > lines.len());
}

/// How each outcome ended, by call id.
fn kinds(came: &SessionResult) -> Vec<String> {
    let kind = |outcome: &String| {
        let outcome: Value = callgate::json::from_str(outcome).unwrap();
        format!("{} {}", outcome["id"].as_str().unwrap(), outcome["outcome"].as_str().unwrap())
    };
    came.outcomes.iter().map(kind).collect()
}

#[test]
fn only_one_call_of_a_round_is_pending_in_every_regime() {
    let rules =
        engine::load_text("policies: [ { id: ask, match: pay, approval: { present: first } } ]").unwrap();
    let lines = [
        r#"{"id":"a","tool":"look","input":{},"round":1,"recorded":{"output":1}}"#,
        r#"{"id":"b","tool":"pay","input":{"to":"ana"},"round":1,"recorded":{"output":2}}"#,
        r#"{"id":"c","tool":"pay","input":{"to":"ben"},"round":1,"recorded":{"output":3}}"#,
        r#"{"id":"d","tool":"pay","input":{"to":"ben"},"round":2,"recorded":{"output":4}}"#,
    ];
    let calls = records(&lines.join("\n"));
    let case = Case { name: "one at a time", rules: &rules, calls: &calls, answer: approve, hooks: no_hooks };
    let came = parity(&case, &ALL, &[Crash::Never, Crash::BetweenRounds]);
    assert_eq!(
        kinds(&came),
        ["a executed", "b suspended", "c denied", "b executed", "d suspended", "d executed"]
    );
}

#[test]
fn edits_by_an_approver_run_in_every_regime() {
    let text = "policies: [ { id: ask, match: pay, approval: { edits: [$.input.amount] } } ]";
    let rules = engine::load_text(text).unwrap();
    let lines = [
        r#"{"id":"a","tool":"pay","input":{"amount":250,"to":"ana"},"round":1,"recorded":{"output":1}}"#,
        r#"{"id":"b","tool":"pay","input":{"amount":90,"to":"ben"},"round":2,"recorded":{"output":2}}"#,
        r#"{"id":"c","tool":"pay","input":{"amount":9,"to":"eve"},"round":3,"recorded":{"output":3}}"#,
        r#"{"id":"d","tool":"pay","input":{"amount":8,"to":"eve"},"round":3,"recorded":{"output":3}}"#,
    ];
    let calls = records(&lines.join("\n"));
    // One is edited, one gets a result, one is denied, one is approved unchanged.
    let answer = |request: &RequestPart| match request.input.as_ref().unwrap()["amount"].as_u64() {
        Some(250) => {
            ResponsePart { edited_input: Some(json!({ "amount": 100, "to": "ana" })), ..approve(request) }
        }
        Some(90) => ResponsePart { output: Some(json!("paid by hand")), ..approve(request) },
        Some(9) => approval_response(request.approval_id.clone(), false),
        _ => approve(request),
    };
    let case = Case { name: "edited", rules: &rules, calls: &calls, answer, hooks: no_hooks };
    let came = parity(&case, &ALL, &[Crash::Never, Crash::BetweenRounds]);
    assert!(came.seen.iter().any(|line| line == r#"start a {"amount":100,"to":"ana"}"#), "{:?}", came.seen);
    assert_eq!(
        kinds(&came),
        [
            "a suspended",
            "a executed",
            "b suspended",
            "b answered",
            "c suspended",
            "d suspended",
            "c denied",
            "d executed"
        ]
    );
}

const HALTING: &str = "policies:
  - { id: stop, match: { tool: look, where: [ { path: $.input.q, eq: stop } ] }, halt: { message: enough } }
  - { id: mark, match: read, label: { add: [read] } }
  - { id: ask, match: pay, approval: {} }";

fn halting() -> Vec<CallRecord> {
    let lines = [
        r#"{"id":"a","tool":"read","input":{},"round":1,"recorded":{"output":1}}"#,
        r#"{"id":"b","tool":"look","input":{"q":"x"},"round":2,"recorded":{"output":2}}"#,
        r#"{"id":"c","tool":"pay","input":{},"round":2,"recorded":{"output":3}}"#,
        r#"{"id":"d","tool":"look","input":{"q":"stop"},"round":2,"recorded":{"output":4}}"#,
        r#"{"id":"e","tool":"look","input":{"q":"y"},"round":3,"recorded":{"output":5}}"#,
    ];
    records(&lines.join("\n"))
}

#[test]
fn halting_round_runs_nothing_in_every_regime() {
    let (rules, calls) = (engine::load_text(HALTING).unwrap(), halting());
    let case = Case { name: "halting", rules: &rules, calls: &calls, answer: approve, hooks: no_hooks };
    let came = parity(&case, &WHOLE, &[Crash::Never]);
    assert_eq!(kinds(&came), ["a executed", "b halted", "c halted", "d halted", "e halted"]);
    parity(&case, &WHOLE, &[Crash::BetweenRounds]);
}

/// Without an announced round each call is decided when the SDK makes it: calls before the one that halts have run.
#[test]
fn without_an_announced_round_only_later_calls_are_halted() {
    let (rules, calls) = (engine::load_text(HALTING).unwrap(), halting());
    let case = Case { name: "untold", rules: &rules, calls: &calls, answer: approve, hooks: no_hooks };
    let mut came = ways(&[Regime::SdkUntold], Crash::Never).into_iter().map(|way| run(&case, way));
    let plain = came.next().unwrap();
    assert_eq!(
        kinds(&plain),
        ["a executed", "b executed", "c suspended", "d halted", "c halted", "e halted"]
    );
    assert!(came.all(|came| came == plain));
}

#[test]
fn crash_before_a_round_is_stored_loses_nothing_in_every_regime() {
    let text = "policies:
  - { id: ask, match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }, approval: {} }
  - { id: mark, match: read, label: { add: [untrusted] } }
  - { id: careful, match: { tool: send, where: [ { path: '$.session.labels[*]', eq: untrusted } ] }, deny: {} }";
    let rules = engine::load_text(text).unwrap();
    let lines = [
        r#"{"id":"a","tool":"pay","input":{"amount":5},"round":1,"recorded":{"output":1}}"#,
        r#"{"id":"b","tool":"read","input":{},"round":1,"recorded":{"error":{"message":"gone"}}}"#,
        r#"{"id":"c","tool":"send","input":{},"round":2,"recorded":{"output":2}}"#,
        r#"{"id":"d","tool":"pay","input":{"amount":500},"round":2,"recorded":{"output":3}}"#,
        r#"{"id":"e","tool":"pay","input":{"amount":6},"round":3,"recorded":{"output":4}}"#,
    ];
    let calls = records(&lines.join("\n"));
    let case = Case { name: "crashed", rules: &rules, calls: &calls, answer: approve, hooks: no_hooks };
    let (live, came) = (parity(&case, &ALL, &[Crash::Never]), parity(&case, &ALL, &[Crash::BeforeStored]));
    assert_eq!((&came.results, &came.seen), (&live.results, &live.seen));
    assert_eq!(kinds(&came), kinds(&live));
    assert_eq!(
        kinds(&came),
        ["a executed", "b failed", "c denied", "d suspended", "d executed", "e executed"]
    );
}

/// Hooks that edit, annotate, block, answer, require approval, wrap and recover; each records its view of the end of the call.
fn hooks(seen: &ObserverLog) -> Vec<ToolHooks> {
    let edits = ToolHooks::new("edits").before(|call| match call.tool.as_str() {
        "look" | "pay" => {
            let mut input = call.input.clone();
            input["limit"] = 10.into();
            BeforeAction::Edit(input)
        }
        _ => BeforeAction::Continue,
    });
    let tags = ToolHooks::new("tags").before(|call| {
        let team = if call.tool == "send" { "red" } else { "blue" };
        BeforeAction::Annotate(callgate::json::Map::from_iter([("team".to_owned(), team.into())]))
    });
    let guards = ToolHooks::new("guards").before(|call| match call.tool.as_str() {
        "drop" => BeforeAction::Block("never".into()),
        "known" => BeforeAction::Skip(json!("kept")),
        "erase" => BeforeAction::RequireApproval(RequiredApproval::new("Erase it?")),
        _ => BeforeAction::Continue,
    });
    let (around, after) = (seen.clone(), seen.clone());
    let wraps = ToolHooks::new("wraps")
        .around(move |call, mut next| {
            around.0.lock().unwrap().push(format!("around {} {}", call.id, call.input));
            Box::pin(async move { Ok(json!({ "wrapped": next.call().await? })) })
        })
        .on_error_async(|_, error| {
            let message = error.message.clone();
            async move {
                if message == "bad" { ErrorAction::Recover(json!("try again")) } else { ErrorAction::Keep }
            }
        })
        .after_async(move |end| {
            let line = format!("after {} {}", end.outcome.id, end.outcome.outcome);
            let after = after.clone();
            async move { after.0.lock().unwrap().push(line) }
        });
    vec![edits, tags, guards, wraps]
}

#[test]
fn hooks_take_part_live_and_resumed_in_every_regime() {
    let text = "policies:
  - { id: ask, match: { tool: [pay, shaky], where: [ { path: $.input.amount, gt: 100 } ] }, approval: {} }
  - { id: red, match: { tool: send, where: [ { path: $.context.metadata.team, eq: red } ] }, approval: { message: 'As red?' } }
  - { id: bound, match: { tool: pay, where: [ { path: $.input.limit, exists: false } ] }, deny: {} }";
    let rules = engine::load_text(text).unwrap();
    let lines = [
        r#"{"id":"a","tool":"look","input":{"q":"x"},"round":1,"recorded":{"output":1}}"#,
        r#"{"id":"b","tool":"pay","input":{"amount":250},"round":1,"recorded":{"output":{"paid":250}}}"#,
        r#"{"id":"c","tool":"drop","input":{},"round":1}"#,
        r#"{"id":"d","tool":"known","input":{},"round":2,"recorded":{"output":2}}"#,
        r#"{"id":"e","tool":"erase","input":{},"round":2,"recorded":{"output":3}}"#,
        r#"{"id":"f","tool":"send","input":{"to":"ana"},"round":3,"recorded":{"output":4}}"#,
        r#"{"id":"g","tool":"shaky","input":{"amount":500},"round":3,"recorded":{"error":{"message":"bad"}}}"#,
        r#"{"id":"h","tool":"pay","input":{"amount":7},"round":4,"recorded":{"output":5}}"#,
    ];
    let calls = records(&lines.join("\n"));
    let case = Case { name: "hooked", rules: &rules, calls: &calls, answer: approve, hooks };
    let came = parity(&case, &ALL, &[Crash::Never, Crash::BetweenRounds]);
    assert_eq!(
        kinds(&came),
        [
            "a executed",
            "b suspended",
            "c denied",
            "b executed",
            "d answered",
            "e suspended",
            "e executed",
            "f suspended",
            "g suspended",
            "f executed",
            "g recovered",
            "h executed"
        ]
    );
    for line in [
        r#"start b {"amount":250,"limit":10}"#,
        r#"around b {"amount":250,"limit":10}"#,
        "after b executed",
        "after c denied",
        "after g recovered",
    ] {
        assert_eq!(came.seen.iter().filter(|seen| *seen == line).count(), 1, "{line}: {:#?}", came.seen);
    }
    let crashed = parity(&case, &ALL, &[Crash::BeforeStored]);
    assert_eq!((&crashed.results, &crashed.seen), (&came.results, &came.seen));
}
