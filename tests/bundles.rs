//! Shipped bundles over their recorded sessions: each rule alone blocks an attack, everyday work is not blocked, and the demos match
//! their snapshots.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use callgate::call::{CallRecord, Outcome, OutcomeKind, RecordedResult, Verdict};
use callgate::host::ManualClock;
use callgate::middleware::PolicyKind;
use callgate::policy::{CompiledPolicies, Mode};
use callgate::{Engine, ToolDescriptor, engine, tools};

use crate::recorded_calls::{decisions, in_result_forms, play, project, records, sessions};

const BUNDLES: [&str; 5] = ["assistant", "email-calendar", "filesystem", "git", "payments"];

/// A rule that no session reaches without approvals: amounts that large each require approval.
const BEHIND_ANSWERS: &str = "all-amounts-of-a-day";

fn file(bundle: &str, name: &str) -> Vec<CallRecord> {
    records(&std::fs::read_to_string(project(&format!("policies/{bundle}/sessions/{name}.jsonl"))).unwrap())
}

/// Bundles loaded together, with their tools.
struct Loaded {
    chains: Arc<CompiledPolicies>,
    tools: Vec<ToolDescriptor>,
}

impl Loaded {
    fn of(bundles: &[&str]) -> Self {
        let paths: Vec<_> = bundles.iter().map(|bundle| project(&format!("policies/{bundle}"))).collect();
        let chains = engine::load(&paths).unwrap_or_else(|error| panic!("{error}"));
        let lists = paths.iter().filter_map(|path| std::fs::read_to_string(path.join("tools.json")).ok());
        Self { chains, tools: lists.flat_map(|list| tools::parse_list(&list).unwrap()).collect() }
    }

    /// Replays a session in a new engine with a stopped clock.
    fn play(&self, records: &[CallRecord]) -> Vec<Outcome> {
        let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
        let engine = Engine::builder(Arc::clone(&self.chains)).tools(self.tools.clone()).clock(clock).build();
        play(&mut engine.session(), records)
    }

    /// The rules that block calls.
    fn rules(&self) -> BTreeSet<String> {
        let blocks = |kind: &PolicyKind| {
            matches!(
                kind,
                PolicyKind::Deny(_)
                    | PolicyKind::Require(_)
                    | PolicyKind::Approval(_)
                    | PolicyKind::Halt(_)
                    | PolicyKind::RateLimit(_)
            )
        };
        let policies = self.chains.policies().iter();
        let rules = policies.filter(|policy| blocks(&policy.kind) && policy.mode == Mode::Enforce);
        rules.map(|policy| policy.id.clone()).collect()
    }
}

/// The policies that block a call, each with whether its condition was undecided.
fn blocking(outcome: &Outcome) -> Vec<(&str, bool)> {
    let blocks = |verdict| matches!(verdict, Verdict::Deny | Verdict::Halt | Verdict::Suspend);
    let blocking = outcome.policies.iter().filter(|policy| blocks(policy.verdict) && !policy.shadow);
    blocking.map(|policy| (policy.id.as_str(), policy.undecided)).collect()
}

#[test]
fn every_rule_alone_blocks_the_last_call_of_its_session() {
    for bundle in BUNDLES {
        let (loaded, sessions) = (Loaded::of(&[bundle]), sessions(file(bundle, "rules")));
        let mut rules = loaded.rules();
        rules.remove(BEHIND_ANSWERS);
        assert_eq!(sessions.keys().cloned().collect::<BTreeSet<_>>(), rules, "{bundle}");
        for (rule, calls) in sessions {
            let outcomes = loaded.play(&calls);
            let (last, before) = outcomes.split_last().unwrap();
            for (outcome, call) in before.iter().zip(&calls) {
                let failed = matches!(call.recorded, Some(RecordedResult::Error { .. }));
                let expected = if failed { OutcomeKind::Failed } else { OutcomeKind::Executed };
                assert_eq!(outcome.outcome, expected, "{bundle}: {}", outcome.id);
            }
            assert_eq!(blocking(last), [(rule.as_str(), false)], "{bundle}: {}", last.id);
            assert!(!last.reason.message.contains("(absent)"), "{rule}: {}", last.reason.message);
        }
    }
}

/// The outcomes of sessions, with counts of approval requests. Executed calls are listed only if `all` is set.
fn outline(bundle: &str, name: &str, all: bool) -> String {
    let loaded = Loaded::of(&[bundle]);
    let (mut outline, mut calls, mut suspended, mut blocked) = (String::new(), 0, 0, 0);
    for (session, records) in sessions(file(bundle, name)) {
        let _ = writeln!(outline, "{session}");
        for outcome in loaded.play(&records) {
            let ran = outcome.outcome == OutcomeKind::Executed;
            let is_suspended = outcome.outcome == OutcomeKind::Suspended;
            (calls, suspended) = (calls + 1, suspended + usize::from(is_suspended));
            blocked += usize::from(!ran && !is_suspended);
            if ran && !all {
                continue;
            }
            let kind = callgate::json::to_value(outcome.outcome).unwrap();
            let _ = write!(outline, "  {} {}", outcome.tool, kind.as_str().unwrap());
            for (policy, undecided) in blocking(&outcome) {
                let _ = write!(outline, " {policy}{}", if undecided { " (undecided)" } else { "" });
            }
            outline.push('\n');
            if !ran {
                let _ = writeln!(outline, "    {}", outcome.reason.message);
            }
        }
    }
    let _ = writeln!(outline, "{calls} calls: {suspended} suspended, {blocked} blocked");
    outline
}

fn assert_outline(bundle: &str, name: &str, all: bool) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/bundles");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let name_of_snapshot = format!("{bundle}-{name}");
    settings.bind(|| insta::assert_snapshot!(name_of_snapshot, outline(bundle, name, all)));
}

#[test]
fn demo_sessions_match_snapshots() {
    for bundle in BUNDLES {
        assert_outline(bundle, "demo", true);
    }
}

/// People disable a guardrail that requires approval at every step. The snapshots show which everyday calls require approval.
#[test]
fn everyday_sessions_match_snapshots() {
    for bundle in BUNDLES {
        assert_outline(bundle, "everyday", false);
    }
}

#[test]
fn results_decide_the_same_in_every_form() {
    for bundle in ["assistant", "payments"] {
        let loaded = Loaded::of(&[bundle]);
        let mut executed = 0;
        for (session, records) in
            ["rules", "everyday", "demo"].into_iter().flat_map(|name| sessions(file(bundle, name)))
        {
            let plain = decisions(&loaded.play(&records));
            executed += records
                .iter()
                .filter(|call| matches!(call.recorded, Some(RecordedResult::Output(_))))
                .count();
            for (form, changed) in in_result_forms(&records).iter().enumerate() {
                assert_eq!(decisions(&loaded.play(changed)), plain, "{bundle}: {session}, form {form}");
            }
        }
        assert!(executed > 20, "{bundle}: {executed}");
    }
}

/// Agents use several servers at once, together with rules against data leaks.
#[test]
fn bundles_can_be_combined() {
    // Policy ids are unique across bundles.
    Loaded::of(&["email-calendar", "filesystem", "git", "payments", "pii", "retail"]);
    // Names are unique, too: `assistant` has functions as `retail` does, and names of payments as `payments` does.
    Loaded::of(&["assistant", "email-calendar", "filesystem", "git", "pii"]);
    for (together, of) in [
        (Loaded::of(&["filesystem", "git", "pii"]), &["filesystem", "git"][..]),
        (Loaded::of(&["payments", "pii"]), &["payments"]),
    ] {
        for bundle in of {
            let alone = Loaded::of(&[bundle]);
            for (session, records) in sessions(file(bundle, "everyday")) {
                let kinds = |loaded: &Loaded| -> Vec<_> {
                    loaded.play(&records).iter().map(|outcome| outcome.outcome).collect()
                };
                assert_eq!(kinds(&together), kinds(&alone), "{session}");
            }
        }
    }
}
