//! Concurrent calls of one session: no call passes a policy that reads what another call changes, and none waits without need.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::host::ManualClock;
use callgate::json::json;
use callgate::lifecycle::{BeforeAction, HookCall, Middleware};
use callgate::message::{RequestPart, ResponsePart, approval_response};
use callgate::seal::Keys;
use callgate::session::ConcurrentSession;
use callgate::{BoxFuture, Outcome, ToolCall, ToolError, ToolExecutor, ToolResponse};
use proptest::prelude::*;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use crate::approvals::scene::KEY;
use crate::fixtures::{call, keys, kind_and_code, noon, rules};

/// Tools that yield to each other; `slow` ones end when the test releases them.
#[derive(Clone)]
struct Tools {
    let_end: Arc<Semaphore>,
    started: Arc<AtomicUsize>,
}

impl Tools {
    fn new() -> Self {
        Self { let_end: Arc::new(Semaphore::new(0)), started: Arc::default() }
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

impl ToolExecutor for Tools {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.started.fetch_add(1, Ordering::SeqCst);
        if call.tool.starts_with("slow") {
            let _turn = self.let_end.acquire().await.unwrap();
        }
        yield_to_others().await;
        Ok(json!({ "did": call.tool }).into())
    }
}

/// Lets every other task make progress.
async fn yield_to_others() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn session(policies: &str) -> (ConcurrentSession, ManualClock) {
    let clock = noon();
    let text = format!("policies:\n{policies}");
    let engine = rules(&text).clock(clock.clone()).keys(Keys::parse(KEY).unwrap()).build();
    (engine.session().with_name("one").concurrent(), clock)
}

fn begin(session: &ConcurrentSession, tools: &Tools, tool: &str) -> JoinHandle<Outcome> {
    let (session, tools, call) = (session.clone(), tools.clone(), call(tool, json!({})));
    tokio::spawn(async move { session.execute(call, &tools).await })
}

/// Makes these calls at once and returns how many ran.
async fn count_runs(session: &ConcurrentSession, tools: &Tools, calls: usize) -> usize {
    let mut all = JoinSet::new();
    for _ in 0..calls {
        let (session, tools) = (session.clone(), tools.clone());
        all.spawn(async move { session.execute(call("launch", json!({})), &tools).await });
    }
    let outcomes = all.join_all().await;
    assert!(session.is_idle());
    let executed = outcomes.iter().filter(|outcome| outcome.outcome.name() == "executed").count();
    assert_eq!(executed, tools.started(), "the outcomes do not match the calls that ran");
    executed
}

const ONCE: &str = "  - { id: once, match: { tool: [launch, slow_launch], where: { path: '$.session.calls.*', gte: 1 } }, deny: {} }";

#[tokio::test]
async fn concurrent_calls_run_exactly_as_many_as_allowed() {
    let limits = [
        (ONCE, 1),
        ("  - { id: few, match: launch, rate_limit: { limit: 3, per: run } }", 3),
        ("  - { id: few, match: launch, rate_limit: { limit: 3, per: 1h } }", 3),
        ("  - { id: cap, budget: { calls: 4 } }", 4),
        ("  - { id: cap, budget: { calls: 4, per: conversation, on_exceed: deny } }", 4),
    ];
    for (policy, may) in limits {
        let (session, _) = session(policy);
        assert_eq!(count_runs(&session, &Tools::new(), 12).await, may, "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_calls_on_several_threads_run_as_many_as_allowed() {
    for _ in 0..20 {
        let (once, _) = session(ONCE);
        assert_eq!(count_runs(&once, &Tools::new(), 5).await, 1);
        let (few, _) = session("  - { id: few, match: launch, rate_limit: { limit: 3, per: run } }");
        assert_eq!(count_runs(&few, &Tools::new(), 5).await, 3);
    }
}

const LABELLED: &str = "  - { id: tainted, match: slow_fetch, label: { add: [web] } }
  - { id: sealed, match: { tool: send, where: { path: '$.session.labels[*]', eq: web } }, deny: {} }";

#[tokio::test]
async fn call_waits_only_for_calls_that_may_change_what_its_policies_read() {
    let (session, _) = session(LABELLED);
    let tools = Tools::new();
    let fetch = begin(&session, &tools, "slow_fetch");
    yield_to_others().await;
    let send = begin(&session, &tools, "send");
    yield_to_others().await;
    assert_eq!(
        begin(&session, &tools, "other").await.unwrap().outcome.name(),
        "executed",
        "no call blocks it"
    );
    assert!(!send.is_finished(), "the label is not known yet");
    assert_eq!(tools.started(), 2);
    tools.let_end.add_permits(1);
    assert_eq!(fetch.await.unwrap().outcome.name(), "executed");
    assert_eq!(kind_and_code(&send.await.unwrap()), ("denied", "denied"));
}

#[tokio::test]
async fn cancelled_call_counts_as_started_and_blocks_no_other() {
    let (session, _) = session(ONCE);
    let tools = Tools::new();
    let given_up = begin(&session, &tools, "slow_launch");
    yield_to_others().await;
    assert_eq!(tools.started(), 1);
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    assert!(session.is_idle());
    assert_eq!(kind_and_code(&begin(&session, &tools, "launch").await.unwrap()), ("denied", "denied"));
    // A call that is cancelled before its tool starts does not count.
    let (session, tools) = (self::session(ONCE).0, Tools::new());
    begin(&session, &tools, "launch").abort();
    yield_to_others().await;
    assert_eq!(begin(&session, &tools, "launch").await.unwrap().outcome.name(), "executed");
}

#[tokio::test]
async fn budget_makes_calls_wait_only_if_it_could_be_exhausted() {
    let (session, _) = session("  - { id: cap, budget: { calls: 3, on_exceed: deny } }");
    let tools = Tools::new();
    let slow = begin(&session, &tools, "slow_one");
    yield_to_others().await;
    assert_eq!(begin(&session, &tools, "one").await.unwrap().outcome.name(), "executed");
    let two = begin(&session, &tools, "slow_two");
    let three = begin(&session, &tools, "three");
    yield_to_others().await;
    assert_eq!(tools.started(), 3);
    assert!(!three.is_finished(), "it is not known yet whether a call is left");
    tools.let_end.add_permits(2);
    assert_eq!(three.await.unwrap().reason.code, "budget_exceeded");
    assert_eq!([slow.await.unwrap(), two.await.unwrap()].map(|call| call.outcome.name()), ["executed"; 2]);
}

/// A tool that calls another one of the same session and waits for it.
struct Nested<'s>(&'s ConcurrentSession, Tools);

impl ToolExecutor for Nested<'_> {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        let inner = self.0.execute(call("launch", json!({})), &self.1).await;
        Ok(json!([inner.outcome.name(), inner.reason.code]).into())
    }
}

#[tokio::test(start_paused = true)]
async fn circular_wait_between_calls_ends_as_undecided() {
    // Calls wait by the engine's clock; the timer of this one advances while all tasks wait.
    let session = rules(&format!("policies:\n{ONCE}")).build().session().with_name("one").concurrent();
    let tools = Tools::new();
    let outcome = session.execute(call("outer", json!({})), &Nested(&session, tools.clone())).await;
    assert_eq!(outcome.output, Some(json!(["denied", "undecided"])));
    assert_eq!(tools.started(), 0);
    assert!(session.is_idle());
}

fn answer(question: &RequestPart, approved: bool) -> ResponsePart {
    let approval_token = question.approval_token.clone();
    ResponsePart { approval_token, ..approval_response(&question.approval_id, approved) }
}

#[tokio::test]
async fn approved_call_resumed_concurrently_runs_once_beside_other_calls() {
    // The second one polls with a clock, so this clock must advance.
    let engine = rules("policies: [ { id: ask, match: launch, approval: {} } ]");
    let session = engine.keys(Keys::parse(KEY).unwrap()).build().session().with_name("one").concurrent();
    let tools = Tools::new();
    let asked = ToolCall::new("a", "launch", json!({ "to": 1 }));
    let outcome = session.execute(asked.clone(), &tools).await;
    assert_eq!(outcome.outcome.name(), "suspended");
    let question = RequestPart::from(outcome.approval.as_deref().unwrap());
    assert!(session.allows_anonymous_answers(&question));
    assert_eq!(begin(&session, &tools, "other").await.unwrap().outcome.name(), "executed");
    let waits = session.resume_call(asked.clone(), &question, &[], &tools).await;
    assert_eq!(waits.outcome.name(), "suspended", "no response yet");
    let yes = [answer(&question, true)];
    let other = ToolCall { input: json!({ "to": 2 }), ..asked.clone() };
    let changed = session.resume_call(other, &question, &yes, &tools).await;
    assert_ne!(changed.outcome.name(), "executed", "other arguments than in the request");
    assert_eq!(tools.started(), 1);
    // On the heap: a test's thread has a small stack.
    let taken_up = || Box::pin(session.resume_call(asked.clone(), &question, &yes, &tools));
    let (one, two) = tokio::join!(taken_up(), taken_up());
    let runs = [&one, &two].iter().filter(|outcome| outcome.outcome.name() == "executed").count();
    assert!(runs >= 1, "{one:?} {two:?}");
    assert_eq!(tools.started(), 2, "once, besides the other call");
}

#[tokio::test]
async fn denied_call_does_not_run() {
    let (session, _) = session("  - { id: ask, match: launch, approval: {} }");
    let tools = Tools::new();
    let asked = ToolCall::new("a", "launch", json!({}));
    let question = session.execute(asked.clone(), &tools).await.approval.unwrap();
    let question = RequestPart::from(&*question);
    let outcome = session.resume_call(asked, &question, &[answer(&question, false)], &tools).await;
    assert_eq!(outcome.outcome.name(), "denied");
    assert_eq!(tools.started(), 0);
}

#[tokio::test]
async fn session_continues_where_an_earlier_process_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().join("state.db").display());
    let text = "policies:
      - { id: mark, match: read, label: { add: [untrusted] } }
      - { id: no-sending, match: { tool: send, where: { path: '$.session.labels[*]', eq: untrusted } }, deny: {} }";
    let later = |name: &'static str| {
        let engine = rules(text).keys(keys()).store(callgate_sqlite::open_store(&url).unwrap()).build();
        engine.session().with_name(name).concurrent()
    };
    let tools = Tools::new();
    let did = later("one").execute(call("read", json!({})), &tools).await;
    assert_eq!(kind_and_code(&did).0, "executed");
    let did = later("one").execute(call("send", json!({})), &tools).await;
    assert_eq!((did.outcome.name(), did.reason.policy.as_deref()), ("denied", Some("no-sending")));
    let did = later("another").execute(call("send", json!({})), &tools).await;
    assert_eq!(kind_and_code(&did).0, "executed");
}

/// Tools whose calls end in the order in which the test releases them.
#[derive(Clone, Default)]
struct InOrder(Arc<HashMap<String, Semaphore>>);

impl ToolExecutor for InOrder {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        if let Some(end) = self.0.get(&call.id) {
            let _end = end.acquire().await.unwrap();
        }
        Ok(json!({ "did": call.tool }).into())
    }
}

const ORDERED: &str = "
  - { id: status, match: set, fact: { name: status, value: $.input.status } }
  - { id: order, match: set, fact: { name: order, key: $.input.order, value: $.input.status } }
  - { id: open, match: { tool: blur, where: { path: $.context.absent.deeper, eq: 1 } }, fact: { name: status, value: $.input.status } }
  - { id: web, match: fetch, label: { add: [web] } }
  - { id: after-bad, match: { tool: fetch, where: { path: $.session.facts.status, eq: bad } }, label: { add: [bad-web] } }
  - { id: no-pay, match: { tool: pay, where: { path: $.session.facts.status, eq: bad } }, deny: { message: 'it is {{ session.facts.status }}' } }
  - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: web } }, deny: {} }
  - { id: twice, match: { tool: send, where: { path: $.session.calls.send, gte: 2 } }, deny: {} }
  - { id: few, match: pay, rate_limit: { limit: 2, per: run } }
  - { id: enough, match: { tool: stop, where: { path: '$.session.labels[*]', eq: bad-web } }, halt: {} }";

/// A call of a round: its tool and its arguments.
fn step() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    let tools = prop::sample::select(
        ["set", "set", "set", "blur", "fetch", "pay", "send", "stop", "other"].as_slice(),
    );
    let status = prop::sample::select(["good", "bad"].as_slice());
    (tools, status, prop::sample::select(["o1", "o2"].as_slice()))
}

type Steps = Vec<(&'static str, &'static str, &'static str)>;

/// The outcomes of calls that were started at once in this order and ended in that one, and of some calls afterwards.
async fn at_once(steps: &Steps, ends: &[usize]) -> Vec<String> {
    let (session, _) = session(ORDERED);
    let name = |index: usize| format!("c{index}");
    let tools = InOrder(Arc::new((0..steps.len()).map(|index| (name(index), Semaphore::new(0))).collect()));
    let mut calls = Vec::new();
    for (index, (tool, status, order)) in steps.iter().enumerate() {
        let call = ToolCall::new(name(index), *tool, json!({ "status": status, "order": order }));
        let (session, tools) = (session.clone(), tools.clone());
        calls.push(tokio::spawn(async move { session.execute(call, &tools).await }));
        yield_to_others().await;
    }
    for index in ends {
        tools.0[&name(*index)].add_permits(1);
        yield_to_others().await;
    }
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap());
    }
    with_later_calls(&session, outcomes).await
}

/// The same calls in sequence.
async fn one_by_one(steps: &Steps) -> Vec<String> {
    let (session, _) = session(ORDERED);
    let mut outcomes = Vec::new();
    for (index, (tool, status, order)) in steps.iter().enumerate() {
        let call = ToolCall::new(format!("c{index}"), *tool, json!({ "status": status, "order": order }));
        outcomes.push(session.execute(call, &InOrder::default()).await);
    }
    with_later_calls(&session, outcomes).await
}

async fn with_later_calls(session: &ConcurrentSession, mut outcomes: Vec<Outcome>) -> Vec<String> {
    assert!(session.is_idle());
    let state = session.state();
    for tool in ["pay", "send", "stop", "other"] {
        outcomes.push(session.execute(call(tool, json!({})), &InOrder::default()).await);
    }
    let said = |outcome: &Outcome| format!("{} {:?} {:?}", outcome.outcome, outcome.reason, outcome.output);
    let mut all: Vec<String> = outcomes.iter().map(said).collect();
    all.push(format!("{} {:?} {:?}", state.document(), state.unknown_parts(), state.halt_message()));
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn concurrent_calls_have_the_effects_of_sequential_ones_in_any_order(
        (steps, ends) in prop::collection::vec(step(), 1..7)
            .prop_flat_map(|steps| { let ends: Vec<usize> = (0..steps.len()).collect(); (Just(steps), Just(ends).prop_shuffle()) }),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (at_once, one_by_one) = (at_once(&steps, &ends).await, one_by_one(&steps).await);
            prop_assert_eq!(at_once, one_by_one);
            Ok(())
        })?;
    }
}

/// A hook that holds payments back until the test releases them.
struct HoldsPayments(Arc<Semaphore>);

impl Middleware for HoldsPayments {
    fn id(&self) -> &str {
        "holds-payments"
    }

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        Box::pin(async move {
            if call.tool == "pay" {
                let _turn = self.0.acquire().await.unwrap();
            }
            BeforeAction::Continue
        })
    }
}

#[tokio::test]
async fn call_sees_what_earlier_calls_changed_while_its_hooks_ran() {
    let release = Arc::new(Semaphore::new(0));
    let engine = rules(&format!("policies:\n{ORDERED}")).build();
    let session = engine.session().with_middleware(HoldsPayments(Arc::clone(&release))).concurrent();
    let tools = InOrder(Arc::new(HashMap::from([("set".to_owned(), Semaphore::new(0))])));
    let [set, pay] = ["set", "pay"].map(|id| {
        let (session, tools) = (session.clone(), tools.clone());
        let call = ToolCall::new(id, id, json!({ "status": "bad", "order": "o1" }));
        tokio::spawn(async move { session.execute(call, &tools).await })
    });
    yield_to_others().await;
    tools.0["set"].add_permits(1);
    assert_eq!(kind_and_code(&set.await.unwrap()).0, "executed");
    release.add_permits(1);
    let outcome = pay.await.unwrap();
    assert_eq!((outcome.outcome.name(), outcome.reason.message.as_str()), ("denied", "it is bad"));
}

#[tokio::test]
async fn calls_after_one_that_turns_out_not_to_halt_run_beside_it() {
    let (session, _) = session(ORDERED);
    let ids = ["fetch", "stop", "other"];
    let tools = InOrder(Arc::new(ids.map(|id| (id.to_owned(), Semaphore::new(0))).into_iter().collect()));
    let [fetch, stop, other] = ids.map(|id| {
        let (session, tools) = (session.clone(), tools.clone());
        tokio::spawn(async move { session.execute(ToolCall::new(id, id, json!({})), &tools).await })
    });
    yield_to_others().await;
    tools.0["other"].add_permits(1);
    yield_to_others().await;
    // `fetch` may add the label for which `stop` halts the run.
    assert!(!other.is_finished());
    tools.0["fetch"].add_permits(1);
    yield_to_others().await;
    assert!(fetch.is_finished() && other.is_finished() && !stop.is_finished());
    tools.0["stop"].add_permits(1);
    for call in [fetch, stop, other] {
        assert_eq!(kind_and_code(&call.await.unwrap()).0, "executed");
    }
}

#[tokio::test]
async fn slow_earlier_call_does_not_overwrite_the_fact_of_a_later_one() {
    let steps = vec![("set", "good", "o1"), ("set", "bad", "o1"), ("pay", "", "")];
    for ends in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
        let told = at_once(&steps, &ends).await;
        assert!(told[2].starts_with("denied") && told[3].starts_with("denied"), "{ends:?}: {told:?}");
        assert!(told.last().unwrap().contains(r#""status":"bad""#), "{told:?}");
    }
}
