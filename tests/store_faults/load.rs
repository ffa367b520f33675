//! Callers that race on a store while something fails: starts them, kills them, and checks what they wrote down.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::caller::{CallerProcess, Order, PACE, WINDOW};
use super::effects::{Interval, by_id, monotonic_micros, most_in_a_window, races, read};

/// How many callers attempt every call.
const CALLERS: usize = 3;
/// By how many minutes the clocks of hosts are behind and ahead.
const CLOCKS_DIFFER_BY: i64 = 4;
/// Longer than any store needs to be used again after its fault is gone.
const RECOVERY: Duration = Duration::from_secs(60);
/// Longer than callers need after the time of the last call. Those that need longer hang.
const HANG: Duration = Duration::from_secs(90);
/// How much longer the last caller may need for each call, on a slow machine.
const HANG_PER_CALL: Duration = Duration::from_millis(250);

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
    let progress = Progress::default();
    let mut recoveries = Vec::new();
    std::thread::scope(|scope| {
        let callers = scope.spawn(|| keep_callers(&order, size.kills, &progress));
        // If this thread panics, the other one has to end, or nobody learns why.
        let _stop = SetOnPanic(&progress.is_stopped);
        for number in 0..size.faults {
            let due = order.interval * (size.calls * (number + 1) / (size.faults + 1)) as i64;
            let wait = order.start + due - monotonic_micros();
            std::thread::sleep(Duration::from_micros(wait.max(0).unsigned_abs()));
            fault(number);
            let (begun, known) = (Instant::now(), answers(&order));
            wait_until(|| progress.has_ended.load(Ordering::SeqCst) || answers(&order) > known);
            recoveries.push(begun.elapsed());
        }
        callers.join().unwrap();
    });
    // What the faults left open is completed by another host. Its clock is that of the callers that are ahead: for the others, their
    // approval requests were made in the future, and stay pending.
    let last = Order { completes: true, clock_minutes: CLOCKS_DIFFER_BY, ..order.clone() };
    let last = last.spawn().wait(HANG + HANG_PER_CALL * u32::try_from(size.calls).unwrap());
    assert_eq!(last, Some(true), "{name}: the last caller {}", failure(&order, last));
    let slowest = recoveries.iter().max().copied().unwrap_or_default();
    check(name, &order, progress.kills.into_inner(), slowest);
}

/// What the threads of a run know of each other.
#[derive(Default)]
struct Progress {
    kills: AtomicUsize,
    /// Whether all callers have ended.
    has_ended: AtomicBool,
    /// Whether the callers have to end.
    is_stopped: AtomicBool,
}

/// Sets a flag if its thread panics.
struct SetOnPanic<'f>(&'f AtomicBool);

impl Drop for SetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

/// Starts the callers, and kills and replaces one after the other until all calls were attempted.
fn keep_callers(order: &Order, kills: usize, progress: &Progress) {
    let _ended = SetOnPanic(&progress.has_ended);
    let spawn = |caller: usize| {
        let clock_minutes = (caller as i64 - 1) * CLOCKS_DIFFER_BY;
        Order { clock_minutes, ..order.clone() }.spawn()
    };
    let mut callers: Vec<CallerProcess> = (0..CALLERS).map(spawn).collect();
    let all = Duration::from_micros((order.interval * order.calls as i64).unsigned_abs());
    let pause = all / u32::try_from(kills + 1).unwrap();
    for kill in 0..kills {
        std::thread::sleep(pause);
        let caller = kill % CALLERS;
        if progress.is_stopped.load(Ordering::SeqCst) {
            return;
        }
        if callers[caller].exit_status().is_none() {
            callers[caller].kill();
            callers[caller] = spawn(caller);
            progress.kills.fetch_add(1, Ordering::SeqCst);
        }
    }
    let deadline = Instant::now() + pause + HANG;
    for caller in &mut callers {
        while caller.exit_status().is_none() && Instant::now() < deadline {
            if progress.is_stopped.load(Ordering::SeqCst) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = caller.wait(Duration::ZERO);
        assert_eq!(ended, Some(true), "a caller {}", failure(order, ended));
    }
    progress.has_ended.store(true, Ordering::SeqCst);
}

/// Why a caller did not succeed, and what the callers did last.
fn failure(order: &Order, ended: Option<bool>) -> String {
    let (attempts, answers) = (read(&order.folder, "attempts"), read(&order.folder, "answers"));
    let last = attempts.iter().rev().take(20).chain(answers.iter().rev().take(5)).map(|last| {
        let Interval { id, from, to, outcome, reason, .. } = last;
        format!("\n  {id} from {from} to {to}: {outcome}, {reason}")
    });
    let what = if ended.is_none() { "hangs" } else { "failed" };
    let last: String = last.collect();
    format!("{what}; it is {}, and the last attempts and rejected answers are:{last}", monotonic_micros())
}

/// How many attempts the store has answered. An indeterminate one may have found no store.
fn answers(order: &Order) -> usize {
    let attempts = read(&order.folder, "attempts");
    attempts.iter().filter(|attempt| ["executed", "rate_limited"].contains(&attempt.outcome.as_str())).count()
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
    let mut counts = [0; 4];
    for (id, attempts) in &calls {
        let runs = runs_of.get(id).map_or(&[][..], Vec::as_slice);
        let course = || format!("{name}: the runs of {id} are {runs:#?}, and its attempts {attempts:#?}");
        let last = attempts.iter().max_by_key(|attempt| attempt.to).unwrap();
        assert!(last.is_final, "no final outcome; {}", course());
        let known = ["executed", "indeterminate", "rate_limited"];
        let kind = known.iter().position(|known| *known == last.outcome).unwrap_or(known.len());
        counts[kind] += 1;
        assert!(!runs.is_empty() || last.outcome != "executed", "it did not run; {}", course());
        // One of several that attempt a call at once may find the limit used up, while another one runs it. Later ones know of the run.
        let is_known = runs.iter().any(|run| run.to < last.from);
        assert!(!is_known || kind < 2, "its run is not known; {}", course());
        assert!(runs.is_empty() || kind < known.len(), "a denied call ran; {}", course());
    }
    let window = WINDOW.as_micros() as i64;
    let most = most_in_a_window(&looks, window);
    assert!(most <= PACE, "{name}: {most} calls in a window of a limit of {PACE}");
    let [executed, indeterminate, limited, denied] = counts;
    assert!(executed > order.calls / 4, "{name}: {counts:?}");
    println!(
        "{name}: {} calls, {} races, {kills} kills; {executed} executed, {indeterminate} indeterminate, {limited} limited, {denied} denied, \
         {} runs, none twice; \
         {} in windows, at most {most} of {PACE} in one; used again after {recovery:?} at most",
        order.calls,
        races(&attempts),
        runs.len(),
        looks.len(),
    );
}
