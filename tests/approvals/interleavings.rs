//! A model checker of the claim protocol: two processes resume one approved call, and every interleaving of their store operations is tried,
//! with processes that are killed and stores whose replies are lost. The engine itself is what runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use callgate::Engine;
use callgate::host::{ManualClock, RecordKey, StateStore, StoreError, StoreFuture};
use callgate::json::json;
use callgate::message::{History, Message, Part, Role, approval_response};
use callgate::seal::Keys;

use super::scene::KEY;
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, noon, rules};

const RULES: &str = "policies: [ { id: ask, match: refund, approval: { message: 'Refund?' } } ]";
/// Each run is bounded, so that a process that waits for ever fails the test.
const MAX_STEPS: usize = 2_000;

/// What happens to a write.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Fault {
    None,
    /// It is stored, and its reply is lost.
    ReplyLost,
    /// It is not stored, and fails.
    Rejected,
}

/// A shared store each operation of which waits until the scheduler permits it.
#[derive(Default)]
struct Scheduled {
    permits: AtomicUsize,
    waiting: AtomicUsize,
    fault: AtomicU8,
}

impl Scheduled {
    fn is_permitted(&self) -> bool {
        let taken = self.permits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if taken.is_err() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
        taken.is_ok()
    }

    async fn permission(&self) {
        std::future::poll_fn(|_| if self.is_permitted() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Alteration for Scheduled {
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.permission().await;
            good.await
        })
    }

    fn write_record<'a>(&'a self, good: StoreFuture<'a, bool>, _: RecordKey<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            self.permission().await;
            let fault = self.fault.swap(Fault::None as u8, Ordering::SeqCst);
            let failed = || Err(StoreError::Unavailable("the connection was lost".to_owned()));
            if fault == Fault::Rejected as u8 {
                return failed();
            }
            self.permits.fetch_add(1, Ordering::SeqCst);
            let written = good.await;
            if fault == Fault::ReplyLost as u8 { failed() } else { written }
        })
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// The choices of one run; those after the given ones are the first of their options.
struct Choices {
    taken: Vec<(usize, usize)>,
    position: usize,
}

impl Choices {
    fn choose(&mut self, options: usize) -> usize {
        if self.position == self.taken.len() {
            self.taken.push((0, options));
        }
        let (choice, known) = self.taken[self.position];
        assert_eq!(known, options, "a run is not deterministic");
        self.position += 1;
        choice
    }

    /// The choices of the next run. Returns `false` after the last one.
    fn advance(&mut self) -> bool {
        self.position = 0;
        while let Some((choice, options)) = self.taken.pop() {
            if choice + 1 < options {
                self.taken.push((choice + 1, options));
                return true;
            }
        }
        false
    }
}

/// How much may go wrong in one run.
#[derive(Clone, Copy)]
struct Budget {
    /// How often a process is interrupted in favour of another one.
    switches: usize,
    faults: usize,
    kills: usize,
}

/// What outlives the processes: of all runs, each with a conversation of its own.
struct World {
    clock: ManualClock,
    store: Arc<Altered<Scheduled>>,
    tool: Tool,
    /// Those of two processes, and of one that comes later.
    engines: [Engine; 3],
}

/// A call that was approved and has not run, in its conversation.
struct ApprovedCall {
    conversation: String,
    history: History,
}

type Process<'p> = Pin<Box<dyn Future<Output = &'static str> + 'p>>;

impl World {
    fn new() -> Self {
        let clock = noon();
        let store = Arc::new(Altered::by(Scheduled::default()));
        let engine = || {
            let shared: Arc<dyn StateStore> = Arc::clone(&store) as _;
            rules(RULES).keys(Keys::parse(KEY).unwrap()).clock(clock.clone()).store(shared).build()
        };
        let engines = [engine(), engine(), engine()];
        let tool = Tool::scripted(&clock, [(Duration::from_millis(5), Ok(json!("refunded")))]);
        Self { clock, store, tool, engines }
    }

    fn approved_call(&self, number: usize) -> ApprovedCall {
        let conversation = format!("talk {number}");
        self.store.by.permits.store(usize::MAX / 2, Ordering::SeqCst);
        let call = Part::call("c1", "refund", json!({ "amount": 5 }));
        let mut history = History::new(vec![Message::new(Role::Assistant, vec![call])]);
        let mut session = self.engines[0].session().with_name(&conversation);
        let asked = self.clock.block_on(session.run_round(&mut history, &self.tool)).unwrap();
        assert!(asked.is_suspended());
        history.append_approval_response(approval_response("approval_c1", true)).unwrap();
        self.store.by.permits.store(0, Ordering::SeqCst);
        ApprovedCall { conversation, history }
    }

    /// A process that resumes the call.
    fn process(&self, engine: usize, call: &ApprovedCall) -> Process<'_> {
        let mut session = self.engines[engine].session().with_name(&call.conversation);
        let mut history = call.history.clone();
        Box::pin(async move {
            let round = session.resume(&mut history, &self.tool).await.unwrap();
            round.outcomes[0].outcome.name()
        })
    }

    /// Permits one store operation, and continues a process until the next one. Returns its outcome, and whether it waits for the clock.
    fn step(&self, process: &mut Process<'_>, fault: Fault) -> (Option<&'static str>, bool) {
        let Scheduled { permits, waiting, fault: next } = &self.store.by;
        next.store(fault as u8, Ordering::SeqCst);
        permits.store(1, Ordering::SeqCst);
        waiting.store(0, Ordering::SeqCst);
        let polled = process.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        permits.store(0, Ordering::SeqCst);
        next.store(Fault::None as u8, Ordering::SeqCst);
        match polled {
            Poll::Ready(outcome) => (Some(outcome), false),
            Poll::Pending => (None, waiting.load(Ordering::SeqCst) == 0),
        }
    }

    /// Runs processes as the choices say. Returns their outcomes; those that were killed have none.
    fn run(&self, processes: Vec<Process<'_>>, choices: &mut Choices, budget: Budget) -> Vec<&'static str> {
        let Budget { mut switches, mut faults, mut kills } = budget;
        let mut alive: Vec<(Process<'_>, bool)> =
            processes.into_iter().map(|process| (process, false)).collect();
        let (mut outcomes, mut current) = (Vec::new(), 0);
        for _ in 0..MAX_STEPS {
            let Some(last) = alive.len().checked_sub(1) else { return outcomes };
            if alive.iter().all(|(_, sleeps)| *sleeps) {
                self.clock.advance(Duration::from_secs(1));
                alive.iter_mut().for_each(|(_, sleeps)| *sleeps = false);
            }
            let others: Vec<usize> =
                (0..=last).filter(|other| *other != current && !alive[*other].1).collect();
            let runs_on = current <= last && !alive[current].1;
            // Whoever runs may run on; to interrupt it costs.
            let options = match runs_on {
                true if switches == 0 => vec![current],
                true => std::iter::once(current).chain(others).collect(),
                false => others,
            };
            let next = options[choices.choose(options.len())];
            switches -= usize::from(runs_on && next != current);
            current = next;
            let mishaps = [
                (faults > 0, Mishap::Fault(Fault::ReplyLost)),
                (faults > 0, Mishap::Fault(Fault::Rejected)),
                (kills > 0, Mishap::Kill),
            ];
            let possible: Vec<Mishap> = std::iter::once(Mishap::Fault(Fault::None))
                .chain(mishaps.into_iter().filter(|(is_possible, _)| *is_possible).map(|(_, mishap)| mishap))
                .collect();
            let fault = match possible[choices.choose(possible.len())] {
                Mishap::Kill => {
                    kills -= 1;
                    drop(alive.remove(current));
                    continue;
                }
                Mishap::Fault(fault) => fault,
            };
            faults -= usize::from(fault != Fault::None);
            let (process, sleeps) = &mut alive[current];
            let (outcome, waits) = self.step(process, fault);
            *sleeps = waits;
            if let Some(outcome) = outcome {
                outcomes.push(outcome);
                drop(alive.remove(current));
            }
        }
        panic!("a process waits for ever");
    }
}

#[derive(Clone, Copy)]
enum Mishap {
    Fault(Fault),
    Kill,
}

/// Runs every interleaving within a budget. Returns how many there are, and in how many the call ran.
fn explore(budget: Budget) -> (usize, usize) {
    let (world, mut choices) = (World::new(), Choices { taken: Vec::new(), position: 0 });
    // Each engine learns whose store it is before the runs, which then take the same steps.
    let first = world.approved_call(0);
    for engine in 0..3 {
        let none = Budget { switches: 0, faults: 0, kills: 0 };
        let mut given = Choices { taken: Vec::new(), position: 0 };
        assert_eq!(world.run(vec![world.process(engine, &first)], &mut given, none), ["executed"]);
    }
    let executed_before = world.tool.count();
    let mut run = 0;
    loop {
        run += 1;
        let (call, before) = (world.approved_call(run), world.tool.count());
        let processes = vec![world.process(0, &call), world.process(1, &call)];
        let mut outcomes = world.run(processes, &mut choices, budget);
        let trace = format!("{:?}: {outcomes:?}", choices.taken);
        // Whoever comes later finds out as much as can be known.
        let none = Budget { switches: 0, faults: 0, kills: 0 };
        let mut later = Choices { taken: Vec::new(), position: 0 };
        outcomes.extend(world.run(vec![world.process(2, &call)], &mut later, none));
        let ran = world.tool.count() - before;
        assert!(ran <= 1, "the call ran twice: {trace}");
        assert!(ran == 1 || !outcomes.contains(&"executed"), "the call did not run: {trace}");
        let last = *outcomes.last().unwrap();
        assert!(["executed", "indeterminate"].contains(&last), "{trace}, later {last}");
        if budget.faults + budget.kills == 0 {
            assert_eq!(outcomes, ["executed"; 3], "{trace}");
        }
        if !choices.advance() {
            return (run, world.tool.count() - executed_before);
        }
    }
}

#[test]
fn i4_a_call_runs_once_in_every_interleaving_of_two_processes() {
    let (runs, executions) = explore(Budget { switches: 2, faults: 0, kills: 0 });
    assert!(runs > 40 && executions == runs, "{executions} of {runs}");
}

#[test]
fn i4_a_call_never_runs_twice_whatever_is_lost_between_two_processes() {
    let (runs, executions) = explore(Budget { switches: 1, faults: 1, kills: 0 });
    assert!(runs > 200 && executions < runs, "{executions} of {runs}");
}

#[test]
fn i4_a_call_never_runs_twice_whenever_a_process_is_killed() {
    let (runs, executions) = explore(Budget { switches: 1, faults: 0, kills: 1 });
    // Whoever is killed has claimed the call and begun to run it, or has not claimed it.
    assert!(runs > 100 && executions == runs, "{executions} of {runs}");
}
