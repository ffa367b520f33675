//! The shipped bundles with sessions beside them: each rule stops an attack by itself, what people do every day goes on, and what the
//! demos show.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use callgate::call::{CallRecord, Outcome, OutcomeKind, Recorded, Verdict};
use callgate::host::ManualClock;
use callgate::middleware::Kind;
use callgate::policy::{Chains, Mode};
use callgate::{Engine, ToolDescriptor, engine, tools};

use crate::playback::{play, project, records, sessions};

const BUNDLES: [&str; 4] = ["email-calendar", "filesystem", "git", "payments"];

/// A rule that no session comes to without people's answers: amounts that large need a yes each.
const BEHIND_ANSWERS: &str = "all-amounts-of-a-day";

fn file(bundle: &str, name: &str) -> Vec<CallRecord> {
    records(&std::fs::read_to_string(project(&format!("policies/{bundle}/sessions/{name}.jsonl"))).unwrap())
}

/// Bundles loaded together, with their tools.
struct Loaded {
    chains: Arc<Chains>,
    tools: Vec<ToolDescriptor>,
}

impl Loaded {
    fn of(bundles: &[&str]) -> Self {
        let paths: Vec<_> = bundles.iter().map(|bundle| project(&format!("policies/{bundle}"))).collect();
        let chains = engine::load(&paths).unwrap_or_else(|error| panic!("{error}"));
        let lists = paths.iter().filter_map(|path| std::fs::read_to_string(path.join("tools.json")).ok());
        Self { chains, tools: lists.flat_map(|list| tools::read_list(&list).unwrap()).collect() }
    }

    /// Plays a session in an engine of its own, whose clock stands still.
    fn play(&self, records: &[CallRecord]) -> Vec<Outcome> {
        let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
        let engine = Engine::builder(Arc::clone(&self.chains)).tools(self.tools.clone()).clock(clock).build();
        play(&mut engine.session(), records)
    }

    /// The rules that stop calls.
    fn rules(&self) -> BTreeSet<String> {
        let stops = |kind: &Kind| {
            matches!(kind, Kind::Deny(_) | Kind::Approval(_) | Kind::Halt(_) | Kind::RateLimit(_))
        };
        let policies = self.chains.policies().iter();
        let rules = policies.filter(|policy| stops(&policy.kind) && policy.mode == Mode::Enforce);
        rules.map(|policy| policy.id.clone()).collect()
    }
}

/// The policies that stop a call, with those that could not be decided.
fn stopping(outcome: &Outcome) -> Vec<(&str, bool)> {
    let stops = |verdict| matches!(verdict, Verdict::Deny | Verdict::Halt | Verdict::Suspend);
    let stopping = outcome.policies.iter().filter(|policy| stops(policy.verdict) && !policy.shadow);
    stopping.map(|policy| (policy.id.as_str(), policy.undecided)).collect()
}

#[test]
fn for_every_rule_there_is_a_session_whose_last_call_it_alone_stops() {
    for bundle in BUNDLES {
        let (loaded, sessions) = (Loaded::of(&[bundle]), sessions(file(bundle, "rules")));
        let mut rules = loaded.rules();
        rules.remove(BEHIND_ANSWERS);
        assert_eq!(sessions.keys().cloned().collect::<BTreeSet<_>>(), rules, "{bundle}");
        for (rule, calls) in sessions {
            let outcomes = loaded.play(&calls);
            let (last, before) = outcomes.split_last().unwrap();
            for (outcome, call) in before.iter().zip(&calls) {
                let failed = matches!(call.recorded, Some(Recorded::Error { .. }));
                let expected = if failed { OutcomeKind::Failed } else { OutcomeKind::Executed };
                assert_eq!(outcome.outcome, expected, "{bundle}: {}", outcome.id);
            }
            assert_eq!(stopping(last), [(rule.as_str(), false)], "{bundle}: {}", last.id);
            assert!(!last.reason.message.contains("(absent)"), "{rule}: {}", last.reason.message);
        }
    }
}

/// What sessions come to, and of how many calls people were asked. Calls that ran are named where `all` is said.
fn outline(bundle: &str, name: &str, all: bool) -> String {
    let loaded = Loaded::of(&[bundle]);
    let (mut outline, mut calls, mut asked, mut stopped) = (String::new(), 0, 0, 0);
    for (session, records) in sessions(file(bundle, name)) {
        let _ = writeln!(outline, "{session}");
        for outcome in loaded.play(&records) {
            let ran = outcome.outcome == OutcomeKind::Executed;
            let waits = outcome.outcome == OutcomeKind::Suspended;
            (calls, asked) = (calls + 1, asked + usize::from(waits));
            stopped += usize::from(!ran && !waits);
            if ran && !all {
                continue;
            }
            let kind = callgate::json::to_value(outcome.outcome).unwrap();
            let _ = write!(outline, "  {} {}", outcome.tool, kind.as_str().unwrap());
            for (policy, undecided) in stopping(&outcome) {
                let _ = write!(outline, " {policy}{}", if undecided { " (undecided)" } else { "" });
            }
            outline.push('\n');
            if !ran {
                let _ = writeln!(outline, "    {}", outcome.reason.message);
            }
        }
    }
    let _ = writeln!(outline, "{calls} calls: {asked} asked about, {stopped} stopped");
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
fn demos_show_what_runs_and_what_does_not() {
    for bundle in BUNDLES {
        assert_outline(bundle, "demo", true);
    }
}

/// A guard that asks at every step is switched off. The snapshots say which steps of everyday work these ask about.
#[test]
fn what_is_done_every_day_goes_on() {
    for bundle in BUNDLES {
        assert_outline(bundle, "everyday", false);
    }
}

/// Agents have several servers at once, and rules against leaking on top.
#[test]
fn bundles_go_together() {
    // No id of theirs is used twice.
    Loaded::of(&["email-calendar", "filesystem", "git", "payments", "pii", "retail"]);
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
