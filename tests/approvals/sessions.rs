//! Property tests of whole sessions: however histories are converted and resumed, each call keeps its own results and requests.

use std::collections::BTreeSet;

use callgate::json::{Value, json};
use callgate::message::{Dialect, History, PartContent, ResponsePart, approval_response};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::scene::{Scene, with_parts};

const ASK: &str = "policies:
  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Go?', edits: [$.input.note] }
";

/// A sequence of events in a session.
#[derive(Clone, Debug)]
enum Step {
    /// The model makes calls: the id of each, and whether it is large.
    Round(Vec<(&'static str, bool)>),
    Resume,
    Says,
    /// An approver answers one of the requests.
    Answer(Index, u8),
    /// The history is converted through this dialect.
    Through(Dialect),
    /// The rules are replaced.
    Rules(u8),
    Later,
    /// The client continues from the history of some steps before.
    Back(Index),
    /// The client loses the results, or the responses, in its history.
    Lose(bool),
}

/// Steps of a session; with `astray`, the client returns to older histories and loses parts of them.
fn steps(astray: bool) -> impl Strategy<Value = Vec<Step>> {
    let ids = select(vec!["c1", "c1", "c1_2", "c2", "call_1"]);
    let stray = if astray { 3 } else { 0 };
    let step = prop_oneof![
        3 => vec((ids, any::<bool>()), 1..4).prop_map(Step::Round),
        4 => Just(Step::Resume),
        1 => Just(Step::Says),
        4 => (any::<Index>(), 0_u8..6).prop_map(|(which, how)| Step::Answer(which, how)),
        2 => select(Dialect::ALL.to_vec()).prop_map(Step::Through),
        1 => (0_u8..3).prop_map(Step::Rules),
        1 => Just(Step::Later),
        stray => any::<Index>().prop_map(Step::Back),
        stray => any::<bool>().prop_map(Step::Lose),
    ];
    vec(step, 1..14)
}

/// A session that is driven step by step. Each call has unique arguments.
struct SessionDriver {
    scene: Scene,
    calls: u64,
    kept: Vec<History>,
}

impl SessionDriver {
    fn new(shared: bool) -> Self {
        let scene = Scene::new(ASK);
        let mut scene = if shared { scene.with_shared_store() } else { scene };
        scene.resume();
        Self { scene, calls: 0, kept: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        let scene = &mut self.scene;
        self.kept.push(scene.history.clone());
        match step {
            Step::Round(calls) => {
                let calls: Vec<(&str, &str, Value)> = calls
                    .iter()
                    .map(|(id, large)| {
                        self.calls += 1;
                        (*id, "refund", json!({ "n": self.calls, "amount": if *large { 250 } else { 1 } }))
                    })
                    .collect();
                scene.model_calls(&calls);
                scene.round();
            }
            Step::Resume => drop(scene.resume()),
            Step::Says => scene.user_says("and now?"),
            Step::Answer(which, how) => {
                let requests = scene.requests();
                if requests.is_empty() {
                    return;
                }
                let request = which.get(&requests);
                let yes = approval_response(&request.approval_id, true);
                let mut input = request.input.clone().unwrap();
                input["note"] = "edited".into();
                let response = match how {
                    0 | 1 => yes,
                    2 => ResponsePart { approved: false, ..yes },
                    3 => ResponsePart { edited_input: Some(input), ..yes },
                    4 => ResponsePart { output: Some(json!("given")), ..yes },
                    _ => ResponsePart { approval_token: Some("wrong".into()), ..yes },
                };
                // In a history that was tampered with, several requests may have one id.
                let _ = scene.history.append_approval_response(response);
            }
            Step::Through(dialect) => scene.through(*dialect),
            Step::Rules(which) => {
                scene.rules = match which {
                    0 => ASK.to_owned(),
                    1 => ASK.replace("Go?", "Now?"),
                    _ => format!("{ASK}  - {{ id: more, match: refund, approval: {{}} }}\n"),
                }
            }
            Step::Later => scene.advance(7),
            Step::Back(which) => scene.history = which.get(&self.kept).clone(),
            Step::Lose(results) => {
                scene.history = with_parts(&scene.history, |content| match content {
                    PartContent::Result(_) if *results => Some(vec![]),
                    PartContent::Response(_) if !results => Some(vec![]),
                    _ => None,
                });
            }
        }
    }

    /// I5: each call has exactly one result, or is pending with exactly one request.
    fn check(&self) -> Result<(), TestCaseError> {
        let history = &self.scene.history;
        let calls = history.occurrences();
        let mut questions = BTreeSet::new();
        for call in &calls {
            match (call.result, call.request) {
                (Some(result), _) => prop_assert_eq!(&result.call_id, &call.call.id),
                (None, Some(request)) => {
                    prop_assert_eq!(&request.tool_call_id, &call.call.id);
                    prop_assert_eq!(
                        request.input.as_ref().map(|input| &input["n"]),
                        Some(&call.call.input["n"])
                    );
                    prop_assert!(questions.insert(&request.approval_id), "two of {}", request.approval_id);
                }
                (None, None) => prop_assert!(false, "{:?} has neither", call.call),
            }
        }
        let results = self.scene.results().len();
        prop_assert_eq!(results, calls.iter().filter(|call| call.result.is_some()).count());
        prop_assert_eq!(self.scene.requests().len(), questions.len());
        Ok(())
    }

    /// Checks that each call that requires approval ran at most once.
    fn runs_once(&self) -> Result<(), TestCaseError> {
        let mut seen = BTreeSet::new();
        for input in self.scene.tool.inputs().iter().filter(|input| input["amount"] == 250) {
            prop_assert!(seen.insert(input["n"].to_string()), "{input} ran twice");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// I5. After any round and any resume, in every dialect, each call has exactly one result or exactly one request.
    #[test]
    fn i5_each_call_has_one_result_or_one_request(steps in steps(false), shared in any::<bool>(), dialect in select(Dialect::ALL.to_vec())) {
        let mut walk = SessionDriver::new(shared);
        for step in &steps {
            walk.step(step);
            walk.scene.through(dialect);
            walk.check()?;
        }
        walk.scene.resume();
        walk.check()?;
        walk.runs_once()?;
    }

    /// I4. However often a session resumes, from whichever of its histories, each call that requires approval runs at most once.
    #[test]
    fn i4_each_call_runs_at_most_once(steps in steps(true), shared in any::<bool>()) {
        let mut walk = SessionDriver::new(shared);
        for step in &steps {
            walk.step(step);
        }
        for history in std::mem::take(&mut walk.kept) {
            walk.scene.history = history;
            walk.scene.resume();
        }
        walk.runs_once()?;
    }
}
