//! The life of one call: I1, I3, I5, I8, I9 and I11.

use std::collections::HashSet;
use std::sync::Mutex;

use callgate::json::{Value, json};
use callgate::seal::Purpose;
use callgate::{
    Clock, Engine, Observer, Outcome, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse, engine,
    json,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::vocabulary::{self, EVERYTHING, Scope, call, policies, rules, unmatched};
use super::{Witness, block_on, execute};

/// A call runs once, with the arguments that it was decided with.
const UNWRAPPED: Scope = Scope { wraps: false, ..EVERYTHING };

/// JSON as programs send it, with numbers in every notation.
fn any_json() -> impl Strategy<Value = Value> {
    let number = select(
        &[
            "0",
            "-0",
            "1",
            "1.0",
            "1e2",
            "1E+2",
            "9007199254740993",
            "0.1",
            "1e400",
            "123456789012345678901234567890",
        ][..],
    )
    .prop_map(|text| json::from_str::<Value>(text).unwrap());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let members = vec((".{0,6}", inner.clone()), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_arguments() -> impl Strategy<Value = Value> {
    vec((".{0,6}", any_json()), 0..5).prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// A tool with one answer that records the arguments as JSON text.
struct Tool {
    answer: Result<Value, String>,
    inputs: Mutex<Vec<String>>,
}

impl ToolExecutor for Tool {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.inputs.lock().unwrap().push(call.input.to_string());
        self.answer.clone().map(ToolResponse::from).map_err(ToolError::new)
    }
}

/// Panics if it is called.
struct Never;

impl ToolExecutor for Never {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        panic!("{call:?} reached its tool");
    }
}

proptest! {
    /// I11. Arguments that are not an object are denied even so: no policy could read them.
    #[test]
    fn i11_without_policies_calls_behave_as_without_callgate(
        tool in ".{1,10}",
        (id, input) in ("[a-z]{1,4}", any_arguments()),
        answer in prop_oneof![any_json().prop_map(Ok), ".{0,12}".prop_map(Err)],
    ) {
        let executor = Tool { answer: answer.clone(), inputs: Mutex::default() };
        let mut session = vocabulary::engine("policies: []").session();
        let outcome = execute(&mut session, ToolCall::new(id, tool, input.clone()), &executor);
        prop_assert_eq!(executor.inputs.into_inner().unwrap(), [input.to_string()]);
        prop_assert_eq!(outcome.input.to_string(), input.to_string());
        match answer {
            Ok(output) => {
                prop_assert_eq!(outcome.outcome, OutcomeKind::Executed);
                prop_assert_eq!(outcome.output.unwrap().to_string(), output.to_string());
                prop_assert_eq!(outcome.error, None);
            }
            Err(error) => {
                prop_assert_eq!(outcome.outcome, OutcomeKind::Failed);
                prop_assert_eq!(outcome.output, None);
                prop_assert_eq!(outcome.error, Some(error));
            }
        }
    }

    /// I1 and I3: only permitted calls reach the tool, with exactly the arguments that were decided, and an approval
    /// binds the digest of those.
    #[test]
    fn i1_i3_only_permitted_calls_run_with_exactly_their_arguments(
        (unmatched, policies, call) in (unmatched(), policies(UNWRAPPED), call()),
    ) {
        let engine = vocabulary::engine(&rules(unmatched, "no_match", &policies));
        let mut session = engine.session();
        let decision = engine.decide(&call, session.state());
        let (permitted, input) = (decision.is_permitted(), decision.input().to_string());
        let digest = engine.keys().digest(Purpose::Arguments, decision.input()).to_string();
        let witness = Witness::default();
        let outcome = execute(&mut session, call.clone(), &witness);
        let seen = witness.seen();
        match outcome.outcome {
            OutcomeKind::Executed => {
                prop_assert!(permitted);
                prop_assert_eq!(seen.len(), 1);
                prop_assert_eq!(seen[0].input.to_string(), input.as_str());
                prop_assert_eq!((&seen[0].id, &seen[0].tool, &seen[0].context), (&call.id, &call.tool, &call.context));
            }
            OutcomeKind::Answered => prop_assert!(permitted && seen.is_empty()),
            kind => {
                prop_assert!(!permitted && seen.is_empty(), "{kind}");
                prop_assert_eq!(kind == OutcomeKind::Suspended, outcome.approval.is_some());
            }
        }
        if let Some(approval) = outcome.approval {
            prop_assert_eq!(approval.input_digest, digest);
            // No policy of the bundle redacts anything here, so the displayed arguments are the bound ones.
            if !policies.iter().any(|policy| policy.get("redact").is_some()) {
                prop_assert_eq!(json::digest(&approval.input).to_string(), json::digest(&outcome.input).to_string());
                prop_assert_eq!(outcome.input.to_string(), input.as_str());
            }
        }
    }

    /// I5: one outcome per call, in order, even if ids repeat; and each pending call has its own request.
    #[test]
    fn i5_round_yields_one_outcome_per_call_and_unique_request_names(
        (unmatched, policies) in (unmatched(), policies(UNWRAPPED)),
        rounds in vec(vec((select(&["", "c", "c_2", "c_2_2", "call_1", "call_1_2"][..]), call()), 0..6), 1..4),
    ) {
        let mut session = vocabulary::engine(&rules(unmatched, "no_match", &policies)).session();
        let mut requests = HashSet::new();
        for round in rounds {
            let calls: Vec<ToolCall> =
                round.into_iter().map(|(id, call)| ToolCall { id: id.to_owned(), ..call }).collect();
            let witness = Witness::default();
            let outcomes = block_on(session.execute_round(calls.clone(), &witness));
            prop_assert_eq!(outcomes.len(), calls.len());
            for (call, outcome) in calls.iter().zip(&outcomes) {
                prop_assert!(call.id.is_empty() || call.id == outcome.id);
                prop_assert_eq!(&call.tool, &outcome.tool);
            }
            let executed = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Executed).count();
            prop_assert_eq!(witness.seen().len(), executed);
            if outcomes.iter().any(|outcome| outcome.outcome == OutcomeKind::Halted) {
                prop_assert_eq!(executed, 0, "a call ran in a round that was halted");
            }
            for approval in outcomes.into_iter().filter_map(|outcome| outcome.approval) {
                prop_assert!(requests.insert(approval.approval_id.clone()), "{} twice", approval.approval_id);
            }
        }
    }
}

#[test]
fn i3_stopped_call_never_reaches_the_tool() {
    for (kind, outcome) in [
        ("deny: {}", OutcomeKind::Denied),
        ("halt: {}", OutcomeKind::Halted),
        ("approval: {}", OutcomeKind::Suspended),
        ("validate: { schema: tool }", OutcomeKind::Invalid),
        ("respond: { output: 1 }", OutcomeKind::Answered),
    ] {
        let rules = format!("policies: [ {{ id: p, match: '*', {kind} }} ]");
        let mut session = vocabulary::engine(&rules).session();
        let calls = (0..3).map(|_| ToolCall::new("c1", "pay", json!({}))).collect();
        let outcomes = block_on(session.execute_round(calls, &Never));
        assert!(outcomes.iter().all(|found| found.outcome == outcome), "{kind}: {outcomes:?}");
    }
}

struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> jiff::Timestamp {
        panic!("no clock")
    }
}

struct PanickingObserver;

impl Observer for PanickingObserver {
    fn on_outcome(&self, _: &Outcome) {
        panic!("clumsy")
    }
}

#[derive(Clone, Default)]
struct Record(std::sync::Arc<Mutex<Vec<OutcomeKind>>>);

impl Observer for Record {
    fn on_outcome(&self, outcome: &Outcome) {
        self.0.lock().unwrap().push(outcome.outcome);
    }
}

#[test]
fn i8_panic_in_the_gate_denies_the_call_without_its_message() {
    let chains =
        engine::load_text("policies: [ { id: ask, match: pay, approval: { expires: 1h } } ]").unwrap();
    let mut session = Engine::builder(chains).clock(NoClock).build().session();
    let calls =
        vec![ToolCall::new("c1", "pay", json!({ "n": 4711 })), ToolCall::new("c2", "mail", json!({}))];
    let witness = Witness::default();
    let outcomes = block_on(session.execute_round(calls, &witness));
    assert_eq!(outcomes[0].outcome, OutcomeKind::Denied);
    assert_eq!(outcomes[0].reason.code, "internal_error");
    assert!(!json::to_string(&outcomes[0]).unwrap().contains("4711"));
    assert_eq!(outcomes[1].outcome, OutcomeKind::Executed, "a sibling is not lost");
    assert_eq!(witness.seen().len(), 1);
}

#[test]
fn i8_panicking_observer_affects_neither_outcome_nor_other_observers() {
    let chains = engine::load_text("policies: [ { id: no, match: pay, deny: {} } ]").unwrap();
    let record = Record::default();
    let builder = Engine::builder(chains)
        .observer(PanickingObserver)
        .observer(record.clone())
        .observer(PanickingObserver);
    let mut session = builder.build().session();
    let calls = vec![ToolCall::new("c1", "pay", json!({})), ToolCall::new("c2", "mail", json!({}))];
    let outcomes = block_on(session.execute_round(calls, &Witness::default()));
    let kinds: Vec<OutcomeKind> = outcomes.iter().map(|outcome| outcome.outcome).collect();
    assert_eq!(kinds, [OutcomeKind::Denied, OutcomeKind::Executed]);
    assert_eq!(*record.0.lock().unwrap(), kinds);
}

/// Reloads the rules while the tool runs.
struct Reloading<'e>(&'e Engine, &'static str);

impl ToolExecutor for Reloading<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.0.replace(engine::load_text(self.1).unwrap());
        Ok(json!({ "secret": "s3cret", "of": call.id }).into())
    }
}

#[test]
fn i9_reload_does_not_affect_calls_and_rounds_in_progress() {
    let engine = vocabulary::engine("policies: [ { id: hide, match: '*', redact: { patterns: [s3cret] } } ]");
    let revision = engine.revision();
    let mut session = engine.session();
    let calls = (1..=2).map(|number| ToolCall::new(format!("c{number}"), "pay", json!({}))).collect();
    let reloading = Reloading(&engine, "policies: [ { id: no, match: pay, deny: {} } ]");
    let outcomes = block_on(session.execute_round(calls, &reloading));
    for outcome in outcomes {
        assert_eq!(outcome.outcome, OutcomeKind::Executed);
        assert_eq!(outcome.revision, revision);
        assert_eq!(outcome.output.unwrap()["secret"], "[redacted]");
    }
    assert_ne!(engine.revision(), revision);
    let next = execute(&mut session, ToolCall::new("c3", "pay", json!({})), &Never);
    assert_eq!(next.outcome, OutcomeKind::Denied);
}
