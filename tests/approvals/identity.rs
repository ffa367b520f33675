//! Repeated call ids: requests, responses and results belong to one occurrence of a call.

use callgate::json::{Value, json};
use callgate::message::{Dialect, approval_response};

use super::scene::{REFUNDS, Scene};
use crate::fixtures::kind_and_code;

fn of(n: u64, amount: u64) -> Value {
    json!({ "n": n, "amount": amount })
}

/// The kinds of the outcomes.
fn kinds(round: &callgate::session::Round) -> Vec<&'static str> {
    round.outcomes.iter().map(|outcome| outcome.outcome.name()).collect()
}

/// For each call, in order: whether it has a result, and otherwise the id of its request.
fn state(scene: &Scene) -> Vec<String> {
    let calls = scene.history.occurrences();
    let told = calls.iter().map(|call| match (call.result, call.request) {
        (Some(result), _) => format!("{}={}", call.call.input["n"], result.output.text()),
        (None, Some(request)) => format!("{}?{}", call.call.input["n"], request.approval_id),
        (None, None) => format!("{} lost", call.call.input["n"]),
    });
    told.collect()
}

#[test]
fn i5_calls_with_one_id_in_a_round_get_separate_requests() {
    let mut scene = Scene::new(REFUNDS);
    scene.model_calls(&[
        ("c1", "refund", of(1, 101)),
        ("c1", "refund", of(2, 102)),
        ("c1", "refund", of(3, 103)),
    ]);
    scene.round();
    assert_eq!(state(&scene), ["1?approval_c1", "2?approval_c1_2", "3?approval_c1_3"]);
    scene.answer(approval_response("approval_c1_2", true));
    assert_eq!(kinds(&scene.resume()), ["suspended", "executed", "suspended"]);
    assert_eq!(state(&scene), ["1?approval_c1", "2=1", "3?approval_c1_3"]);
    scene.answer(approval_response("approval_c1_3", false));
    scene.answer(approval_response("approval_c1", true));
    assert_eq!(kinds(&scene.resume()), ["executed", "denied"]);
    assert_eq!(state(&scene), ["1=2", "2=1", "3=a person denied this call"]);
    assert_eq!(scene.tool.inputs(), [of(2, 102), of(1, 101)]);
}

/// I5. Of two calls with one id in a round, one is pending and one runs: the result belongs to the call that ran, whatever its position.
#[test]
fn i5_result_belongs_to_the_call_that_ran_not_its_duplicate_id() {
    for dialect in Dialect::ALL {
        for amounts in [[250, 1], [1, 250]] {
            let mut scene = Scene::new(REFUNDS);
            scene.model_calls(&[("c1", "refund", of(1, amounts[0])), ("c1", "refund", of(2, amounts[1]))]);
            scene.round();
            scene.through(dialect);
            let waits = if amounts[0] == 250 { 0 } else { 1 };
            let now = state(&scene);
            assert!(now[waits].contains("?approval_c1"), "{dialect:?} {now:?}");
            assert_eq!(now[1 - waits], format!("{}=1", 2 - waits), "{dialect:?} {now:?}");
            scene.approve();
            scene.through(dialect);
            assert_eq!(kinds(&scene.resume()), ["executed"], "{dialect:?}");
            assert_eq!(state(&scene)[waits], format!("{}=2", waits + 1), "{dialect:?}");
            assert_eq!(scene.tool.count(), 2);
        }
    }
}

/// Both are pending, and the later one expires first.
#[test]
fn i5_later_duplicate_that_ends_first_leaves_the_earlier_pending() {
    let rules = "policies:
  - { id: long, match: { tool: refund, where: [ { path: $.input.n, eq: 1 } ] }, approval: { expires: 2h } }
  - { id: short, match: { tool: refund, where: [ { path: $.input.n, eq: 2 } ] }, approval: { expires: 1h } }
";
    for mut scene in Scene::each(rules, &of(1, 1)) {
        scene.history = callgate::message::History::default();
        scene.conversation = "two".to_owned();
        scene.model_calls(&[("c1", "refund", of(1, 1)), ("c1", "refund", of(2, 1))]);
        scene.round();
        scene.advance(3600);
        assert_eq!(kinds(&scene.resume()), ["suspended", "denied"]);
        let left = state(&scene);
        assert_eq!(left[0], "1?approval_c1");
        scene.approve_of("approval_c1");
        scene.resume();
        let after = state(&scene);
        assert_eq!(after[0], "1=1");
        scene.resume();
        assert!(state(&scene)[1].contains("expired"), "{:?}", state(&scene));
        assert_eq!(scene.tool.count(), 1);
    }
}

/// Ids that look like our names for other occurrences, with equal arguments.
#[test]
fn i5_ids_that_imitate_occurrence_names_stay_distinct() {
    for ids in [["c1", "c1", "c1_2"], ["c1_2", "c1", "c1"], ["c1", "c1_2", "c1"]] {
        for mut scene in Scene::each(REFUNDS, &of(0, 1)) {
            scene.model_calls(&ids.map(|id| (id, "refund", json!({ "n": 1, "amount": 250 }))));
            scene.round();
            let requests = scene.requests();
            let mut names: Vec<_> = requests.iter().map(|request| request.approval_id.clone()).collect();
            let calls: Vec<_> = requests.iter().map(|request| request.tool_call_id.clone()).collect();
            names.sort();
            names.dedup();
            assert_eq!((names.len(), requests.len()), (3, 3), "{ids:?}: {requests:#?}");
            assert_eq!(calls, ids, "{ids:?}");
            scene.approve_of(&requests[1].approval_id);
            assert_eq!(kinds(&scene.resume()), ["suspended", "executed", "suspended"], "{ids:?}");
            scene.approve_of(&requests[0].approval_id);
            scene.approve_of(&requests[2].approval_id);
            assert_eq!(kinds(&scene.resume()), ["executed", "executed"], "{ids:?}");
            assert_eq!(scene.tool.count(), 4);
        }
    }
}

/// I4. A later call with the id and the arguments of a completed one is a separate call and requires its own approval.
#[test]
fn i4_later_call_of_a_completed_id_needs_its_own_answer() {
    for mut scene in Scene::with_both_stores(REFUNDS) {
        for turn in 1..=3_usize {
            assert_eq!(kinds(&scene.ask(of(1, 250))), ["suspended"], "{turn}");
            let request = scene.request();
            assert_eq!(request.tool_call_id, "c1");
            assert_eq!(scene.tool.count(), turn - 1);
            scene.approve();
            assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
            assert_eq!(scene.tool.count(), turn);
            scene.user_says("once more");
        }
        let calls = scene.history.occurrences();
        let ids: Vec<_> = calls.iter().map(|call| call.request.unwrap().approval_id.as_str()).collect();
        assert_eq!(ids, ["approval_c1", "approval_c1_2", "approval_c1_3"]);
    }
}

/// I4. A response to an earlier occurrence does not apply to a later one, even if the client dropped the earlier one.
#[test]
fn i4_old_answer_does_not_apply_to_a_later_call_of_its_id() {
    let mut scene = Scene::refund(250);
    scene.approve();
    scene.resume();
    let (request, input) =
        (scene.history.occurrences()[0].request.cloned().unwrap(), scene.tool.inputs().remove(0));
    for forgets in [false, true] {
        let mut later =
            Scene { history: scene.history.clone(), store: scene.store.clone(), ..Scene::new(REFUNDS) };
        if forgets {
            later.history = callgate::message::History::default();
        }
        later.model_calls(&[("c1", "refund", input.clone())]);
        // The old request and its response are moved behind the new call.
        later.history.push(callgate::message::Message::new(
            callgate::message::Role::Assistant,
            vec![request.clone().into()],
        ));
        later.history.push(callgate::message::Message::new(
            callgate::message::Role::Tool,
            vec![approval_response("approval_c1", true).into()],
        ));
        later.resume();
        later.round();
        assert_eq!(later.tool.count(), 0, "{forgets}");
    }
}
