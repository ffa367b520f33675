//! Answers beside a plain yes or no: results of a person's own, ends of the run, several answers, late and unknown ones.

use callgate::json::{Value, json};
use callgate::message::{Approver, Message, ResponsePart, Role, Settled, approval_response};

use super::scene::{REFUNDS, Scene};
use crate::workshop::ended;

fn refund() -> Value {
    json!({ "amount": 250, "note": "late" })
}

#[test]
fn every_flow_works_without_keys_too() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.approve();
        assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
        assert!(scene.resume().outcomes.is_empty());
        assert_eq!((scene.tool.count(), scene.results().len()), (1, 1));
    }
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.deny(None);
        assert_eq!(ended(&scene.outcome()), ("denied", "approval_denied"));
        assert_eq!(scene.tool.count(), 0);
    }
}

#[test]
fn a_persons_own_result_may_be_null_and_is_settled_like_any_other() {
    let redacting = format!(
        "{REFUNDS}  - id: hide
    match: {{ tool: refund }}
    redact: {{ detect: [email], in: [output] }}
"
    );
    for (output, told) in
        [(Value::Null, "null".to_owned()), (json!("paid to ana@example.com"), "paid to [email]".to_owned())]
    {
        for mut scene in Scene::each(&redacting, &refund()) {
            scene.answer(ResponsePart { output: Some(output.clone()), ..scene.yes() });
            let outcome = scene.outcome();
            assert_eq!(ended(&outcome), ("answered", "answered"));
            let result = &scene.results()[0];
            assert_eq!(result.settled, Settled::Output);
            assert!(!result.output.text().contains("ana@"), "{told}: {result:?}");
            assert_eq!(result.output.text() == "null", output.is_null());
            assert_eq!(scene.tool.count(), 0);
        }
    }
}

#[test]
fn a_result_beside_a_no_is_none() {
    let mut scene = Scene::refund(250);
    let no = approval_response(scene.request().approval_id, false);
    scene.answer(ResponsePart { output: Some(json!("done")), edited_input: Some(json!({})), ..no });
    let outcome = scene.outcome();
    assert_eq!(ended(&outcome), ("denied", "approval_denied"));
    assert_eq!(outcome.output, None);
}

/// One who cancels ends the run: nothing that waits runs any more, wherever it stands and whatever was answered.
#[test]
fn who_cancels_ends_the_run() {
    for (cancelled, in_store) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut scene = Scene::new(REFUNDS).sharing();
        let calls = ["a", "b", "c"].map(|id| (id, "refund", json!({ "amount": 250, "of": id })));
        scene.model_calls(&calls);
        scene.round();
        let ids: Vec<String> = scene.requests().into_iter().map(|request| request.approval_id).collect();
        let ends = ResponsePart { cancel: true, ..approval_response(&ids[cancelled], false) };
        scene.answer(approval_response(&ids[1 - cancelled], true));
        match in_store {
            true => drop(
                scene.clock.drive(scene.ledger().answer(&scene.name(["a", "b"][cancelled]), &ends)).unwrap(),
            ),
            false => scene.answer(ends),
        }
        let round = scene.resume();
        let outcomes: Vec<&str> = round.outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
        let expected =
            if cancelled == 0 { ["aborted", "halted", "halted"] } else { ["halted", "aborted", "halted"] };
        assert_eq!((outcomes.as_slice(), in_store), (&expected[..], in_store));
        assert!(!round.is_suspended());
        assert_eq!((scene.tool.count(), scene.results().len()), (0, 3));
        // The next run is a run of its own.
        scene.user_says("go on");
        assert!(scene.resume().outcomes.is_empty());
        scene.model_calls(&[("d", "refund", json!({ "amount": 5 }))]);
        assert_eq!(scene.round().outcomes[0].outcome.name(), "executed");
    }
}

/// What each row of answers comes to: of people without names the strictest counts, of one with a name the first.
#[test]
fn of_several_answers_each_combination_has_one_outcome() {
    type Answers = fn(&Scene) -> Vec<ResponsePart>;
    let table: [(&str, Answers, &str); 8] = [
        ("yes, yes", |of| vec![of.yes(), of.yes()], "executed"),
        ("no, no", |of| vec![said_no(of), said_no(of)], "denied"),
        ("yes, no", |of| vec![of.yes(), said_no(of)], "denied"),
        ("no, yes", |of| vec![said_no(of), of.yes()], "denied"),
        ("yes, end", |of| vec![of.yes(), ResponsePart { cancel: true, ..of.yes() }], "aborted"),
        ("no, end", |of| vec![said_no(of), ResponsePart { cancel: true, ..of.yes() }], "aborted"),
        ("named yes, then no", |of| vec![named(of, of.yes()), named(of, said_no(of))], "executed"),
        ("named no, then yes", |of| vec![named(of, said_no(of)), named(of, of.yes())], "denied"),
    ];
    for (what, answers, outcome) in table {
        for mut scene in Scene::each(REFUNDS, &refund()) {
            for answer in answers(&scene) {
                scene.answer(answer);
            }
            assert_eq!(scene.outcome().outcome.name(), outcome, "{what}");
            assert_eq!(scene.results().len(), 1, "{what}");
            assert_eq!(scene.tool.count(), usize::from(outcome == "executed"), "{what}");
        }
    }
}

fn said_no(of: &Scene) -> ResponsePart {
    ResponsePart { approved: false, ..of.yes() }
}

fn named(of: &Scene, answer: ResponsePart) -> ResponsePart {
    of.signed(Approver::new("bea"), answer)
}

#[test]
fn an_answer_that_comes_again_after_the_result_changes_nothing() {
    let mut scene = Scene::refund(250);
    let again = scene.yes();
    scene.approve();
    scene.resume();
    assert!(scene.history.append_approval_response(again.clone()).is_err());
    scene.history.push(Message::new(Role::Tool, vec![again.into()]));
    scene.history.push(Message::new(Role::Tool, vec![said_no_to("approval_c1").into()]));
    let round = scene.resume();
    assert!(round.outcomes.is_empty() && round.ignored.is_empty(), "{round:?}");
    assert_eq!(scene.tool.count(), 1);
}

fn said_no_to(id: &str) -> ResponsePart {
    approval_response(id, false)
}

#[test]
fn an_answer_to_what_nobody_asked_is_named_as_ignored() {
    let mut scene = Scene::refund(250);
    scene.history.push(Message::new(Role::Tool, vec![approval_response("approval_c7", true).into()]));
    let round = scene.resume();
    assert_eq!(ended(&round.outcomes[0]), ("suspended", "approval_required"));
    let ignored: Vec<_> = round.ignored.iter().map(|ignored| ignored.approval_id.as_str()).collect();
    assert_eq!(ignored, ["approval_c7"]);
}

#[test]
fn some_calls_of_a_round_may_be_answered_and_others_not() {
    for keys in [true, false] {
        let mut scene = Scene::new(REFUNDS);
        if !keys {
            scene.keys = None;
        }
        let amount = |amount: u64| json!({ "amount": amount });
        scene.model_calls(&[
            ("a", "refund", amount(101)),
            ("b", "refund", amount(1)),
            ("c", "refund", amount(102)),
            ("d", "refund", amount(103)),
        ]);
        let round = scene.round();
        let outcomes: Vec<&str> = round.outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
        assert_eq!(outcomes, ["suspended", "executed", "suspended", "suspended"]);
        scene.answer(approval_response("approval_c", true));
        let round = scene.resume();
        let outcomes: Vec<&str> = round.outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
        assert_eq!(outcomes, ["suspended", "executed", "suspended"]);
        scene.answer(approval_response("approval_a", true));
        scene.answer(approval_response("approval_d", false));
        let round = scene.resume();
        let outcomes: Vec<&str> = round.outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
        assert_eq!(outcomes, ["executed", "denied"]);
        assert_eq!(scene.tool.inputs(), [amount(1), amount(102), amount(101)]);
        assert_eq!(scene.results().len(), 4);
    }
}

#[test]
fn people_may_talk_on_while_a_call_waits_and_answer_it_turns_later() {
    let mut scene = Scene::refund(250);
    scene.user_says("meanwhile: what is the time?");
    assert_eq!(ended(&scene.outcome()), ("suspended", "approval_required"));
    scene.model_calls(&[("c2", "clock", json!({}))]);
    assert_eq!(scene.round().outcomes.len(), 1);
    scene.user_says("thanks");
    scene.approve();
    scene.user_says("and now?");
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    assert_eq!((scene.tool.count(), scene.results().len()), (2, 2));
    // The result is the call's own, however much stands between them.
    let calls = scene.history.occurrences();
    assert!(calls.iter().all(|call| call.result.is_some_and(|result| result.call_id == call.call.id)));
}

/// I3. A token in an answer is the question's own, or one that the host knows; any other makes the answer none.
#[test]
fn i3_an_answer_with_another_token_counts_for_nothing() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        for token in ["", "unsealed", "x.y"] {
            scene.answer(ResponsePart { approval_token: Some(token.to_owned()), ..scene.yes() });
        }
        let round = scene.resume();
        assert_eq!(ended(&round.outcomes[0]), ("suspended", "approval_required"));
        assert_eq!(round.ignored.len(), 3);
        assert_eq!(scene.tool.count(), 0);
        let token = scene.request().approval_token;
        scene.answer(ResponsePart { approval_token: token, ..scene.yes() });
        assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    }
}

#[test]
fn a_host_may_know_tokens_of_its_own() {
    let mut scene = Scene::refund(250);
    let engine = crate::workshop::rules(REFUNDS)
        .clock(scene.clock.clone())
        .store(scene.store.clone())
        .keys(scene.keys())
        .accepting_answers(|answer| answer.approval_token.as_deref() == Some("one-time"))
        .build();
    scene.answer(ResponsePart { approval_token: Some("guessed".into()), ..scene.yes() });
    let session = || engine.session().named("talk").with_context(scene.context.clone());
    let mut history = scene.history.clone();
    let round = scene.clock.drive(session().resume(&mut history, &scene.tool)).unwrap();
    assert!(round.is_suspended());
    let right = ResponsePart { approval_token: Some("one-time".into()), ..scene.yes() };
    history.append_approval_response(right).unwrap();
    let round = scene.clock.drive(session().resume(&mut history, &scene.tool)).unwrap();
    assert_eq!(ended(&round.outcomes[0]), ("executed", "approved"));
}
