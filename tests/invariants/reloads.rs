//! Property test: a reload that lets a stopped call run is always reported as a widening.

use callgate::json::{Value, json};
use callgate::policy::find_widenings;
use callgate::{Effect, Engine, SessionState, ToolCall, engine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::vocabulary::{EVERYTHING, call, policies, restricting, rules, unmatched};

/// What an edit does to one policy.
#[derive(Clone, Debug)]
enum Edit {
    Keep,
    Remove,
    Mode(&'static str),
    Priority(i64),
    Replace(Value),
}

/// Mostly edits that restrict, so that there is something to compare.
fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        8 => Just(Edit::Keep),
        2 => Just(Edit::Mode("enforce")),
        1 => select(&["shadow", "off"][..]).prop_map(Edit::Mode),
        1 => Just(Edit::Remove),
        1 => (-1i64..2).prop_map(Edit::Priority),
        1 => policies(EVERYTHING).prop_map(|policies| Edit::Replace(policies[0].clone())),
    ]
}

/// The policies of a bundle, with ids; some of them are in shadow mode or off.
fn named() -> impl Strategy<Value = Vec<Value>> {
    let mode = select(&["enforce", "enforce", "enforce", "shadow", "off"][..]);
    (policies(EVERYTHING), vec(mode, 8)).prop_map(|(mut policies, modes)| {
        for (place, (policy, mode)) in policies.iter_mut().zip(modes).enumerate() {
            policy["id"] = format!("p{place}").into();
            policy["mode"] = mode.into();
        }
        policies
    })
}

/// The policies after an edit.
fn apply_edits(before: &[Value], edits: Vec<Edit>, added: Vec<Value>) -> Vec<Value> {
    let mut after = Vec::new();
    for (policy, edit) in before.iter().zip(edits) {
        let mut policy = policy.clone();
        match edit {
            Edit::Keep => {}
            Edit::Remove => continue,
            Edit::Mode(mode) => policy["mode"] = mode.into(),
            Edit::Priority(priority) => policy["priority"] = priority.into(),
            Edit::Replace(mut other) => {
                other["id"] = policy["id"].clone();
                policy = other;
            }
        }
        after.push(policy);
    }
    for (place, mut policy) in added.into_iter().enumerate() {
        policy["id"] = format!("added{place}").into();
        after.insert(place.min(after.len()), policy);
    }
    after
}

/// The policies before and after an edit, the latter in another order half of the time.
pub(super) fn pair() -> impl Strategy<Value = (Vec<Value>, Vec<Value>)> {
    let added = prop_oneof![
        2 => Just(Vec::new()),
        2 => restricting(EVERYTHING).prop_map(|policy| vec![policy]),
        1 => policies(EVERYTHING),
    ];
    (named(), vec(edit(), 8), added)
        .prop_map(|(before, edits, added)| {
            let after = apply_edits(&before, edits, added);
            (before, after)
        })
        .prop_flat_map(|(before, after)| {
            let order = prop_oneof![Just(after.clone()), Just(after).prop_shuffle()];
            (Just(before), order)
        })
}

/// An answer by a policy keeps the tool from running, so it is stricter than running here. All refusals are equal.
pub(super) fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Run => 0,
        Effect::Answer => 1,
        Effect::Suspend => 2,
        Effect::Invalid | Effect::Deny => 3,
        Effect::Halt => 4,
    }
}

/// Calls that may lack a field; `absent` determines their outcome.
pub(super) fn calls() -> impl Strategy<Value = Vec<ToolCall>> {
    let missing = prop::option::of(select(&["amount", "to", "flag", "tags", "nested"][..]));
    let call = (call(), missing).prop_map(|(mut call, missing)| {
        if let (Some(missing), Some(input)) = (missing, call.input.as_object_mut()) {
            input.remove(missing);
        }
        call
    });
    vec(call, 1..12)
}

/// No call gets a more permissive effect from a change that is not a widening.
fn check(before: &str, after: &str, calls: &[ToolCall]) -> Result<(), TestCaseError> {
    let (old, new) = (engine::load_text(before).unwrap(), engine::load_text(after).unwrap());
    if !find_widenings(&old, &new).is_empty() {
        return Ok(());
    }
    let (old, new) = (Engine::new(old), Engine::new(new));
    let session = SessionState::default();
    for call in calls {
        let (was, is) = (old.decide(call, &session).effect(), new.decide(call, &session).effect());
        prop_assert!(strictness(is) >= strictness(was), "{was:?} became {is:?}\n{before}\n{after}\n{call:?}");
    }
    Ok(())
}

/// Policies that each decide for some amount, to be combined in any order.
const SHARP: [(&str, &str, &str); 11] = [
    ("deny-3", "$.input.amount", r#"{ "gt": 2, "deny": {} }"#),
    ("halt-0", "$.input.amount", r#"{ "eq": 0, "halt": {} }"#),
    ("ask-1", "$.input.amount", r#"{ "eq": 1, "approval": {} }"#),
    ("allow-2", "$.input.amount", r#"{ "lte": 2, "allow": {} }"#),
    ("answer-1", "$.input.amount", r#"{ "lte": 1, "respond": { "output": 1 } }"#),
    ("answer-2", "$.input.amount", r#"{ "lte": 2, "respond": { "output": 2 } }"#),
    (
        "small",
        "$.tool",
        r#"{ "eq": "pay", "validate": { "schema": { "properties": { "amount": { "maximum": 2 } } } } }"#,
    ),
    (
        "even",
        "$.tool",
        r#"{ "eq": "pay", "validate": { "schema": { "properties": { "amount": { "multipleOf": 2 } } } } }"#,
    ),
    (
        "to-2",
        "$.input.amount",
        r#"{ "eq": 3, "transform": { "input": [ { "path": "$.input.amount", "set": 2 } ] } }"#,
    ),
    (
        "to-3",
        "$.input.amount",
        r#"{ "eq": 1, "transform": { "input": [ { "path": "$.input.amount", "set": 3 } ] } }"#,
    ),
    (
        "to-1",
        "$.input.amount",
        r#"{ "eq": 2, "transform": { "input": [ { "path": "$.input.amount", "set": 1 } ] } }"#,
    ),
];

fn deciding_policies() -> impl Strategy<Value = Vec<Value>> {
    let mode = select(&["enforce", "enforce", "enforce", "enforce", "shadow", "off"][..]);
    let policies: Vec<Value> = SHARP
        .iter()
        .map(|(id, path, rest)| {
            let mut policy: Value = callgate::json::from_str(rest).unwrap();
            let members = policy.as_object_mut().unwrap();
            let first = members.keys().next().unwrap().clone();
            let (operator, operand) = members.remove_entry(&first).unwrap();
            policy["id"] = (*id).into();
            policy["match"] = json!({ "where": { "path": path, operator: operand } });
            policy
        })
        .collect();
    (subsequence(policies, 1..6).prop_shuffle(), vec(mode, 6)).prop_map(|(mut policies, modes)| {
        for (policy, mode) in policies.iter_mut().zip(modes) {
            policy["mode"] = mode.into();
        }
        policies
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn change_that_stops_fewer_calls_is_a_widening(
        (before, after) in pair(),
        (unmatched_before, unmatched_after) in prop_oneof![
            3 => unmatched().prop_map(|unmatched| (unmatched, unmatched)),
            1 => (unmatched(), unmatched()),
        ],
        (absent_before, absent_after) in select(&[
            ("match", "match"), ("no_match", "no_match"), ("no_match", "match"), ("match", "no_match"),
        ][..]),
        calls in calls(),
    ) {
        let before = rules(unmatched_before, absent_before, &before);
        check(&before, &rules(unmatched_after, absent_after, &after), &calls)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]
    /// The same if every policy and every order matters.
    #[test]
    fn added_removed_or_moved_policies_are_widenings_if_they_stop_fewer_calls(
        unmatched in unmatched(),
        (before, more) in (deciding_policies(), deciding_policies()),
        keep in any::<bool>(),
    ) {
        // Half of the time nothing is removed, so that only the added policy and its position differ.
        let mut after = more;
        if keep {
            let new = after.len();
            let known: Vec<Value> = after.iter().map(|policy| policy["id"].clone()).collect();
            after.extend(before.iter().filter(|policy| !known.contains(&policy["id"])).cloned());
            after.rotate_left(new / 2);
        }
        let calls: Vec<ToolCall> = (0..4).map(|amount| ToolCall::new("c1", "pay", json!({ "amount": amount }))).collect();
        check(&rules(unmatched, "no_match", &before), &rules(unmatched, "no_match", &after), &calls)?;
    }
}
