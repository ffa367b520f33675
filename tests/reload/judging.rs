//! What becomes of rules that were read: taken in, refused, or held for the host. Without time and without watching.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::engine::{self, Change, ConfirmError, Refusal};
use callgate::host::{Clock, ManualClock};
use callgate::json::json;
use callgate::policy::ReloadSettings;
use callgate::reload::{Looked, Reloader};
use callgate::{Engine, SessionState, ToolCall};

use super::{Desk, denies, denying, revision_of};

/// A desk with one rules file, its engine with a clock that is moved, and what is told of it.
struct Bench {
    desk: Desk,
    clock: ManualClock,
    engine: Engine,
    news: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    fn new(rules: &str) -> Self {
        let desk = Desk::new(&[("rules.yaml", rules)]);
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let chains = engine::load(&desk.paths(&[""])).unwrap();
        let engine = Engine::builder(chains).clock(clock.clone()).build();
        let news = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&news);
        engine.on_change(move |change| {
            let word = match change {
                Change::TakenIn { .. } => "taken in",
                Change::Refused(_) => "refused",
                Change::Held(_) => "held",
                Change::Restored => "restored",
                _ => "else",
            };
            told.lock().unwrap().push(word.to_owned());
        });
        Self { desk, clock, engine, news }
    }

    fn reloader(&self) -> Reloader {
        Reloader::new(self.engine.clone(), self.desk.paths(&[""]))
    }

    /// Writes the rules and has them looked at a second later.
    fn look(&self, reloader: &mut Reloader, rules: &str) -> Looked {
        self.clock.advance(Duration::from_secs(1));
        self.desk.write("rules.yaml", rules);
        reloader.look()
    }

    fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.news.lock().unwrap())
    }

    fn widenings(&self) -> Vec<String> {
        let held = self.engine.status().held.unwrap();
        held.widenings.iter().map(ToString::to_string).collect()
    }
}

const BROKEN: &str = "policies: [ { id: a, dney: {} } ]";

#[test]
fn the_status_is_true_at_every_step() {
    let bench = Bench::new(&denying("a"));
    let mut reloader = bench.reloader();
    let begun = bench.clock.now();
    assert_eq!(bench.engine.status().loaded_at, begun);

    assert_eq!(bench.look(&mut reloader, &denying("b")), Looked::TakenIn);
    let taken_in = bench.clock.now();
    assert_eq!(
        (bench.engine.status().loaded_at, bench.engine.revision()),
        (taken_in, revision_of(&denying("b")))
    );

    assert_eq!(bench.look(&mut reloader, BROKEN), Looked::Refused);
    let refused_at = bench.clock.now();
    // Looked at again, it is the same refusal and no news.
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(reloader.look(), Looked::Refused);
    let status = bench.engine.status();
    let refused = status.last_refused.unwrap();
    assert_eq!((refused.at, refused.revision), (refused_at, None));
    assert_eq!(refused.why.summary(), "1 error in 1 file");
    assert!(refused.why.to_string().contains("did you mean `deny`?"), "{}", refused.why);
    assert_eq!((status.revision, status.loaded_at), (revision_of(&denying("b")), taken_in));

    assert_eq!(bench.look(&mut reloader, &denying("b")), Looked::Same);
    let status = bench.engine.status();
    assert!(status.last_refused.is_none());
    assert_eq!(status.loaded_at, taken_in, "nothing was loaded");
    assert_eq!(bench.news(), ["taken in", "refused", "restored"]);
    assert_eq!(reloader.look(), Looked::Same);
    assert_eq!(bench.news(), [""; 0]);
}

#[test]
fn a_host_that_replaces_the_rules_itself_sees_it_in_the_status() {
    let bench = Bench::new(&denying("a"));
    let mut reloader = bench.reloader();
    bench.look(&mut reloader, BROKEN);
    bench.clock.advance(Duration::from_secs(1));
    bench.engine.replace(engine::load_text(&denying("b")).unwrap());
    let status = bench.engine.status();
    assert_eq!((status.loaded_at, status.revision), (bench.clock.now(), revision_of(&denying("b"))));
    assert!(status.last_refused.is_none());
    assert_eq!(bench.news(), ["refused", "taken in"]);
}

#[test]
fn old_rules_are_freed_by_who_reloads_and_not_by_the_last_call_under_them() {
    let chains = engine::load_text(&denying("a")).unwrap();
    let old = Arc::downgrade(&chains);
    let engine = Engine::new(chains);
    let (call, session) = (ToolCall::new("c1", "a", json!({})), SessionState::default());
    let decision = engine.decide(&call, &session);
    engine.replace(engine::load_text(&denying("b")).unwrap());
    drop(decision);
    assert!(old.upgrade().is_some(), "the call would have had to free them");
    engine.replace(engine::load_text(&denying("c")).unwrap());
    assert!(old.upgrade().is_none());
}

/// Rules that deny a tool and ask for what they are to be replaced by.
fn asking(reload: &str, tool: &str) -> String {
    format!("reload: {{ {reload} }}\n{}", denying(tool))
}

/// A policy test that expects a tool to be denied.
fn expecting(tool: &str) -> String {
    format!("cases: [ {{ name: {tool} is denied, call: {{ tool: {tool} }}, expect: denied }} ]")
}

#[test]
fn rules_whose_own_tests_fail_are_refused_where_tests_are_required() {
    let ignoring = denying("a");
    let requiring = asking("tests: require", "a");
    let demanded = ReloadSettings { require_tests: true, ..ReloadSettings::default() };
    for (active, next, host, refused) in [
        (&ignoring, &asking("", "b"), ReloadSettings::default(), false),
        (&requiring, &asking("", "b"), ReloadSettings::default(), true),
        (&ignoring, &asking("tests: require", "b"), ReloadSettings::default(), true),
        (&ignoring, &asking("", "b"), demanded, true),
    ] {
        let bench = Bench::new(active);
        bench.desk.write("rules.test.yaml", &expecting("a"));
        let mut reloader = bench.reloader().demanding(host);
        let looked = bench.look(&mut reloader, next);
        assert_eq!(looked, if refused { Looked::Refused } else { Looked::TakenIn }, "{active} {next}");
        if !refused {
            continue;
        }
        assert!(denies(&bench.engine, "a"));
        let last = bench.engine.status().last_refused.unwrap();
        assert_eq!(last.revision, Some(revision_of(next)));
        let Refusal::Tests(text) = &last.why else { panic!("{}", last.why) };
        for shown in [
            "rules.test.yaml:1:",
            "a is denied",
            "expected: denied",
            "came:     executed",
            "0 passed, 1 failed",
        ] {
            assert!(text.contains(shown), "{text}");
        }
        // Looked at again it is the same refusal, and no news.
        bench.clock.advance(Duration::from_secs(1));
        assert_eq!(reloader.look(), Looked::Refused);
        assert_eq!(bench.engine.status().last_refused.unwrap().at, last.at);
        // Only the tests are mended, the rules stay as they are.
        bench.desk.write("rules.test.yaml", &expecting("b"));
        assert_eq!(reloader.look(), Looked::TakenIn);
        assert!(denies(&bench.engine, "b") && bench.engine.status().last_refused.is_none());
        assert_eq!(bench.news(), ["refused", "taken in"]);
    }
}

#[test]
fn rules_whose_tests_are_required_and_missing_or_broken_are_refused() {
    let tools = "tools: tools.json\ncases: [ { name: b, call: { tool: b }, expect: denied } ]";
    for (tests, words) in [
        (None, "they have none"),
        (Some("cases: []"), "`cases` is an empty list"),
        (Some("cases: [ { name: a, cal: { tool: b }, expect: denied } ]"), "did you mean `call`?"),
        (Some("cases: [ { name: a, call: { tool: b }, expect: { policy: no-c } } ]"), "did you mean `no-b`?"),
        (Some(tools), "tools.json` does not exist"),
    ] {
        let bench = Bench::new(&asking("tests: require", "a"));
        if let Some(tests) = tests {
            bench.desk.write("deep/rules.test.yaml", tests);
        }
        let mut reloader = bench.reloader();
        assert_eq!(bench.look(&mut reloader, &denying("b")), Looked::Refused, "{tests:?}");
        let why = bench.engine.status().last_refused.unwrap().why;
        assert!(why.to_string().contains(words), "{why}");
        assert_eq!(matches!(why, Refusal::NoTests), words == "they have none", "{why:?}");
        // What the files say of what is active is never asked.
        assert_eq!(bench.look(&mut reloader, &asking("tests: require", "a")), Looked::Same);
        bench.desk.write("deep/rules.test.yaml", tools);
        bench.desk.write("deep/tools.json", "[]");
        assert_eq!(bench.look(&mut reloader, &denying("b")), Looked::TakenIn);
    }
}

#[test]
fn what_may_allow_more_waits_for_the_host_and_for_that_revision() {
    let bench = Bench::new(&asking("widening: confirm", "a"));
    let active = bench.engine.revision();
    let mut reloader = bench.reloader();
    let (b, c) = (asking("widening: confirm", "b"), asking("widening: confirm", "c"));
    assert_eq!(bench.engine.confirm(&revision_of(&b)), Err(ConfirmError::NothingHeld));

    assert_eq!(bench.look(&mut reloader, &b), Looked::Held);
    let held = bench.engine.status().held.unwrap();
    assert_eq!((held.revision, held.since), (revision_of(&b), bench.clock.now()));
    assert_eq!(bench.widenings(), ["`no-a` (deny) is gone: calls that it denied may run"]);
    assert_eq!(bench.engine.revision(), active);

    // Newer files: what was held is not what they say any more, so it can't be confirmed.
    assert_eq!(bench.look(&mut reloader, &c), Looked::Held);
    let other = ConfirmError::OtherHeld { held: revision_of(&c) };
    assert_eq!(bench.engine.confirm(&revision_of(&b)), Err(other));
    assert_eq!(bench.look(&mut reloader, BROKEN), Looked::Refused);
    assert_eq!(bench.engine.confirm(&revision_of(&c)), Err(ConfirmError::NothingHeld));
    assert_eq!(bench.look(&mut reloader, &c), Looked::Held);
    assert!(bench.engine.status().last_refused.is_none());

    assert_eq!(bench.engine.confirm(&revision_of(&c)), Ok(()));
    let status = bench.engine.status();
    assert_eq!((status.revision, status.loaded_at), (revision_of(&c), bench.clock.now()));
    assert!(status.held.is_none() && denies(&bench.engine, "c"));
    assert_eq!(reloader.look(), Looked::Same);
    assert_eq!(bench.news(), ["held", "held", "refused", "held", "taken in"]);
}

#[test]
fn what_was_held_is_withdrawn_when_the_files_or_the_host_say_otherwise() {
    let a = asking("widening: confirm", "a");
    let bench = Bench::new(&a);
    let mut reloader = bench.reloader();
    let b = asking("widening: confirm", "b");
    bench.look(&mut reloader, &b);
    assert_eq!(bench.look(&mut reloader, &a), Looked::Same);
    assert!(bench.engine.status().held.is_none());
    bench.look(&mut reloader, &b);
    bench.engine.replace(engine::load_text(&asking("widening: confirm", "c")).unwrap());
    assert_eq!(bench.engine.confirm(&revision_of(&b)), Err(ConfirmError::NothingHeld));
    // It is compared with what is active now.
    assert_eq!(reloader.look(), Looked::Held);
    assert_eq!(bench.widenings(), ["`no-c` (deny) is gone: calls that it denied may run"]);
    assert_eq!(bench.news(), ["held", "restored", "held", "taken in", "held"]);
}

#[test]
fn what_only_tightens_is_taken_in_at_once_and_no_edit_lifts_the_confirmation() {
    let bench = Bench::new(&asking("widening: confirm", "a"));
    let mut reloader = bench.reloader();
    let tighter = "reload: { widening: confirm }\npolicies: [ { id: no-a, match: a, deny: {} }, { id: b, match: b, deny: {} } ]\n";
    assert_eq!(bench.look(&mut reloader, tighter), Looked::TakenIn);
    let without = tighter.split_once('\n').unwrap().1;
    assert_eq!(bench.look(&mut reloader, without), Looked::Held);
    let what =
        "`reload.widening` was `confirm` and is `accept`: rules that allow more may become active at once";
    assert_eq!(bench.widenings(), [what]);
}

#[test]
fn a_host_can_demand_confirmation_that_the_rules_do_not_ask_for() {
    let bench = Bench::new(&denying("a"));
    let demanded = ReloadSettings { confirm_widening: true, ..ReloadSettings::default() };
    let mut reloader = bench.reloader().demanding(demanded);
    assert_eq!(bench.look(&mut reloader, &denying("b")), Looked::Held);
}

#[test]
fn listeners_hear_changes_in_order_also_those_that_they_bring_about() {
    let bench = Bench::new(&asking("widening: confirm", "a"));
    let engine = bench.engine.clone();
    bench.engine.on_change(|_| panic!("clumsy"));
    bench.engine.on_change(move |change| {
        if let Change::Held(held) = change {
            engine.confirm(&held.revision).unwrap();
        }
    });
    assert_eq!(bench.look(&mut bench.reloader(), &denying("b")), Looked::Held);
    assert_eq!(bench.news(), ["held", "taken in"]);
    assert!(denies(&bench.engine, "b"));
}

#[test]
fn settings_are_read_and_files_that_disagree_are_an_error() {
    let chains =
        engine::load_text("{ reload: { tests: require, widening: confirm }, policies: [] }").unwrap();
    assert_eq!(chains.reload(), ReloadSettings { require_tests: true, confirm_widening: true });
    let plain = engine::load_text("policies: []").unwrap();
    assert_eq!(plain.reload(), ReloadSettings::default());
    assert_ne!(plain.revision(), chains.revision());
    let desk = Desk::new(&[
        ("a.yaml", &asking("widening: confirm", "a")),
        ("b.yaml", &asking("widening: accept", "b")),
    ]);
    let error = engine::load(&desk.paths(&[""])).unwrap_err().to_string();
    assert!(error.contains("`reload.widening` is `accept` here and `confirm` elsewhere"), "{error}");
}
