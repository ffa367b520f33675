//! Reloads that succeed, are rejected, or are held for the host's confirmation. With a manual clock and without watching.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::engine::{self, ConfirmError, RejectionReason, ReloadEvent};
use callgate::host::{Clock, ManualClock};
use callgate::json::json;
use callgate::policy::ReloadSettings;
use callgate::reload::{self, NoTestRunner, ReloadResult, Reloader};
use callgate::{Engine, SessionState, ToolCall};
use callgate_policy_tests::PolicyTests;

use super::{TestDir, denies, denying, revision_of};

/// A directory with one rules file, an engine with a manual clock, and the engine's change notifications.
struct Fixture {
    dir: TestDir,
    clock: ManualClock,
    engine: Engine,
    news: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    fn new(rules: &str) -> Self {
        let dir = TestDir::new(&[("rules.yaml", rules)]);
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let chains = engine::load(&dir.paths(&[""])).unwrap();
        let engine = Engine::builder(chains).clock(clock.clone()).build();
        let news = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&news);
        engine.on_change(move |change| {
            let word = match change {
                ReloadEvent::Applied { .. } => "taken in",
                ReloadEvent::Rejected(_) => "refused",
                ReloadEvent::Pending(_) => "held",
                ReloadEvent::Reverted => "restored",
                _ => "else",
            };
            told.lock().unwrap().push(word.to_owned());
        });
        Self { dir, clock, engine, news }
    }

    fn reloader(&self) -> Reloader {
        Reloader::new(self.engine.clone(), self.dir.paths(&[""])).with_tests(PolicyTests)
    }

    /// Writes the rules and checks for changes a second later.
    fn look(&self, reloader: &mut Reloader, rules: &str) -> ReloadResult {
        self.clock.advance(Duration::from_secs(1));
        self.dir.write("rules.yaml", rules);
        reloader.reload()
    }

    fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.news.lock().unwrap())
    }

    fn widenings(&self) -> Vec<String> {
        let held = self.engine.status().pending.unwrap();
        held.relaxations.iter().map(ToString::to_string).collect()
    }
}

const BROKEN: &str = "policies: [ { id: a, dney: {} } ]";

#[test]
fn status_is_right_at_every_step() {
    let fixture = Fixture::new(&denying("a"));
    let mut reloader = fixture.reloader();
    let begun = fixture.clock.now();
    assert_eq!(fixture.engine.status().loaded_at, begun);

    assert_eq!(fixture.look(&mut reloader, &denying("b")), ReloadResult::Applied);
    let taken_in = fixture.clock.now();
    assert_eq!(
        (fixture.engine.status().loaded_at, fixture.engine.revision()),
        (taken_in, revision_of(&denying("b")))
    );

    assert_eq!(fixture.look(&mut reloader, BROKEN), ReloadResult::Rejected);
    let refused_at = fixture.clock.now();
    // Another check gives the same rejection and no notification.
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(reloader.reload(), ReloadResult::Rejected);
    let status = fixture.engine.status();
    let refused = status.last_rejected.unwrap();
    assert_eq!((refused.rejected_at, refused.revision), (refused_at, None));
    assert_eq!(refused.reason.summary(), "1 error in 1 file");
    assert!(refused.reason.to_string().contains("did you mean `deny`?"), "{}", refused.reason);
    assert_eq!((status.revision, status.loaded_at), (revision_of(&denying("b")), taken_in));

    assert_eq!(fixture.look(&mut reloader, &denying("b")), ReloadResult::Unchanged);
    let status = fixture.engine.status();
    assert!(status.last_rejected.is_none());
    assert_eq!(status.loaded_at, taken_in, "nothing was reloaded");
    assert_eq!(fixture.news(), ["taken in", "refused", "restored"]);
    assert_eq!(reloader.reload(), ReloadResult::Unchanged);
    assert_eq!(fixture.news(), [""; 0]);
}

#[test]
fn status_shows_rules_replaced_by_the_host() {
    let fixture = Fixture::new(&denying("a"));
    let mut reloader = fixture.reloader();
    fixture.look(&mut reloader, BROKEN);
    fixture.clock.advance(Duration::from_secs(1));
    fixture.engine.replace(engine::load_text(&denying("b")).unwrap());
    let status = fixture.engine.status();
    assert_eq!((status.loaded_at, status.revision), (fixture.clock.now(), revision_of(&denying("b"))));
    assert!(status.last_rejected.is_none());
    assert_eq!(fixture.news(), ["refused", "taken in"]);
}

#[test]
fn old_rules_are_freed_by_the_reload_not_by_a_call() {
    let chains = engine::load_text(&denying("a")).unwrap();
    let old = Arc::downgrade(&chains);
    let engine = Engine::new(chains);
    let (call, session) = (ToolCall::new("c1", "a", json!({})), SessionState::default());
    let decision = engine.decide(&call, &session);
    engine.replace(engine::load_text(&denying("b")).unwrap());
    drop(decision);
    assert!(old.upgrade().is_some(), "the last call freed the old rules");
    engine.replace(engine::load_text(&denying("c")).unwrap());
    assert!(old.upgrade().is_none());
}

/// Rules that deny a tool, with `reload` settings.
fn asking(reload: &str, tool: &str) -> String {
    format!("reload: {{ {reload} }}\n{}", denying(tool))
}

/// A policy test that expects a tool to be denied.
fn expecting(tool: &str) -> String {
    format!("cases: [ {{ name: {tool} is denied, call: {{ tool: {tool} }}, expect: denied }} ]")
}

#[test]
fn failing_required_tests_reject_the_reload() {
    let ignoring = denying("a");
    let requiring = asking("tests: require", "a");
    let demanded = ReloadSettings { require_tests: true, ..ReloadSettings::default() };
    for (active, next, host, refused) in [
        (&ignoring, &asking("", "b"), ReloadSettings::default(), false),
        (&requiring, &asking("", "b"), ReloadSettings::default(), true),
        (&ignoring, &asking("tests: require", "b"), ReloadSettings::default(), true),
        (&ignoring, &asking("", "b"), demanded, true),
    ] {
        let fixture = Fixture::new(active);
        fixture.dir.write("rules.test.yaml", &expecting("a"));
        let mut reloader = fixture.reloader().with_required_checks(host);
        let looked = fixture.look(&mut reloader, next);
        assert_eq!(
            looked,
            if refused { ReloadResult::Rejected } else { ReloadResult::Applied },
            "{active} {next}"
        );
        if !refused {
            continue;
        }
        assert!(denies(&fixture.engine, "a"));
        let last = fixture.engine.status().last_rejected.unwrap();
        assert_eq!(last.revision, Some(revision_of(next)));
        let RejectionReason::TestFailures(text) = &last.reason else { panic!("{}", last.reason) };
        for shown in [
            "rules.test.yaml:1:",
            "a is denied",
            "expected: denied",
            "actual:   executed",
            "0 passed, 1 failed",
        ] {
            assert!(text.contains(shown), "{text}");
        }
        // Another check gives the same rejection and no notification.
        fixture.clock.advance(Duration::from_secs(1));
        assert_eq!(reloader.reload(), ReloadResult::Rejected);
        assert_eq!(fixture.engine.status().last_rejected.unwrap().rejected_at, last.rejected_at);
        // Only the tests are fixed, the rules are unchanged.
        fixture.dir.write("rules.test.yaml", &expecting("b"));
        assert_eq!(reloader.reload(), ReloadResult::Applied);
        assert!(denies(&fixture.engine, "b") && fixture.engine.status().last_rejected.is_none());
        assert_eq!(fixture.news(), ["refused", "taken in"]);
    }
}

#[test]
fn missing_or_invalid_required_tests_reject_the_reload() {
    let tools = "tools: tools.json\ncases: [ { name: b, call: { tool: b }, expect: denied } ]";
    for (tests, words) in [
        (None, "but have none"),
        (Some("cases: []"), "`cases` is an empty list"),
        (Some("cases: [ { name: a, cal: { tool: b }, expect: denied } ]"), "did you mean `call`?"),
        (Some("cases: [ { name: a, call: { tool: b }, expect: { policy: no-c } } ]"), "did you mean `no-b`?"),
        (Some(tools), "tools.json` does not exist"),
    ] {
        let fixture = Fixture::new(&asking("tests: require", "a"));
        if let Some(tests) = tests {
            fixture.dir.write("deep/rules.test.yaml", tests);
        }
        let mut reloader = fixture.reloader();
        assert_eq!(fixture.look(&mut reloader, &denying("b")), ReloadResult::Rejected, "{tests:?}");
        let why = fixture.engine.status().last_rejected.unwrap().reason;
        assert!(why.to_string().contains(words), "{why}");
        assert_eq!(matches!(why, RejectionReason::MissingTests), words == "but have none", "{why:?}");
        // Tests are not required for the active rules.
        assert_eq!(fixture.look(&mut reloader, &asking("tests: require", "a")), ReloadResult::Unchanged);
        fixture.dir.write("deep/rules.test.yaml", tools);
        fixture.dir.write("deep/tools.json", "[]");
        assert_eq!(fixture.look(&mut reloader, &denying("b")), ReloadResult::Applied);
    }
}

/// Whoever requires the tests: the active rules, the new ones or the host.
#[test]
fn required_tests_without_a_test_runner_reject_the_rules() {
    let (ignoring, requiring) = (denying("a"), asking("tests: require", "a"));
    let demanded = ReloadSettings { require_tests: true, ..ReloadSettings::default() };
    for (active, next, host) in [
        (&requiring, &denying("b"), ReloadSettings::default()),
        (&ignoring, &asking("tests: require", "b"), ReloadSettings::default()),
        (&ignoring, &denying("b"), demanded),
    ] {
        let fixture = Fixture::new(active);
        fixture.dir.write("rules.test.yaml", &expecting("b"));
        let mut reloader =
            Reloader::new(fixture.engine.clone(), fixture.dir.paths(&[""])).with_required_checks(host);
        assert_eq!(fixture.look(&mut reloader, next), ReloadResult::Rejected, "{active} {next}");
        assert!(denies(&fixture.engine, "a"));
        let why = fixture.engine.status().last_rejected.unwrap().reason;
        assert!(matches!(why, RejectionReason::MissingTestRunner), "{why:?}");
        for text in [why.summary(), why.to_string()] {
            assert!(text.contains("`callgate_policy_tests::PolicyTests`"), "{text}");
        }
        // The same files take effect with a test runner.
        assert_eq!(reloader.with_tests(PolicyTests).reload(), ReloadResult::Applied);
    }
}

#[test]
fn first_load_runs_required_tests_too() {
    let dir = TestDir::new(&[("rules.yaml", &asking("tests: require", "a"))]);
    let paths = dir.paths(&[""]);
    let first_load = |tests: &str| {
        dir.write("rules.test.yaml", tests);
        reload::load(&paths, &PolicyTests)
    };
    let failing = first_load(&expecting("b")).unwrap_err();
    assert!(matches!(failing, RejectionReason::TestFailures(_)), "{failing:?}");
    assert!(first_load(&expecting("a")).is_ok());
    let without = reload::load(&paths, &NoTestRunner).unwrap_err();
    assert!(matches!(without, RejectionReason::MissingTestRunner), "{without:?}");
    dir.write("rules.yaml", &denying("a"));
    assert!(reload::load(&paths, &NoTestRunner).is_ok());
}

#[test]
fn widening_reload_is_held_until_the_host_confirms_that_revision() {
    let fixture = Fixture::new(&asking("widening: confirm", "a"));
    let active = fixture.engine.revision();
    let mut reloader = fixture.reloader();
    let (b, c) = (asking("widening: confirm", "b"), asking("widening: confirm", "c"));
    assert_eq!(fixture.engine.confirm(&revision_of(&b)), Err(ConfirmError::NothingPending));

    assert_eq!(fixture.look(&mut reloader, &b), ReloadResult::Pending);
    let held = fixture.engine.status().pending.unwrap();
    assert_eq!((held.revision, held.pending_since), (revision_of(&b), fixture.clock.now()));
    assert_eq!(fixture.widenings(), ["`no-a` (deny) was removed: calls that it denied may run"]);
    assert_eq!(fixture.engine.revision(), active);

    // Newer files: the revision held before can no longer be confirmed.
    assert_eq!(fixture.look(&mut reloader, &c), ReloadResult::Pending);
    let other = ConfirmError::OtherRevision { held: revision_of(&c) };
    assert_eq!(fixture.engine.confirm(&revision_of(&b)), Err(other));
    assert_eq!(fixture.look(&mut reloader, BROKEN), ReloadResult::Rejected);
    assert_eq!(fixture.engine.confirm(&revision_of(&c)), Err(ConfirmError::NothingPending));
    assert_eq!(fixture.look(&mut reloader, &c), ReloadResult::Pending);
    assert!(fixture.engine.status().last_rejected.is_none());

    assert_eq!(fixture.engine.confirm(&revision_of(&c)), Ok(()));
    let status = fixture.engine.status();
    assert_eq!((status.revision, status.loaded_at), (revision_of(&c), fixture.clock.now()));
    assert!(status.pending.is_none() && denies(&fixture.engine, "c"));
    assert_eq!(reloader.reload(), ReloadResult::Unchanged);
    assert_eq!(fixture.news(), ["held", "held", "refused", "held", "taken in"]);
}

#[test]
fn held_reload_is_withdrawn_when_files_or_host_change_the_rules() {
    let a = asking("widening: confirm", "a");
    let fixture = Fixture::new(&a);
    let mut reloader = fixture.reloader();
    let b = asking("widening: confirm", "b");
    fixture.look(&mut reloader, &b);
    assert_eq!(fixture.look(&mut reloader, &a), ReloadResult::Unchanged);
    assert!(fixture.engine.status().pending.is_none());
    fixture.look(&mut reloader, &b);
    fixture.engine.replace(engine::load_text(&asking("widening: confirm", "c")).unwrap());
    assert_eq!(fixture.engine.confirm(&revision_of(&b)), Err(ConfirmError::NothingPending));
    // The rules are compared with the active ones.
    assert_eq!(reloader.reload(), ReloadResult::Pending);
    assert_eq!(fixture.widenings(), ["`no-c` (deny) was removed: calls that it denied may run"]);
    assert_eq!(fixture.news(), ["held", "restored", "held", "taken in", "held"]);
}

#[test]
fn tightening_reloads_at_once_and_removing_confirmation_is_held() {
    let fixture = Fixture::new(&asking("widening: confirm", "a"));
    let mut reloader = fixture.reloader();
    let tighter = "reload: { widening: confirm }\npolicies: [ { id: no-a, match: a, deny: {} }, { id: b, match: b, deny: {} } ]\n";
    assert_eq!(fixture.look(&mut reloader, tighter), ReloadResult::Applied);
    let without = tighter.split_once('\n').unwrap().1;
    assert_eq!(fixture.look(&mut reloader, without), ReloadResult::Pending);
    let what =
        "`reload.widening` was `confirm` and is `accept`: rules that allow more may become active at once";
    assert_eq!(fixture.widenings(), [what]);
}

#[test]
fn host_can_require_confirmation() {
    let fixture = Fixture::new(&denying("a"));
    let demanded = ReloadSettings { confirm_widening: true, ..ReloadSettings::default() };
    let mut reloader = fixture.reloader().with_required_checks(demanded);
    assert_eq!(fixture.look(&mut reloader, &denying("b")), ReloadResult::Pending);
}

#[test]
fn listeners_get_changes_in_order_including_their_own() {
    let fixture = Fixture::new(&asking("widening: confirm", "a"));
    let engine = fixture.engine.clone();
    fixture.engine.on_change(|_| panic!("clumsy"));
    fixture.engine.on_change(move |change| {
        if let ReloadEvent::Pending(held) = change {
            engine.confirm(&held.revision).unwrap();
        }
    });
    assert_eq!(fixture.look(&mut fixture.reloader(), &denying("b")), ReloadResult::Pending);
    assert_eq!(fixture.news(), ["held", "taken in"]);
    assert!(denies(&fixture.engine, "b"));
}

#[test]
fn reads_reload_settings_and_rejects_conflicting_files() {
    let chains =
        engine::load_text("{ reload: { tests: require, widening: confirm }, policies: [] }").unwrap();
    assert_eq!(chains.reload_settings(), ReloadSettings { require_tests: true, confirm_widening: true });
    let plain = engine::load_text("policies: []").unwrap();
    assert_eq!(plain.reload_settings(), ReloadSettings::default());
    assert_ne!(plain.revision(), chains.revision());
    let dir = TestDir::new(&[
        ("a.yaml", &asking("widening: confirm", "a")),
        ("b.yaml", &asking("widening: accept", "b")),
    ]);
    let error = engine::load(&dir.paths(&[""])).unwrap_err().to_string();
    assert!(error.contains("`reload.widening` is `accept` here and `confirm` elsewhere"), "{error}");
}
