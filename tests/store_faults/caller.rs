//! A process that sends calls through an engine of its own, on a store that it shares with others, until it is killed.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::approval::{Inbox, LedgerKey};
use callgate::host::{Clock, StateStore};
use callgate::json::json;
use callgate::message::approval_response;
use callgate::seal::Keys;
use callgate::{Engine, Outcome, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};
use callgate_postgres::{PostgresSettings, PostgresStore};
use callgate_redis::{RedisSettings, RedisStore};
use jiff::{Timestamp, ToSpan as _};

use super::effects::{append, monotonic_micros};

/// The name of the test that is a caller when it has an order.
const TEST: &str = "store_faults::caller::a_caller_process";
const ORDER: &str = "CALLGATE_TEST_CALLER";

/// The window of the limit `pace`, and how much it admits in one.
pub const WINDOW: Duration = Duration::from_millis(250);
pub const PACE: usize = 12;
/// How many calls a caller that completes them attempts at a time: it waits some seconds for each that another one has left unfinished.
const LANES: usize = 32;

/// What a caller does.
#[derive(Clone, Debug)]
pub struct Order {
    pub state: String,
    /// Where the logs are.
    pub folder: PathBuf,
    pub calls: usize,
    /// All calls of all callers that run, together.
    pub limit: usize,
    /// The time of the first call, and from call to call, in microseconds. All callers attempt a call at the same time.
    pub start: i64,
    pub interval: i64,
    /// By how much the clock of this host is wrong.
    pub clock_minutes: i64,
    /// Every call is attempted, and again until it has a final outcome.
    pub completes: bool,
}

/// A running caller. It ends when this is dropped, and when the process that started it ends, however that happens.
pub struct CallerProcess {
    child: Child,
    /// The caller ends when its standard input does.
    _stdin: ChildStdin,
}

impl CallerProcess {
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// How it has ended, if it has.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until it ends. Returns whether it has succeeded, or `None` if it has not ended in time.
    pub fn wait(&mut self, timeout: Duration) -> Option<bool> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.exit_status() {
                return Some(status.success());
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for CallerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Order {
    /// Starts a process.
    pub fn spawn(&self) -> CallerProcess {
        let Self { state, folder, calls, limit, start, interval, clock_minutes, completes } = self;
        let words = [
            state.clone(),
            folder.to_str().unwrap().to_owned(),
            calls.to_string(),
            limit.to_string(),
            start.to_string(),
            interval.to_string(),
            clock_minutes.to_string(),
            completes.to_string(),
        ];
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--ignored", "--nocapture"])
            .env(ORDER, words.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Taken, because waiting for the process would close it.
        let stdin = child.stdin.take().unwrap();
        CallerProcess { child, _stdin: stdin }
    }

    fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.lines().collect();
        let [state, folder, calls, limit, start, interval, clock_minutes, completes] = words[..] else {
            panic!("{text}")
        };
        let number = |text: &str| text.parse::<i64>().unwrap();
        Self {
            state: state.to_owned(),
            folder: folder.into(),
            calls: number(calls) as usize,
            limit: number(limit) as usize,
            start: number(start),
            interval: number(interval),
            clock_minutes: number(clock_minutes),
            completes: completes == "true",
        }
    }
}

#[test]
#[ignore = "a process that other tests start"]
fn a_caller_process() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let order = Order::parse(&order);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        // Two hosts in one process: they attempt every call at the same time, also if processes are slow to start.
        let hosts = [Rc::new(Caller::new(&order).await), Rc::new(Caller::new(&order).await)];
        let lanes = if order.completes { LANES } else { 1 };
        let tasks: Vec<_> = hosts
            .iter()
            .flat_map(|host| (0..lanes).map(|lane| (Rc::clone(host), lane)))
            .map(|(host, lane)| tokio::task::spawn_local(async move { host.run(lane, lanes).await }))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

struct OffsetClock(i64);

impl Clock for OffsetClock {
    fn now(&self) -> Timestamp {
        Timestamp::now().checked_add(self.0.minutes()).unwrap()
    }
}

/// The tool: it writes down that it ran.
struct Recorder<'c> {
    folder: &'c Path,
    file: &'static str,
    sent: i64,
}

impl ToolExecutor for Recorder<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        append(self.folder, self.file, &format!("{} {} {}", call.id, self.sent, monotonic_micros()));
        Ok(json!("done").into())
    }
}

struct Caller {
    order: Order,
    engine: Engine,
    inbox: Inbox,
}

/// The store of a URL; tried again while its server is away.
async fn open(state: &str) -> Arc<dyn StateStore> {
    loop {
        let state = state.to_owned();
        // It waits, so it is not opened on a thread of the runtime.
        let opened = std::thread::spawn(move || -> Result<Arc<dyn StateStore>, String> {
            if state.starts_with("postgres") {
                let settings = PostgresSettings::parse(&state, None).unwrap();
                return Ok(Arc::new(PostgresStore::open(settings).map_err(|error| error.to_string())?));
            }
            let settings = RedisSettings::parse(&state, None).unwrap();
            Ok(Arc::new(RedisStore::open(settings).map_err(|error| error.to_string())?))
        });
        match opened.join().unwrap() {
            Ok(store) => return store,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

impl Caller {
    async fn new(order: &Order) -> Self {
        let store = open(&order.state).await;
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        let rules = format!(
            "policies:
              - {{ id: most, match: [pay, refund], rate_limit: {{ limit: {}, per: 24h }} }}
              - {{ id: ask, match: refund, approval: {{ message: 'Refund?', expires: 24h, anonymous: allow }} }}
              - {{ id: pace, match: look, rate_limit: {{ limit: {PACE}, per: {}ms, algorithm: sliding_window }} }}",
            order.limit,
            WINDOW.as_millis(),
        );
        let rules = callgate::load_text(&rules).unwrap();
        let order = order.clone();
        let clock_minutes = order.clock_minutes;
        let clock = || OffsetClock(clock_minutes);
        let engine =
            Engine::builder(rules).keys(keys.clone()).store(Arc::clone(&store)).clock(clock()).build();
        Self { order, engine, inbox: Inbox::new(store, keys, clock()) }
    }

    /// Attempts every `lanes`th call, beginning with number `lane`.
    async fn run(&self, lane: usize, lanes: usize) {
        let Order { calls, start, interval, completes, .. } = self.order;
        let due = |number: usize| start + interval * number as i64;
        let mut number = lane;
        while number < calls {
            if !completes {
                // A caller that is late goes on with the others.
                number = number.max(((monotonic_micros() - start) / interval + 1).max(0) as usize);
                if number >= calls {
                    return;
                }
                let wait = due(number) - monotonic_micros();
                tokio::time::sleep(Duration::from_micros(wait.max(0).unsigned_abs())).await;
            }
            self.bring_to_outcome(number).await;
            self.look().await;
            number += lanes;
        }
    }

    /// A call that only its limit stops.
    async fn look(&self) {
        let sent = monotonic_micros();
        let id = format!("{}-{sent}", std::process::id());
        let tool = Recorder { folder: &self.order.folder, file: "looks", sent };
        self.engine.session().execute(ToolCall::new(&id, "look", json!({})), &tool).await;
    }

    /// Attempts a call; every fourth one needs an approval, which every caller gives.
    async fn bring_to_outcome(&self, number: usize) {
        let (id, tool) = (format!("c{number}"), if number.is_multiple_of(4) { "refund" } else { "pay" });
        loop {
            let from = monotonic_micros();
            let outcome = self.attempt(&id, tool).await;
            let kind = match outcome.outcome {
                OutcomeKind::Denied => outcome.reason.code.clone(),
                kind => kind.to_string(),
            };
            // A recorded denial is final, whatever its reason: whoever sends the call again gets it again.
            let is_final =
                outcome.replayed || ["executed", "indeterminate", "rate_limited"].contains(&kind.as_str());
            let end = if is_final { "final" } else { "open" };
            let reason = outcome.reason.message.replace('\n', " ");
            let line = format!("{id} {from} {} {kind} {end} {reason}", monotonic_micros());
            append(&self.order.folder, "attempts", &line);
            let goes_on = match kind.as_str() {
                // To a host whose clock is behind, a request was made in the future. It stays pending there for minutes.
                "suspended" if !reason.contains("later than the present time") => {
                    self.approve(&id).await;
                    true
                }
                _ => self.order.completes && !is_final,
            };
            if !goes_on {
                return;
            }
            tokio::time::sleep(Duration::from_millis(if kind == "suspended" { 0 } else { 20 })).await;
        }
    }

    async fn attempt(&self, id: &str, tool: &str) -> Outcome {
        let recorder = Recorder { folder: &self.order.folder, file: "runs", sent: monotonic_micros() };
        // A session of its own, because a call that never ended makes the state of its session unknown.
        let mut session = self.engine.session().with_name(id).with_call_recording();
        session.execute(ToolCall::new(id, tool, json!({ "id": id })), &recorder).await
    }

    /// An answer that another caller gave first changes nothing.
    async fn approve(&self, id: &str) {
        let approval = format!("approval_{id}");
        let key = LedgerKey::of_approval(id, &approval);
        if let Err(error) = self.inbox.answer(&key, approval_response(&approval, true), None).await {
            let now = monotonic_micros();
            append(&self.order.folder, "answers", &format!("{id} {now} {now} rejected open {error}"));
        }
    }
}
