//! Property tests: every mutation of a sealed request or response is rejected.

use callgate::approval::{BoundRequest, Tally, count_answers};
use callgate::json::{Value, json};
use callgate::message::{Approver, History, RequestPart, ResponsePart, approval_response};
use proptest::prelude::*;

use super::scene::Scene;

fn refund() -> Value {
    json!({ "amount": 250, "note": "late" })
}

/// A request in which every member has a value.
fn full_request() -> (Scene, RequestPart) {
    let rules = "policies:
  - id: ask
    match: refund
    approval: { message: 'Go?', expires: 24h, approvers: [bea], edits: [$.input.note], card: { title: 'Pay' } }
";
    let mut scene = Scene::new(rules);
    let mut session = scene.session().with_call_reader(|part| part.to_call().with_server("bank"));
    for id in ["c0", "c1"] {
        scene.history = History::default();
        scene.model_calls(&[(id, "refund", refund())]);
        scene.clock.block_on(session.run_round(&mut scene.history, &scene.tool)).unwrap();
    }
    let request = scene.request();
    (scene, request)
}

/// A mutation of a JSON object: of a member's value, of its set of members, or of one character.
#[derive(Clone, Debug)]
enum Change {
    Set(usize, Value),
    Remove(usize),
    Character(usize, usize, char),
    Insert(usize, usize, char),
    Cut(usize, usize),
    Exchange(usize, usize),
}

fn changes() -> impl Strategy<Value = Change> {
    let value = prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(false)),
        (0_u64..3).prop_map(Value::from),
        "[a-z0-9:.-]{0,6}".prop_map(Value::from),
        Just(json!([])),
        Just(json!(["ask", "ask"])),
        Just(json!({ "amount": 251, "note": "late" })),
        Just(json!({ "title": "Other" })),
        Just(json!("2099-01-01T00:00:00Z")),
        Just(json!({ "principal": "cid" })),
    ];
    let character = prop_oneof![Just('.'), Just('='), Just(' '), Just('A'), Just('b'), Just('-'), Just('_')];
    let (member, at) = (0_usize..16, 0_usize..4000);
    prop_oneof![
        (member.clone(), value).prop_map(|(member, value)| Change::Set(member, value)),
        member.clone().prop_map(Change::Remove),
        (member.clone(), at.clone(), character.clone()).prop_map(|(m, at, c)| Change::Character(m, at, c)),
        (member.clone(), at.clone(), character).prop_map(|(m, at, c)| Change::Insert(m, at, c)),
        (member.clone(), at).prop_map(|(m, at)| Change::Cut(m, at)),
        (member.clone(), member).prop_map(|(one, other)| Change::Exchange(one, other)),
    ]
}

impl Change {
    fn of(&self, members: &[&str], json: &mut callgate::json::Map) {
        let name = |member: &usize| members[member % members.len()].to_owned();
        let text = |json: &callgate::json::Map, member: &usize| -> Vec<char> {
            json.get(&name(member)).and_then(Value::as_str).unwrap_or_default().chars().collect()
        };
        match self {
            Self::Set(member, value) => drop(json.insert(name(member), value.clone())),
            Self::Remove(member) => drop(json.remove(&name(member))),
            Self::Exchange(one, other) => {
                let (a, b) = (json.get(&name(one)).cloned(), json.get(&name(other)).cloned());
                json.extend(b.map(|b| (name(one), b)));
                json.extend(a.map(|a| (name(other), a)));
            }
            Self::Character(member, at, c) | Self::Insert(member, at, c) => {
                let mut text = text(json, member);
                let at = at % (text.len() + 1);
                if matches!(self, Self::Character(..)) && at < text.len() {
                    text.remove(at);
                }
                text.insert(at, *c);
                json.insert(name(member), text.into_iter().collect::<String>().into());
            }
            Self::Cut(member, at) => {
                let text = text(json, member);
                let kept: String = text[..at % (text.len() + 1)].iter().collect();
                json.insert(name(member), kept.into());
            }
        }
    }
}

const ASKED: [&str; 12] = [
    "approvalId",
    "toolCallId",
    "toolName",
    "input",
    "message",
    "policies",
    "expiresAt",
    "inputDigest",
    "server",
    "repeats",
    "card",
    "approvalToken",
];
const ANSWERED: [&str; 10] = [
    "approvalId",
    "approved",
    "reason",
    "approvalToken",
    "editedInput",
    "output",
    "cancel",
    "answeredBy",
    "answeredAt",
    "answerSeal",
];

thread_local! {
    static QUESTION: (Scene, RequestPart) = full_request();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// I1, I3. No mutation of a sealed request is accepted, in any member or character.
    #[test]
    fn i3_mutated_sealed_request_is_rejected(changes in prop::collection::vec(changes(), 1..4)) {
        QUESTION.with(|(scene, request)| {
            let mut json = request.to_json();
            changes.iter().for_each(|change| change.of(&ASKED, json.as_object_mut().unwrap()));
            // A mutation that cannot be parsed is not a request; one that parses to the same value is not a mutation.
            let changed = RequestPart::from_json(&json).filter(|changed| changed != request);
            if let Some(changed) = changed {
                let opened = BoundRequest::open(&changed, &scene.keys());
                prop_assert!(opened.is_err(), "{changes:?} {json}");
            }
            Ok(())
        })?;
    }

    /// I3. No mutation turns a sealed response into another one: it counts unchanged or not at all.
    #[test]
    fn i3_mutated_sealed_answer_never_counts_as_another(
        changes in prop::collection::vec(changes(), 1..4),
        base in 0_usize..4,
    ) {
        QUESTION.with(|(scene, request)| {
            let keys = scene.keys();
            let question = BoundRequest::open(request, &keys).unwrap();
            let yes = approval_response(&request.approval_id, true);
            let given = match base {
                0 => yes,
                1 => ResponsePart { approved: false, reason: Some("no".into()), ..yes },
                2 => ResponsePart { edited_input: Some(json!({ "amount": 250, "note": "soon" })), ..yes },
                _ => ResponsePart { output: Some(json!(7)), ..yes },
            };
            let answer = scene.signed(Approver::new("bea"), given);
            let token = request.approval_token.as_deref().unwrap();
            let standing = |answer: ResponsePart| count_answers(&question, token, &[answer], &keys, &|_| false).0;
            let mut json = answer.to_json();
            let original = standing(answer);
            prop_assert_ne!(&original, &Tally::Pending { by: vec![] });
            changes.iter().for_each(|change| change.of(&ANSWERED, json.as_object_mut().unwrap()));
            if let Some(changed) = ResponsePart::from_json(&json) {
                let now = standing(changed);
                prop_assert!(now == original || matches!(&now, Tally::Pending { by } if by.is_empty()), "{json}");
            }
            Ok(())
        })?;
    }
}

#[test]
fn full_request_fixture_has_every_member() {
    let (scene, request) = full_request();
    let json = request.to_json();
    assert!(ASKED.iter().all(|member| json.get(*member).is_some()), "{json}");
    assert!(BoundRequest::open(&request, &scene.keys()).is_ok());
}
