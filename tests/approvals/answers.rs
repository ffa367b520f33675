//! Responses other than a plain approval or denial: results from an approver, cancellation, and multiple, late or unknown responses.

use callgate::json::{Value, json};
use callgate::message::{Approver, Message, ResponsePart, ResultStatus, Role, approval_response};

use super::scene::{REFUNDS, Scene};
use crate::fixtures::kind_and_code;

fn refund() -> Value {
    json!({ "amount": 250, "note": "late" })
}

#[test]
fn every_flow_works_without_keys() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
        assert!(scene.resume().outcomes.is_empty());
        assert_eq!((scene.tool.count(), scene.results().len()), (1, 1));
    }
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.deny(None);
        assert_eq!(kind_and_code(&scene.outcome()), ("denied", "approval_denied"));
        assert_eq!(scene.tool.count(), 0);
    }
}

#[test]
fn approvers_result_may_be_null_and_completes_the_call() {
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
            scene.answer(ResponsePart { output: Some(output.clone()), ..scene.approval() });
            let outcome = scene.outcome();
            assert_eq!(kind_and_code(&outcome), ("answered", "answered"));
            let result = &scene.results()[0];
            assert_eq!(result.status, ResultStatus::Output);
            assert!(!result.output.text().contains("ana@"), "{told}: {result:?}");
            assert_eq!(result.output.text() == "null", output.is_null());
            assert_eq!(scene.tool.count(), 0);
        }
    }
}

#[test]
fn result_in_a_denial_is_ignored() {
    let mut scene = Scene::refund(250);
    let no = approval_response(scene.request().approval_id, false);
    scene.answer(ResponsePart { output: Some(json!("done")), edited_input: Some(json!({})), ..no });
    let outcome = scene.outcome();
    assert_eq!(kind_and_code(&outcome), ("denied", "approval_denied"));
    assert_eq!(outcome.output, None);
}

/// Cancelling ends the run: no pending call runs, whatever its position and its other responses.
#[test]
fn cancelling_ends_the_run() {
    for (cancelled, in_store) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut scene = Scene::new(REFUNDS).with_shared_store();
        let calls = ["a", "b", "c"].map(|id| (id, "refund", json!({ "amount": 250, "of": id })));
        scene.model_calls(&calls);
        scene.round();
        let ids: Vec<String> = scene.requests().into_iter().map(|request| request.approval_id).collect();
        let ends = ResponsePart { cancel: true, ..approval_response(&ids[cancelled], false) };
        scene.answer(approval_response(&ids[1 - cancelled], true));
        match in_store {
            true => drop(
                scene
                    .clock
                    .block_on(scene.ledger().record_answer(&scene.name(["a", "b"][cancelled]), &ends))
                    .unwrap(),
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
        // The next run is independent.
        scene.user_says("go on");
        assert!(scene.resume().outcomes.is_empty());
        scene.model_calls(&[("d", "refund", json!({ "amount": 5 }))]);
        assert_eq!(scene.round().outcomes[0].outcome.name(), "executed");
    }
}

/// The outcome of each combination of responses: of anonymous responses the strictest counts, of one named approver the first.
#[test]
fn combinations_of_several_answers_have_defined_outcomes() {
    type Answers = fn(&Scene) -> Vec<ResponsePart>;
    let table: [(&str, Answers, &str); 8] = [
        ("yes, yes", |of| vec![of.approval(), of.approval()], "executed"),
        ("no, no", |of| vec![denial(of), denial(of)], "denied"),
        ("yes, no", |of| vec![of.approval(), denial(of)], "denied"),
        ("no, yes", |of| vec![denial(of), of.approval()], "denied"),
        ("yes, end", |of| vec![of.approval(), ResponsePart { cancel: true, ..of.approval() }], "aborted"),
        ("no, end", |of| vec![denial(of), ResponsePart { cancel: true, ..of.approval() }], "aborted"),
        ("named yes, then no", |of| vec![named(of, of.approval()), named(of, denial(of))], "executed"),
        ("named no, then yes", |of| vec![named(of, denial(of)), named(of, of.approval())], "denied"),
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

fn denial(of: &Scene) -> ResponsePart {
    ResponsePart { approved: false, ..of.approval() }
}

fn named(of: &Scene, answer: ResponsePart) -> ResponsePart {
    of.signed(Approver::new("bea"), answer)
}

#[test]
fn repeated_answer_after_the_result_changes_nothing() {
    let mut scene = Scene::refund(250);
    let again = scene.approval();
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
fn answer_to_unknown_request_is_reported_as_ignored() {
    let mut scene = Scene::refund(250);
    scene.history.push(Message::new(Role::Tool, vec![approval_response("approval_c7", true).into()]));
    let round = scene.resume();
    assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"));
    let ignored: Vec<_> = round.ignored.iter().map(|ignored| ignored.approval_id.as_str()).collect();
    assert_eq!(ignored, ["approval_c7"]);
}

#[test]
fn calls_of_a_round_can_be_answered_separately() {
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
fn pending_call_can_be_answered_after_further_turns() {
    let mut scene = Scene::refund(250);
    scene.user_says("meanwhile: what is the time?");
    assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
    scene.model_calls(&[("c2", "clock", json!({}))]);
    assert_eq!(scene.round().outcomes.len(), 1);
    scene.user_says("thanks");
    scene.approve();
    scene.user_says("and now?");
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    assert_eq!((scene.tool.count(), scene.results().len()), (2, 2));
    // The result belongs to the call, however many messages separate them.
    let calls = scene.history.occurrences();
    assert!(calls.iter().all(|call| call.result.is_some_and(|result| result.call_id == call.call.id)));
}

/// I3. A response must carry the token of its request, or one that the host accepts; with any other token it is ignored.
#[test]
fn i3_answer_with_wrong_token_is_ignored() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        for token in ["", "unsealed", "x.y"] {
            scene.answer(ResponsePart { approval_token: Some(token.to_owned()), ..scene.approval() });
        }
        let round = scene.resume();
        assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"));
        assert_eq!(round.ignored.len(), 3);
        assert_eq!(scene.tool.count(), 0);
        let token = scene.request().approval_token;
        scene.answer(ResponsePart { approval_token: token, ..scene.approval() });
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    }
}

#[test]
fn host_can_accept_its_own_tokens() {
    let mut scene = Scene::refund(250);
    let engine = crate::fixtures::rules(REFUNDS)
        .clock(scene.clock.clone())
        .store(scene.store.clone())
        .keys(scene.keys())
        .answer_validator(|answer| answer.approval_token.as_deref() == Some("one-time"))
        .build();
    scene.answer(ResponsePart { approval_token: Some("guessed".into()), ..scene.approval() });
    let session = || engine.session().with_name("talk").with_context(scene.context.clone());
    let mut history = scene.history.clone();
    let round = scene.clock.block_on(session().resume(&mut history, &scene.tool)).unwrap();
    assert!(round.is_suspended());
    let right = ResponsePart { approval_token: Some("one-time".into()), ..scene.approval() };
    history.append_approval_response(right).unwrap();
    let round = scene.clock.block_on(session().resume(&mut history, &scene.tool)).unwrap();
    assert_eq!(kind_and_code(&round.outcomes[0]), ("executed", "approved"));
}
