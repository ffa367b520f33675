//! Examination agrees with evaluation; a listener is notified of every policy, and changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use callgate::call::{CallView, Phase};
use callgate::diagnostic::SourceMap;
use callgate::explain::Explanation;
use callgate::json::{Value, json};
use callgate::kernel::{Event, EventListener, MatchStatus, PolicyEvaluated};
use callgate::matcher::{ExaminedCondition, ExaminedForm, TestedValues, Truth};
use callgate::policy::CompiledPolicies;
use callgate::{Outcome, OutcomeKind, SessionState, ToolCall, engine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::vocabulary::{EVERYTHING, call, engine as engine_of, policies, rules, unmatched};
use super::{Witness, block_on, execute, normalized_outcome};

const FIELDS: [&str; 8] = ["amount", "to", "file", "url", "flag", "tags", "nested", "other"];

/// A call whose fields may be missing or of another type.
fn any_call() -> impl Strategy<Value = ToolCall> {
    let other = select(vec![json!(null), json!("3"), json!(3), json!([["b"], "b"]), json!({ "level": "x" })]);
    let changes = vec((select(&FIELDS[..]), prop::option::of(other)), 0..4);
    (call(), changes, any::<bool>()).prop_map(|(mut call, changes, anonymous)| {
        let input = call.input.as_object_mut().unwrap();
        for (field, value) in changes {
            match value {
                Some(value) => input.insert(field.to_owned(), value),
                None => input.remove(field),
            };
        }
        if anonymous {
            call.context = Value::Null;
        }
        call
    })
}

/// Contradictions within one examination.
fn contradictions(examined: &ExaminedCondition<'_>) -> Vec<String> {
    let mut found = Vec::new();
    examined.visit(&mut |part| {
        let whole = match &part.form {
            ExaminedForm::All(parts) => Truth::all(parts.iter().map(|part| part.truth.clone())),
            ExaminedForm::Any(parts) => Truth::any(parts.iter().map(|part| part.truth.clone())),
            ExaminedForm::Not(inner) => !inner.truth.clone(),
            ExaminedForm::Test(test) => {
                let kept = match &test.values {
                    TestedValues::Values { first, count } if first.len() == *count => first,
                    TestedValues::Values { .. } => return,
                    TestedValues::Absent | TestedValues::TypeMismatch(_) => return,
                };
                // `exists` alone reads no value.
                if test.operators.iter().all(|asked| asked.key == "exists") {
                    return;
                }
                let truths = || kept.iter().map(|value| value.truth.clone());
                match test.each.name() {
                    "any" => Truth::any(truths()),
                    "every" => Truth::all(truths()),
                    _ => !Truth::any(truths()),
                }
            }
            ExaminedForm::Expr(_) | ExaminedForm::Elements(_) | ExaminedForm::Shell(_) => return,
        };
        if whole != part.truth {
            found.push(format!("{part:?}"));
        }
    });
    found
}

/// Counts the notifications of each policy, and records contradictions.
#[derive(Default)]
struct NotificationCounter {
    /// The number of notifications of each policy, by decision, phase and position.
    heard: Mutex<BTreeMap<(usize, &'static str, u32), usize>>,
    decisions: Mutex<usize>,
    ended: Mutex<Vec<String>>,
    wrong: Mutex<Vec<String>>,
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Normalise => "normalise",
        Phase::Gate => "gate",
        Phase::Execute => "execute",
        Phase::Settle => "settle",
    }
}

impl NotificationCounter {
    fn note(&self, asking: &PolicyEvaluated<'_>) {
        let decision = *self.decisions.lock().unwrap();
        let phase = name(asking.phase.unwrap());
        *self.heard.lock().unwrap().entry((decision, phase, asking.index)).or_default() += 1;
        let examined = asking.examine();
        let truth = examined.truth();
        let fits = match asking.status {
            MatchStatus::Truth(said) => *said == truth,
            MatchStatus::Excluded | MatchStatus::OtherTool => truth == Truth::No,
            MatchStatus::Skipped(_) => true,
            unknown => panic!("{unknown:?}"),
        };
        let elsewhere = matches!(asking.status, MatchStatus::OtherTool);
        if !fits || elsewhere == (examined.matches_tool() && examined.matches_server()) {
            self.wrong
                .lock()
                .unwrap()
                .push(format!("{} {phase} {:?}: {truth:?}", asking.policy.id, asking.status));
        }
        if asking.verdict.is_some() && !asking.matches() {
            self.wrong
                .lock()
                .unwrap()
                .push(format!("{} applies although it does not match", asking.policy.id));
        }
    }
}

impl EventListener for NotificationCounter {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::DecisionStarted(_) => *self.decisions.lock().unwrap() += 1,
            Event::PolicyEvaluated(asking) => self.note(asking),
            Event::Ended(outcome) => self.ended.lock().unwrap().push(outcome.id.clone()),
            _ => {}
        }
    }
}

struct Panics;

impl EventListener for Panics {
    fn on_event(&self, _: &Event<'_>) {
        std::panic::resume_unwind(Box::new("a listener's own mistake"));
    }
}

/// The conclusions of an explanation, and those of the outcome that it explains.
fn conclusions(explanation: &Explanation, outcome: &Outcome) -> [Value; 2] {
    let explained = json!([explanation.outcome, explanation.reason, explanation.input, explanation.call.id]);
    [explained, json!([outcome.outcome, outcome.reason, outcome.input, outcome.id])]
}

fn acting(chains: &CompiledPolicies, phase: Phase) -> usize {
    chains.policies().iter().filter(|policy| policy.kind.is_active_in(phase)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn examination_agrees_with_evaluation(
        absent in select(&["match", "no_match"][..]),
        policies in policies(EVERYTHING),
        calls in vec(any_call(), 1..6),
    ) {
        let chains = engine::load_text(&rules("allow", absent, &policies)).unwrap();
        let session = SessionState::default();
        for (policy, call) in chains.policies().iter().flat_map(|policy| calls.iter().map(move |call| (policy, call))) {
            let view = CallView::new(call, &session);
            let Some(condition) = &policy.matcher.condition else { continue };
            let examined = condition.examine(&view);
            prop_assert_eq!(&examined.truth, &condition.eval(&view));
            prop_assert_eq!(contradictions(&examined), Vec::<String>::new());
        }
    }

    #[test]
    fn listener_is_notified_of_every_policy_and_changes_nothing(
        unmatched in unmatched(),
        policies in policies(EVERYTHING),
        calls in vec(any_call(), 1..4),
    ) {
        let text = rules(unmatched, "no_match", &policies);
        let chains = engine::load_text(&text).unwrap();
        let roll = Arc::new(NotificationCounter::default());
        let mut unheard = engine_of(&text).session();
        let mut heard = engine_of(&text).session().with_listener(roll.clone());
        let mut panicking = engine_of(&text).session().with_listener(Arc::new(Panics));
        for call in &calls {
            let outcome = execute(&mut unheard, call.clone(), &Witness::default());
            let same = execute(&mut heard, call.clone(), &Witness::default());
            prop_assert_eq!(normalized_outcome(&outcome), normalized_outcome(&same));
            prop_assert_eq!(&outcome.policies, &same.policies);
            prop_assert_eq!(normalized_outcome(&outcome), normalized_outcome(&execute(&mut panicking, call.clone(), &Witness::default())));
        }
        prop_assert_eq!(roll.wrong.lock().unwrap().clone(), Vec::<String>::new());
        prop_assert_eq!(roll.ended.lock().unwrap().len(), calls.len());
        let heard = roll.heard.lock().unwrap();
        prop_assert!(heard.values().all(|times| *times == 1), "{heard:?}");
        // A halted session evaluates no policy. Settle runs once per call, for its last decision.
        let first: Vec<_> = heard.keys().filter(|(decision, ..)| *decision == 1).collect();
        for phase in [Phase::Normalise, Phase::Gate, Phase::Execute] {
            let of_phase = first.iter().filter(|(_, of, _)| *of == name(phase)).count();
            prop_assert_eq!(of_phase, acting(&chains, phase), "{}", name(phase));
        }
        // Nor does an explanation change anything, and it gets the same events.
        let sources = SourceMap::default();
        let mut explained = engine_of(&text).session();
        let mut again = engine_of(&text).session();
        for call in &calls {
            let decided = engine_of(&text).explain(call, again.state(), &sources).unwrap();
            let outcome = execute(&mut again, call.clone(), &Witness::default());
            let (same, explanation) = block_on(explained.explain(call.clone(), &Witness::default(), &sources));
            let explanation = explanation.unwrap();
            prop_assert_eq!(normalized_outcome(&outcome), normalized_outcome(&same));
            let [told, came] = conclusions(&explanation, &same);
            prop_assert_eq!(told, came);
            prop_assert_eq!(explanation.decision == "invalid", outcome.outcome == OutcomeKind::Invalid);
            prop_assert_eq!(explanation.decision == "suspend", outcome.outcome == OutcomeKind::Suspended);
            let reason = outcome.reason.policy.as_deref();
            prop_assert_eq!(explanation.decisive().map(|step| step.policy.as_str()), reason);
            for named in &outcome.policies {
                let acted = explanation.steps_of(&named.id).chain(explanation.again.iter().flat_map(|again| &again.steps))
                    .any(|step| step.policy == named.id && step.verdict.is_some());
                prop_assert!(acted, "{} took part without a notification", named.id);
            }
            for (place, policy) in chains.policies().iter().enumerate() {
                prop_assert!(explanation.why_not(&policy.id).is_some(), "{place}");
                prop_assert!(decided.why_not(&policy.id).is_some(), "{place}");
            }
        }
        let settled = heard.keys().filter(|(_, of, _)| *of == "settle").count();
        prop_assert_eq!(settled, calls.len() * acting(&chains, Phase::Settle));
    }
}
