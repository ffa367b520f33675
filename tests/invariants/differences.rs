//! Property test: `diff` reports every change that treats some call less strictly, and its example calls are real.

use callgate::{Effect, Engine, SessionState, ToolCall, engine};
use callgate_analysis::{BundleComparison, ComparisonInputs, RulesVersion, WitnessBasis, compare};
use proptest::prelude::*;

use super::reloads::{calls, pair, strictness};
use super::vocabulary::{rules, unmatched};

fn diff(old: &str, new: &str) -> BundleComparison {
    let version = |text: &str| RulesVersion::from_texts([("rules.yaml", text)]).unwrap();
    let inputs = ComparisonInputs { calls_per_policy: 30, ..ComparisonInputs::default() };
    compare(&version(old), &version(new), &inputs, &mut |_, _| {})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn diff_reports_every_call_that_is_treated_differently(
        (before, after) in pair(),
        (unmatched_before, unmatched_after) in prop_oneof![
            3 => unmatched().prop_map(|unmatched| (unmatched, unmatched)),
            1 => (unmatched(), unmatched()),
        ],
        (absent_before, absent_after) in prop::sample::select(&[
            ("match", "match"), ("no_match", "no_match"), ("no_match", "match"), ("match", "no_match"),
        ][..]),
        calls in calls(),
    ) {
        let (before, after) = (rules(unmatched_before, absent_before, &before), rules(unmatched_after, absent_after, &after));
        let compared = diff(&before, &after);
        let (old, new) = (Engine::new(engine::load_text(&before).unwrap()), Engine::new(engine::load_text(&after).unwrap()));
        let session = SessionState::default();
        for call in &calls {
            let (was, is) = (old.decide(call, &session).effect(), new.decide(call, &session).effect());
            let details = format!("{was:?} became {is:?}\n{before}\n{after}\n{call:?}");
            prop_assert!(strictness(is) >= strictness(was) || compared.allows_more(), "{}", details);
            prop_assert!(strictness(is) == strictness(was) || compared.changes_meaning(), "{}", details);
        }
        for witness in compared.changes.iter().flat_map(|change| &change.witnesses) {
            prop_assert!(witness.session.is_none() && witness.now.is_none());
            let call = ToolCall::new("c1", witness.call["tool"].as_str().unwrap(), witness.call["input"].clone());
            let call = call.with_context(witness.call["context"].clone());
            let strictness_in = |engine: &Engine| strictness(engine.decide(&call, &session).effect());
            let (was, is) = (strictness_in(&old), strictness_in(&new));
            let reaches_tool = matches!(old.decide(&call, &session).effect(), Effect::Run | Effect::Suspend);
            let inputs_differ = old.decide(&call, &session).input() != new.decide(&call, &session).input();
            let differs = was != is || reaches_tool && inputs_differ;
            prop_assert_eq!(differs, witness.basis == WitnessBasis::Decision, "{:?}\n{}\n{}", witness, before, after);
        }
    }
}
