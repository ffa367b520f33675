//! Callers that race on a store while something fails: starts them, kills them, and checks what they wrote down.

use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::caller::{Order, PACE, WINDOW};
use super::effects::{by_id, monotonic_micros, most_in_a_window, races, read};

/// How many callers attempt every call.
const CALLERS: usize = 3;
/// Longer than any store needs to be used again after its fault is gone.
const RECOVERY: Duration = Duration::from_secs(60);

/// How large a run is.
#[derive(Clone, Copy)]
pub struct Size {
    pub calls: usize,
    pub kills: usize,
    /// How often the fault of the run happens.
    pub faults: usize,
}

impl Size {
    /// The small size, or the large one in a long run.
    pub fn of(small: Self, large: Self) -> Self {
        let is_long = std::env::var("CALLGATE_LONG_TESTS").is_ok_and(|value| value == "1");
        if is_long { large } else { small }
    }
}

/// Runs callers on a store. `fault` is called as often as the size says, with the number of the fault, and returns when the store should work
/// again. The next fault waits until it does.
pub fn run(name: &str, state: &str, size: Size, mut fault: impl FnMut(usize)) {
    let folder = tempfile::tempdir().unwrap();
    let limit = size.calls * 9 / 10;
    let order = Order {
        state: state.to_owned(),
        folder: folder.path().to_owned(),
        calls: size.calls,
        limit,
        start: monotonic_micros() + 500_000,
        interval: if cfg!(debug_assertions) { 25_000 } else { 5_000 },
        clock_minutes: 0,
        completes: false,
    };
    let (kills, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut recoveries = Vec::new();
    std::thread::scope(|scope| {
        let callers = scope.spawn(|| {
            keep_callers(&order, size.kills, &kills);
            ended.store(true, Ordering::SeqCst);
        });
        for number in 0..size.faults {
            let due = order.interval * (size.calls * (number + 1) / (size.faults + 1)) as i64;
            let wait = order.start + due - monotonic_micros();
            std::thread::sleep(Duration::from_micros(wait.max(0).unsigned_abs()));
            fault(number);
            let (begun, known) = (Instant::now(), runs_and_replays(&order));
            wait_until(|| ended.load(Ordering::SeqCst) || runs_and_replays(&order) > known);
            recoveries.push(begun.elapsed());
        }
        callers.join().unwrap();
    });
    // What the faults left open is completed by another host.
    let last = Order { completes: true, ..order.clone() }.spawn().wait().unwrap();
    assert!(last.success());
    let slowest = recoveries.iter().max().copied().unwrap_or_default();
    check(name, &order, kills.into_inner(), slowest);
}

/// Starts the callers, and kills and replaces one after the other until all calls were attempted.
fn keep_callers(order: &Order, kills: usize, killed: &AtomicUsize) {
    // The clocks of hosts differ by minutes.
    let spawn = |caller: usize| Order { clock_minutes: caller as i64 * 4 - 4, ..order.clone() }.spawn();
    let mut callers: Vec<Child> = (0..CALLERS).map(spawn).collect();
    let all = Duration::from_micros((order.interval * order.calls as i64).unsigned_abs());
    let pause = all / u32::try_from(kills + 1).unwrap();
    for kill in 0..kills {
        std::thread::sleep(pause);
        let caller = kill % CALLERS;
        if callers[caller].try_wait().unwrap().is_none() {
            callers[caller].kill().unwrap();
            callers[caller].wait().unwrap();
            callers[caller] = spawn(caller);
            killed.fetch_add(1, Ordering::SeqCst);
        }
    }
    callers.iter_mut().for_each(|caller| assert!(caller.wait().unwrap().success(), "a caller failed"));
}

fn runs_and_replays(order: &Order) -> usize {
    let attempts = read(&order.folder, "attempts");
    attempts
        .iter()
        .filter(|attempt| ["executed", "indeterminate"].contains(&attempt.outcome.as_str()))
        .count()
}

pub fn wait_until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + RECOVERY;
    while !holds() {
        assert!(Instant::now() < deadline, "the store is not used again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn check(name: &str, order: &Order, kills: usize, recovery: Duration) {
    let (attempts, runs, looks) =
        (read(&order.folder, "attempts"), read(&order.folder, "runs"), read(&order.folder, "looks"));
    let runs_of = by_id(&runs);
    let twice = runs_of.values().find(|runs| runs.len() > 1);
    assert!(twice.is_none(), "{name}: a call ran twice: {twice:?}");
    assert!(runs.len() <= order.limit, "{name}: {} calls ran, and the limit is {}", runs.len(), order.limit);
    let calls = by_id(&attempts);
    assert_eq!(calls.len(), order.calls, "{name}");
    let mut counts = [0; 3];
    for (id, attempts) in &calls {
        let last = attempts.iter().max_by_key(|attempt| attempt.to).unwrap();
        let known = ["executed", "indeterminate", "rate_limited"];
        let kind = known.iter().position(|known| *known == last.outcome);
        counts[kind.unwrap_or_else(|| panic!("{name}: {id} ends with {last:?}"))] += 1;
        if last.outcome == "executed" {
            assert!(runs_of.contains_key(id), "{name}: {id} did not run");
        }
    }
    let window = WINDOW.as_micros() as i64;
    let most = most_in_a_window(&looks, window);
    assert!(most <= PACE, "{name}: {most} calls in a window of a limit of {PACE}");
    let [executed, indeterminate, limited] = counts;
    assert!(executed > order.calls / 4, "{name}: {counts:?}");
    println!(
        "{name}: {} calls, {} races, {kills} kills; {executed} executed, {indeterminate} indeterminate, {limited} limited, {} runs; \
         {} in windows, at most {most} of {PACE} in one; used again after {recovery:?} at most",
        order.calls,
        races(&attempts),
        runs.len(),
        looks.len(),
    );
}
