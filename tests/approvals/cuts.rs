//! Clients hold the history: no edit of it makes the outcome of a call more permissive.

use callgate::Outcome;
use callgate::json::json;
use callgate::message::{
    CallOccurrence, History, Message, Part, PartContent, ResultOutput, ResultPart, Role,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::scene::{Scene, with_parts};

/// Labels, facts and limits of a run, each read by its own tool.
const SEEING: &str = "policies:
  - { id: mark, match: read, label: { add: [untrusted] } }
  - { id: keep, match: look, fact: { name: order, key: $.input.id, value: $.input.status } }
  - { id: ask, match: { tool: send, where: [ { path: '$.session.labels[*]', eq: untrusted } ] }, approval: { message: 'Send?' } }
  - { id: only-open, match: { tool: change, where: [ { not: { path: '$.session.facts.order.a', eq: open } } ] }, deny: {} }
  - { id: not-closed, match: { tool: change, where: [ { path: '$.session.facts.order.a', eq: closed } ] }, deny: {} }
  - { id: few, match: pay, rate_limit: { limit: 2, per: run } }
  - { id: once, match: { tool: wipe, where: [ { path: $.session.calls.wipe, gte: 1 } ] }, deny: {} }
";

/// Edits by a client or by history compaction.
#[derive(Clone, Debug)]
enum Cut {
    Head(Index),
    Tail(Index),
    Cycle(Index),
    Result(Index),
    Edit(Index),
    Argument(Index),
    Swap(Index, Index),
    Seal,
    OldSeal,
    Double(Index),
}

fn cuts() -> impl Strategy<Value = Vec<Cut>> {
    let at = any::<Index>;
    vec(
        prop_oneof![
            at().prop_map(Cut::Head),
            at().prop_map(Cut::Tail),
            at().prop_map(Cut::Cycle),
            at().prop_map(Cut::Result),
            at().prop_map(Cut::Edit),
            at().prop_map(Cut::Argument),
            (at(), at()).prop_map(|(one, other)| Cut::Swap(one, other)),
            Just(Cut::Seal),
            Just(Cut::OldSeal),
            at().prop_map(Cut::Double),
        ],
        1..4,
    )
}

/// The session state in a history.
fn state(history: &History) -> Option<Part> {
    let parts = history.messages().iter().flat_map(Message::parts);
    parts.filter(|part| matches!(part.content(), PartContent::State(_))).cloned().next_back()
}

/// A history with one of its results replaced.
fn with_nth_result(history: &History, which: &Index, change: fn(&ResultPart) -> Vec<Part>) -> History {
    let parts = history.messages().iter().flat_map(Message::parts);
    let count = parts.filter(|part| matches!(part.content(), PartContent::Result(_))).count();
    let (nth, mut seen) = (which.index(count.max(1)), 0);
    with_parts(history, |content| match content {
        PartContent::Result(result) => {
            seen += 1;
            (seen == nth + 1).then(|| change(result))
        }
        _ => None,
    })
}

fn cut(history: &History, old: &History, cut: &Cut) -> History {
    let messages = history.messages();
    if messages.is_empty() {
        return history.clone();
    }
    let without_state =
        || with_parts(history, |content| matches!(content, PartContent::State(_)).then(Vec::new));
    match cut {
        Cut::Head(at) => History::new(messages[at.index(messages.len())..].to_vec()),
        Cut::Tail(at) => History::new(messages[..at.index(messages.len())].to_vec()),
        Cut::Cycle(at) => {
            let calls = history.occurrences();
            if calls.is_empty() {
                return history.clone();
            }
            let id = at.get(&calls).call.id.clone();
            with_parts(history, move |content| match content {
                PartContent::Call(call) if call.id == id => Some(vec![]),
                PartContent::Result(result) if result.call_id == id => Some(vec![]),
                _ => None,
            })
        }
        Cut::Result(at) => with_nth_result(history, at, |_| vec![]),
        Cut::Edit(at) => with_nth_result(history, at, |result| {
            let output = ResultOutput::Text("other".to_owned());
            vec![Part::result(ResultPart { output, ..result.clone() })]
        }),
        Cut::Argument(at) => {
            let calls = history.occurrences();
            if calls.is_empty() {
                return history.clone();
            }
            let place = at.get(&calls).call.clone();
            with_parts(history, move |content| match content {
                PartContent::Call(call) if *call == place => {
                    Some(vec![Part::call(call.id.clone(), "note", json!({ "changed": true }))])
                }
                _ => None,
            })
        }
        Cut::Swap(one, other) => {
            let mut swapped = messages.to_vec();
            swapped.swap(one.index(messages.len()), other.index(messages.len()));
            History::new(swapped)
        }
        Cut::Seal => without_state(),
        Cut::OldSeal => {
            let mut stale = without_state();
            if let Some(state) = state(old) {
                stale.push(Message::new(Role::Tool, vec![state]));
            }
            stale
        }
        Cut::Double(at) => {
            let mut doubled = messages.to_vec();
            doubled.push(messages[at.index(messages.len())].clone());
            History::new(doubled)
        }
    }
}

fn strictness(outcome: &Outcome) -> u8 {
    match outcome.outcome.name() {
        "executed" | "answered" => 0,
        "suspended" => 1,
        _ => 2,
    }
}

/// The evaluated calls of a history, with their results. Calls of the last round without a result are new ones of the model.
fn known_calls(history: &History) -> Vec<String> {
    let calls = history.occurrences();
    let last = calls.last().map(|call| call.round);
    let is_new = |call: &CallOccurrence<'_>| {
        Some(call.round) == last && call.result.is_none() && call.request.is_none()
    };
    let told =
        |call: &CallOccurrence<'_>| format!("{:?} {:?}", call.call, call.result.map(|of| of.output.text()));
    calls.iter().filter(|call| !is_new(call)).map(told).collect()
}

/// A session with recorded state.
struct RecordedSession {
    scene: Scene,
    /// Its history halfway.
    old: History,
    /// Its state at each point, with the calls that were known then.
    kept: Vec<(Option<Part>, Vec<String>)>,
}

impl RecordedSession {
    fn new(tools: &[&str], shared: bool) -> Self {
        let scene = Scene::new(SEEING);
        let mut scene = if shared { scene.with_shared_store() } else { scene };
        scene.resume();
        let mut old = scene.history.clone();
        let mut kept = vec![(None, Vec::new()), (state(&old), Vec::new())];
        for (at, tool) in tools.iter().enumerate() {
            scene.user_says("go on");
            if at == tools.len() / 2 {
                old = scene.history.clone();
            }
            let (tool, status) = match *tool {
                "look_closed" => ("look", "closed"),
                tool => (tool, "open"),
            };
            scene.model_calls(&[(&format!("c{at}"), tool, json!({ "id": "a", "status": status }))]);
            scene.round();
            kept.push((state(&scene.history), known_calls(&scene.history)));
        }
        Self { scene, old, kept }
    }

    /// The edited history, and the state of the session at an earlier point if the edited history equals the session's own at that point:
    /// then it is not changed but older, which only a store can detect.
    fn cut(&self, cuts: &[Cut]) -> (History, bool) {
        let cut = cuts.iter().fold(self.scene.history.clone(), |history, by| cut(&history, &self.old, by));
        let is_older = self.kept.contains(&(state(&cut), known_calls(&cut)));
        (cut, is_older)
    }

    /// The outcome of one more call.
    fn outcome_of(mut self, probe: &str, history: History) -> Outcome {
        self.scene.history = history;
        self.scene.model_calls(&[("probe", probe, json!({}))]);
        self.scene.round().outcomes.pop().unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// I8. No outcome after a history was truncated, compacted, reordered or edited is more permissive than with the whole history.
    #[test]
    fn i8_edited_history_never_makes_an_outcome_more_permissive(
        tools in vec(select(vec!["read", "look", "look_closed", "pay", "note", "wipe"]), 1..6),
        cuts in cuts(),
        probe in select(vec!["send", "change", "pay", "wipe"]),
        shared in any::<bool>(),
    ) {
        let seen = RecordedSession::new(&tools, shared);
        let (cut, is_older) = seen.cut(&cuts);
        prop_assume!(!is_older || shared);
        let cut = seen.outcome_of(probe, cut);
        let whole = RecordedSession::new(&tools, shared);
        let history = whole.scene.history.clone();
        let whole = whole.outcome_of(probe, history);
        prop_assert!(strictness(&cut) >= strictness(&whole), "{cut:?}\n{whole:?}");
    }
}
