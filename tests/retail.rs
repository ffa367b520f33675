//! The shipped bundle for retail support agents, over recorded sessions and synthetic attacks.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use callgate::call::{CallRecord, Outcome, OutcomeKind, RecordedResult, Verdict};
use callgate::json::{Key, Value, json};
use callgate::middleware::PolicyKind;
use callgate::{Engine, ToolDescriptor};

use crate::recorded_calls::{decisions, engine, in_result_forms, play, project, records, sessions};

const BUNDLE: &str = "policies/retail";

const CHANGES: [&str; 7] = [
    "cancel_pending_order",
    "exchange_delivered_order_items",
    "modify_pending_order_address",
    "modify_pending_order_items",
    "modify_pending_order_payment",
    "modify_user_address",
    "return_delivered_order_items",
];

fn file(path: &str) -> Vec<CallRecord> {
    records(&std::fs::read_to_string(project(path)).unwrap())
}

/// The policies that block a call, each with whether its condition was undecided.
fn blocking(outcome: &Outcome) -> Vec<(&str, bool)> {
    let blocks = |verdict| matches!(verdict, Verdict::Deny | Verdict::Halt | Verdict::Suspend);
    let blocking = outcome.policies.iter().filter(|policy| blocks(policy.verdict));
    blocking.map(|policy| (policy.id.as_str(), policy.undecided)).collect()
}

fn deny_rules() -> BTreeSet<String> {
    let chains = callgate::engine::load(&[project(BUNDLE)]).unwrap();
    let denies = chains
        .policies()
        .iter()
        .filter(|policy| matches!(policy.kind, PolicyKind::Deny(_) | PolicyKind::Require(_)));
    denies.map(|policy| policy.id.clone()).collect()
}

#[test]
fn every_rule_alone_denies_a_call_of_its_session() {
    let engine = engine(BUNDLE);
    let sessions = sessions(file("policies/retail/sessions/rules.jsonl"));
    assert_eq!(sessions.keys().cloned().collect::<BTreeSet<_>>(), deny_rules());
    for (rule, calls) in sessions {
        let outcomes = play(&mut engine.session(), &calls);
        let denied: Vec<_> =
            outcomes.iter().filter(|outcome| outcome.outcome != OutcomeKind::Executed).collect();
        assert_eq!(denied.len(), 1, "{rule}");
        for outcome in denied {
            assert_eq!(outcome.outcome, OutcomeKind::Denied, "{rule}");
            assert_eq!(blocking(outcome), [(rule.as_str(), false)], "{}", outcome.id);
            assert!(!outcome.reason.message.contains("(absent)"), "{rule}: {}", outcome.reason.message);
        }
    }
}

/// Returns the rule of the shop's policy that a successful recorded change breaks, if any.
fn broken_rule(before: &[CallRecord], call: &CallRecord) -> Option<&'static str> {
    let succeeded = |record: &&CallRecord| matches!(record.recorded, Some(RecordedResult::Output(_)));
    let mut earlier = before.iter().filter(succeeded);
    if !earlier.clone().any(|record| record.call.tool.starts_with("find_user_id_by_")) {
        return Some("identify-first");
    }
    let order = call.call.input.get("order_id")?;
    let looked_up = earlier.any(|record| {
        record.call.tool == "get_order_details" && record.call.input.get("order_id") == Some(order)
    });
    (!looked_up).then_some("look-up-order-first")
}

fn assert_recorded_changes_follow_the_policy(engine: &Engine, recorded: Vec<CallRecord>) -> [usize; 2] {
    let (mut executed, mut denied) = (0, 0);
    for calls in sessions(recorded).values() {
        for (place, outcome) in play(&mut engine.session(), calls).iter().enumerate() {
            let call = &calls[place];
            let succeeded = matches!(call.recorded, Some(RecordedResult::Output(_)));
            assert!(!blocking(outcome).iter().any(|(_, undecided)| *undecided), "{}", outcome.id);
            if !CHANGES.contains(&call.call.tool.as_str()) || !succeeded {
                continue;
            }
            match broken_rule(&calls[..place], call) {
                None => {
                    executed += 1;
                    assert_eq!(outcome.outcome, OutcomeKind::Executed, "{}", outcome.id);
                }
                Some(rule) => {
                    denied += 1;
                    assert_eq!(outcome.outcome, OutcomeKind::Denied, "{}", outcome.id);
                    assert_eq!(blocking(outcome), [(rule, false)], "{}", outcome.id);
                }
            }
        }
    }
    [executed, denied]
}

#[test]
fn recorded_changes_run_only_if_they_follow_the_policy() {
    let recorded = || file("tests/retail/recorded.jsonl");
    let counts = assert_recorded_changes_follow_the_policy(&engine(BUNDLE), recorded());
    assert_eq!(counts, [18, 11]);
    // Redaction of personal data must not hide values that the rules read.
    let both = Engine::from_paths(&[project(BUNDLE), project("policies/pii")]).unwrap();
    assert_eq!(assert_recorded_changes_follow_the_policy(&both, recorded()), counts);
}

/// A rule, and a mutation of a session with a permitted change so that only this rule denies the change.
type Mutation = (&'static str, fn(&mut Vec<CallRecord>, &mut CallRecord));

fn order_outputs<'a>(before: &'a mut [CallRecord], call: &CallRecord) -> impl Iterator<Item = &'a mut Value> {
    let order = call.call.input["order_id"].clone();
    before.iter_mut().filter_map(move |record| match &mut record.recorded {
        Some(RecordedResult::Output(output)) if record.call.input.get("order_id") == Some(&order) => {
            Some(output)
        }
        _ => None,
    })
}

#[test]
fn a_permitted_change_is_denied_once_it_breaks_a_rule() {
    let mutations: [Mutation; 6] = [
        ("identify-first", |before, _| before.retain(|record| !record.call.tool.starts_with("find_user"))),
        ("look-up-order-first", |before, call| {
            before.retain(|record| record.call.input.get("order_id") != call.call.input.get("order_id"));
        }),
        ("own-orders-only", |before, call| {
            order_outputs(before, call).for_each(|output| output["user_id"] = json!("eve_moss_1"));
        }),
        ("own-payment-methods-only", |_, call| {
            call.call.input["payment_method_id"] = json!("credit_card_0");
        }),
        ("items-of-the-order-only", |_, call| call.call.input["item_ids"][0] = json!("0")),
        ("same-product-only", |_, call| call.call.input["new_item_ids"][0] = json!("0")),
    ];
    let engine = engine(BUNDLE);
    for (rule, mutate) in mutations {
        let mut tried = 0;
        for calls in sessions(file("tests/retail/recorded.jsonl")).values() {
            for (place, call) in calls.iter().enumerate() {
                let needed = match rule {
                    "own-payment-methods-only" => "payment_method_id",
                    "items-of-the-order-only" => "item_ids",
                    "same-product-only" => "new_item_ids",
                    _ => "order_id",
                };
                let (mut before, mut call) = (calls[..place].to_vec(), call.clone());
                let profile_known = before.iter().any(|record| record.call.tool == "get_user_details");
                if !CHANGES.contains(&call.call.tool.as_str())
                    || !matches!(call.recorded, Some(RecordedResult::Output(_)))
                    || broken_rule(&before, &call).is_some()
                    || call.call.input.get(needed).is_none()
                    || rule == "own-payment-methods-only" && !profile_known
                {
                    continue;
                }
                tried += 1;
                mutate(&mut before, &mut call);
                before.push(call);
                let outcome = play(&mut engine.session(), &before).pop().unwrap();
                assert_eq!(outcome.outcome, OutcomeKind::Denied, "{}", outcome.id);
                assert_eq!(blocking(&outcome), [(rule, false)], "{}", outcome.id);
            }
        }
        assert!(tried >= 5, "{rule} was tried {tried} times");
    }
}

/// `CALLGATE_RECORDINGS=calls.jsonl` runs the same checks over recordings outside the repository.
#[test]
fn external_recordings_follow_the_policy() {
    let Some(path) = std::env::var_os("CALLGATE_RECORDINGS").map(PathBuf::from) else { return };
    let recorded = records(&std::fs::read_to_string(path).unwrap());
    let [executed, denied] = assert_recorded_changes_follow_the_policy(&engine(BUNDLE), recorded);
    println!("{executed} changes executed, {denied} denied");
}

/// One line per call with its outcome and the policies that block it, then the message of the reason.
fn outline(path: &str) -> String {
    let engine = engine(BUNDLE);
    let mut outline = String::new();
    for (name, calls) in sessions(file(path)) {
        let _ = writeln!(outline, "{name}");
        for outcome in play(&mut engine.session(), &calls) {
            let kind = callgate::json::to_value(outcome.outcome).unwrap();
            let _ = write!(outline, "  {} {}", outcome.tool, kind.as_str().unwrap());
            for (policy, undecided) in blocking(&outcome) {
                let _ = write!(outline, " {policy}{}", if undecided { " (undecided)" } else { "" });
            }
            outline.push('\n');
            let decided = blocking(&outcome).iter().any(|(_, undecided)| !undecided);
            if decided && outcome.outcome != OutcomeKind::Invalid {
                let _ = writeln!(outline, "    {}", outcome.reason.message);
            }
        }
    }
    outline
}

fn assert_outline(name: &str, path: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/retail");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, outline(path)));
}

#[test]
fn the_demo_shows_a_denial_and_a_suspension() {
    assert_outline("demo", "policies/retail/sessions/demo.jsonl");
}

#[test]
fn attack_sessions_match_snapshot() {
    assert_outline("attacks", "tests/retail/attacks.jsonl");
}

#[test]
fn orders_of_other_users_are_not_shown() {
    let sessions = sessions(file("policies/retail/sessions/rules.jsonl"));
    let outcomes = play(&mut engine(BUNDLE).session(), &sessions["own-orders-only"]);
    let shown: Vec<&str> =
        outcomes[1].output.as_ref().unwrap().as_object().unwrap().keys().map(Key::as_str).collect();
    assert_eq!(shown, ["user_id", "note", "order_id"]);
    assert_eq!(outcomes[1].output.as_ref().unwrap()["user_id"], "another user");
}

#[test]
fn every_argument_a_tool_needs_is_required() {
    let engine = engine(BUNDLE);
    let tools = std::fs::read_to_string(project("policies/retail/tools.json")).unwrap();
    let tools: Vec<ToolDescriptor> = callgate::json::from_str(&tools).unwrap();
    assert_eq!(tools.len(), 16);
    for tool in tools {
        let schema = tool.input_schema.unwrap();
        let properties = schema["properties"].as_object().unwrap();
        let mut arguments: Value = json!({});
        for (name, property) in properties {
            arguments[name] = if property["type"] == "array" { json!(["x"]) } else { json!("x") };
        }
        let outcome = |input: Value| {
            let line = json!({ "id": "c", "tool": tool.name, "input": input }).to_string();
            play(&mut engine.session(), &records(&line)).remove(0)
        };
        assert_ne!(outcome(arguments.clone()).outcome, OutcomeKind::Invalid, "{}", tool.name);
        for name in properties.keys() {
            let mut misspelled = arguments.clone();
            let value = misspelled.as_object_mut().unwrap().remove(name).unwrap();
            misspelled[format!("{name}s")] = value;
            let outcome = outcome(misspelled);
            assert_eq!(outcome.outcome, OutcomeKind::Invalid, "{} {name}", tool.name);
            assert!(outcome.reason.message.contains("did you mean"), "{}", outcome.reason.message);
        }
    }
}

#[test]
fn results_decide_the_same_in_every_form() {
    let engine = engine(BUNDLE);
    let decided = |calls: &[CallRecord]| decisions(&play(&mut engine.session(), calls));
    let files =
        ["policies/retail/sessions/rules.jsonl", "tests/retail/recorded.jsonl", "tests/retail/attacks.jsonl"];
    let mut executed = 0;
    for calls in files.into_iter().flat_map(|path| sessions(file(path)).into_values()) {
        let plain = decided(&calls);
        executed +=
            calls.iter().filter(|call| matches!(call.recorded, Some(RecordedResult::Output(_)))).count();
        for (form, changed) in in_result_forms(&calls).iter().enumerate() {
            assert_eq!(decided(changed), plain, "form {form}");
        }
    }
    assert!(executed > 200, "{executed}");
}
