//! What the calls of a run cost: the requests to a store until their tools begin, counted on the way of real calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::approval::{ApprovalDecision, Inbox, LedgerKey};
use callgate::host::{Observer, StateStore, SystemClock};
use callgate::json::json;
use callgate::message::{History, Message, Part, Role, approval_response};
use callgate::seal::Keys;
use callgate::{Engine, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};

use crate::redis::server::run;

const RULES: &str = "policies:
  - { id: many, match: counted, rate_limit: { limit: 1000, per: 1h } }
  - { id: ask, match: pay, approval: { message: 'Pay?', anonymous: allow } }";

/// The requests of calls until their tools begin.
#[derive(Debug, PartialEq, Eq)]
pub struct RunCost {
    /// A call that is allowed, without limits.
    pub stateless: u64,
    /// A call with limits.
    pub limited: u64,
    /// The first approved call of a run that resumes.
    pub approved: u64,
    /// Each other approved call of the same run, from the beginning of the one before, whose outcome is recorded meanwhile.
    pub others_approved: u64,
}

/// A tool that records how many requests were sent when each call began.
struct CountingTool<'p> {
    requests: &'p (dyn Fn() -> u64 + Sync),
    begun: Mutex<BTreeMap<String, u64>>,
}

impl CountingTool<'_> {
    fn begun(&self, id: &str) -> u64 {
        self.begun.lock().unwrap()[id]
    }
}

impl ToolExecutor for CountingTool<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.begun.lock().unwrap().insert(call.id.clone(), (self.requests)());
        Ok(json!("done").into())
    }
}

/// Counts the approvers' decisions that observers are notified of.
struct Decisions(Arc<AtomicUsize>);

impl Observer for Decisions {
    fn on_approved(&self, _: &ApprovalDecision) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The number of requests once no more follow: a store announces changes after it has answered, which nobody waits for.
fn requests_at_rest(requests: &dyn Fn() -> u64) -> u64 {
    let mut last = requests();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        match requests() {
            same if same == last => return same,
            more => last = more,
        }
    }
}

impl RunCost {
    /// Measures calls over a store whose requests are counted. Maintenance of the store sends some, too, so the least of several attempts
    /// counts.
    pub fn measure(store: impl StateStore + 'static, requests: &(dyn Fn() -> u64 + Sync)) -> Self {
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        let store: Arc<dyn StateStore> = Arc::new(store);
        let decisions = Arc::new(AtomicUsize::new(0));
        let rules = callgate::load_text(RULES).unwrap();
        let engine = Engine::builder(rules)
            .keys(keys.clone())
            .store(Arc::clone(&store))
            .observer(Decisions(Arc::clone(&decisions)))
            .build();
        let inbox = Inbox::new(store, keys, SystemClock);
        let tool = CountingTool { requests, begun: Mutex::default() };
        let begins = |name: &str| {
            let attempts = (0..8).map(|number| {
                let (before, id) = (requests_at_rest(requests), format!("{name}{number}"));
                let outcome = run(engine.session().execute(ToolCall::new(&id, name, json!({})), &tool));
                assert_eq!(outcome.outcome, OutcomeKind::Executed);
                tool.begun(&id) - before
            });
            attempts.min().unwrap()
        };
        let (stateless, limited) = (begins("free"), begins("counted"));
        let approved = (0..8).map(|number| {
            let (talk, ids) = (format!("talk{number}"), ["a", "b"].map(|id| format!("{id}{number}")));
            let calls = ids.iter().map(|id| Part::call(id, "pay", json!({ "id": id }))).collect();
            let mut history = History::new(vec![Message::new(Role::Assistant, calls)]);
            let session = || engine.session().with_name(&talk);
            assert!(run(session().run_round(&mut history, &tool)).unwrap().is_suspended());
            for id in &ids {
                let approval = format!("approval_{id}");
                let key = LedgerKey::of_approval(&talk, &approval);
                run(inbox.answer(&key, approval_response(&approval, true), None)).unwrap();
            }
            let before = requests_at_rest(requests);
            let round = run(session().resume(&mut history, &tool)).unwrap();
            assert!(round.outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Executed));
            let [first, second] = ids.map(|id| tool.begun(&id));
            (first - before, second - first)
        });
        let approved: Vec<(u64, u64)> = approved.collect();
        assert_eq!(decisions.load(Ordering::SeqCst), 16, "observers are notified of each decision once");
        let (firsts, others): (Vec<u64>, Vec<u64>) = approved.into_iter().unzip();
        let (approved, others_approved) =
            (firsts.into_iter().min().unwrap(), others.into_iter().min().unwrap());
        Self { stateless, limited, approved, others_approved }
    }

    /// Checks that the guide states this cost, in this column of its table.
    pub fn check_guide(&self, column: usize) {
        let guide =
            std::fs::read_to_string(crate::fixtures::root().join("docs/guides/share-state.md")).unwrap();
        let Self { stateless, limited, approved, .. } = self;
        for (name, cost) in [
            ("a call of a run without limits", stateless),
            ("a call of a run with limits", limited),
            ("an approved call of a run that resumes, until it executes", approved),
        ] {
            let row = guide.lines().find(|line| line.starts_with(&format!("| {name} |")));
            let row = row.unwrap_or_else(|| panic!("no row of the guide: {name}"));
            assert_eq!(row.split('|').nth(column + 1).map(str::trim), Some(&*cost.to_string()), "{name}");
        }
    }
}
