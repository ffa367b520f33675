//! Ways to change files: the final content is reloaded, or rejected as a whole.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use callgate::engine::{RejectedReload, RejectionReason, ReloadEvent};
use callgate::reload::{Reloader, RulesWatcher, WatcherOptions};
use callgate_policy_tests::PolicyTests;

use super::{TIMEOUT, TestDir, WatchedEngine, denies, denying, watch, with_notify_and_polling};

#[test]
fn reloads_repeated_edits_in_place_and_by_rename() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("rules.yaml", &denying("a"))]);
        // The directory, and the file itself, whose inode changes with the first rename.
        for path in ["", "rules.yaml"] {
            let watched = watch(&dir, &[path], options);
            for tool in ["b", "c"] {
                dir.write("rules.yaml", &denying(tool));
                watched.wait_for_reload(&denying(tool));
                let renamed = format!("{tool}-renamed");
                dir.write_atomically("rules.yaml", &denying(&renamed));
                watched.wait_for_reload(&denying(&renamed));
                assert!(denies(&watched.engine, &renamed) && !denies(&watched.engine, tool));
            }
        }
    });
}

#[test]
fn reloads_changes_from_before_the_watch() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("rules.yaml", &denying("a"))]);
        let engine = dir.engine(&[""]);
        dir.write("rules.yaml", &denying("b"));
        let watched = WatchedEngine::new(engine.clone(), Reloader::new(engine, dir.paths(&[""])), options);
        watched.wait_for_reload(&denying("b"));
    });
}

/// A Kubernetes ConfigMap volume: files are symlinks through `..data`, which is replaced by a rename.
#[cfg(unix)]
#[test]
fn reloads_a_swapped_kubernetes_config_map() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("mount/..one/rules.yaml", &denying("one"))]);
        dir.link("mount/..data", "..one");
        dir.link("mount/rules.yaml", "..data/rules.yaml");
        let watched = watch(&dir, &["mount"], options);
        for (next, last) in [("two", "one"), ("three", "two")] {
            dir.write(&format!("mount/..{next}/rules.yaml"), &denying(next));
            dir.link("mount/..data", &format!("..{next}"));
            dir.remove(&format!("mount/..{last}"));
            watched.wait_for_reload(&denying(next));
        }
    });
}

#[cfg(unix)]
#[test]
fn reloads_when_a_parent_symlink_changes() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[
            ("releases/1/rules/a.yaml", &denying("one")),
            ("releases/2/rules/a.yaml", &denying("two")),
        ]);
        dir.link("current", "releases/1");
        let watched = watch(&dir, &["current/rules"], options);
        dir.link("current", "releases/2");
        watched.wait_for_reload(&denying("two"));
    });
}

#[test]
fn reloads_added_and_removed_files() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("rules/a.yaml", &denying("a"))]);
        let watched = watch(&dir, &["rules"], options);
        dir.write_atomically("rules/deep/er/b.yaml", &denying("b"));
        watched.wait_for("the new file", |_| denies(&watched.engine, "b"));
        assert!(denies(&watched.engine, "a"));
        dir.remove("rules/a.yaml");
        watched.wait_for_reload(&denying("b"));
        // In a directory that was created after the watch started.
        dir.write("rules/deep/er/b.yaml", &denying("c"));
        watched.wait_for_reload(&denying("c"));
    });
}

#[test]
fn half_written_file_is_rejected_and_the_active_rules_stay() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("rules.yaml", &denying("a"))]);
        let watched = watch(&dir, &[""], options);
        let whole = denying("b");
        dir.write("rules.yaml", whole.split_at(whole.len() / 2).0);
        assert_eq!(watched.wait_for_rejection("rules.yaml:1:").revision, None);
        assert!(denies(&watched.engine, "a"));
        dir.write("rules.yaml", "");
        watched.wait_for_rejection("CG104");
        dir.write("rules.yaml", &whole);
        watched.wait_for_reload(&whole);
        // The last good rules can be restored, too.
        dir.write("rules.yaml", "policies: [ { id: a, dney: {} } ]");
        watched.wait_for_rejection("did you mean `deny`?");
        dir.write("rules.yaml", &whole);
        watched.wait_for_restored();
    });
}

#[test]
fn reloads_once_files_stop_changing() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("a.yaml", &denying("a0")), ("b.yaml", &denying("b0"))]);
        let watched = watch(&dir, &[""], options);
        for number in 1..=100 {
            dir.write("a.yaml", &denying(&format!("a{number}")));
            dir.write("b.yaml", &denying(&format!("b{number}")));
        }
        watched.wait_for("the last rules", |_| denies(&watched.engine, "b100"));
        assert!(denies(&watched.engine, "a100"));
    });
}

#[test]
fn reloads_a_directory_that_was_removed_and_recreated() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("above/rules/a.yaml", &denying("a"))]);
        let watched = watch(&dir, &["above/rules"], options);
        dir.rename("above/rules", "elsewhere");
        watched.wait_for_rejection("does not exist");
        assert!(denies(&watched.engine, "a"));
        dir.rename("elsewhere", "above/rules");
        watched.wait_for_restored();
        // Also if its parent is removed and created again.
        dir.remove("above");
        watched.wait_for_rejection("does not exist");
        dir.write("above/rules/a.yaml", &denying("b"));
        watched.wait_for_reload(&denying("b"));
        dir.write("above/rules/a.yaml", &denying("c"));
        watched.wait_for_reload(&denying("c"));
        // Also if it is recreated before the watch notices that it was gone.
        dir.remove("above");
        dir.write("above/rules/a.yaml", &denying("d"));
        watched.wait_for_reload(&denying("d"));
        dir.write("above/rules/a.yaml", &denying("e"));
        watched.wait_for_reload(&denying("e"));
    });
}

#[test]
fn watches_referenced_files_also_while_missing() {
    with_notify_and_polling(|options| {
        let rules =
            "policies: [ { id: fits, match: pay, validate: { schema: { file: ../schemas/pay.json } } } ]";
        let schema = |maximum: u32| format!("{{ \"maxProperties\": {maximum} }}");
        let dir = TestDir::new(&[("bundle/rules/a.yaml", rules), ("bundle/schemas/pay.json", &schema(1))]);
        let watched = watch(&dir, &["bundle"], options);
        let first = watched.engine.revision();
        dir.write("bundle/schemas/pay.json", &schema(2));
        watched.wait_for_reload_of(&dir, &["bundle"]);
        assert_ne!(watched.engine.revision(), first);
        dir.remove("bundle/schemas");
        watched.wait_for_rejection("pay.json");
        dir.write_atomically("bundle/schemas/pay.json", &schema(1));
        watched.wait_for("the first schema", |_| watched.engine.revision() == first);
    });
}

#[test]
fn fixed_policy_tests_let_the_reload_succeed() {
    with_notify_and_polling(|options| {
        let requiring = |tool: &str| format!("reload: {{ tests: require }}\n{}", denying(tool));
        let tests =
            |came: &str| format!("cases: [ {{ name: my case, call: {{ tool: b }}, expect: {came} }} ]");
        let dir = TestDir::new(&[
            ("bundle/rules/a.yaml", &requiring("a")),
            ("bundle/rules/a.test.yaml", &tests("executed")),
        ]);
        let engine = dir.engine(&["bundle"]);
        let watched = WatchedEngine::new(
            engine.clone(),
            Reloader::new(engine, dir.paths(&["bundle"])).with_tests(PolicyTests),
            options,
        );
        let refused = |words: &str| {
            watched.wait_for(words, |change| match change {
                ReloadEvent::Rejected(RejectedReload {
                    reason: RejectionReason::TestFailures(text), ..
                }) => text.contains(words),
                _ => false,
            });
            assert!(denies(&watched.engine, "a"));
        };
        dir.write_atomically("bundle/rules/a.yaml", &requiring("b"));
        refused("my case");
        // Files that tests refer to are watched, too.
        dir.write_atomically(
            "bundle/rules/a.test.yaml",
            &format!("tools: ../more/tools.json\n{}", tests("denied")),
        );
        refused("tools.json` does not exist");
        dir.write_atomically("bundle/more/tools.json", "[]");
        watched.wait_for_reload(&requiring("b"));
    });
}

#[test]
fn unchanged_rules_are_not_reloaded() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("rules.yaml", &denying("a"))]);
        let watched = watch(&dir, &[""], options);
        let loaded_at = watched.engine.status().loaded_at;
        dir.write_atomically("rules.yaml", &denying("a"));
        dir.write_atomically("rules.yaml", &format!("# A comment\n{}", denying("a")));
        dir.write("notes.txt", "no rules");
        dir.write_atomically("broken.yaml", "policies: [ { id: a, dney: {} } ]");
        let first = watched.news.recv_timeout(TIMEOUT).unwrap();
        assert!(matches!(first, ReloadEvent::Rejected(_)), "{first:?}");
        assert_eq!(watched.engine.status().loaded_at, loaded_at);
    });
}

#[test]
fn watch_dropped_by_its_listener_ends() {
    with_notify_and_polling(|options| {
        let dir = TestDir::new(&[("rules.yaml", &denying("a"))]);
        let engine = dir.engine(&[""]);
        let slot = std::sync::Arc::new(std::sync::Mutex::new(None::<RulesWatcher>));
        let (tell, told) = channel();
        let held = slot.clone();
        engine.on_change(move |change| {
            if matches!(change, ReloadEvent::Applied { .. }) {
                drop(held.lock().unwrap().take());
                tell.send(()).unwrap();
            }
        });
        let mut watch = slot.lock().unwrap();
        *watch = Some(RulesWatcher::start(Reloader::new(engine.clone(), dir.paths(&[""])), options).unwrap());
        drop(watch);
        dir.write("rules.yaml", &denying("b"));
        told.recv_timeout(TIMEOUT).unwrap();
        assert!(denies(&engine, "b"));
    });
}

/// As when a client ends its gateway right after the start.
#[test]
fn watch_dropped_during_the_debounce_ends() {
    let dir = TestDir::new(&[("rules.yaml", &denying("a"))]);
    let reloader = Reloader::new(dir.engine(&[""]), dir.paths(&[""]));
    let hour = Duration::from_secs(3600);
    let watch =
        RulesWatcher::start(reloader, WatcherOptions { debounce: hour, poll: hour, notify: false }).unwrap();
    // Let the watch start to wait.
    thread::sleep(Duration::from_millis(200));
    let (tell, ended) = channel();
    thread::spawn(move || {
        drop(watch);
        let _ = tell.send(());
    });
    assert!(ended.recv_timeout(TIMEOUT).is_ok());
}

/// As a log, or a state file, beside the rules.
#[cfg(target_os = "linux")]
#[test]
fn other_files_of_the_directory_do_not_keep_the_watch_busy() {
    use rustix::fs::inotify;

    let dir = TestDir::new(&[("rules.yaml", &denying("a"))]);
    let watched = watch(&dir, &["rules.yaml"], WatcherOptions::default());
    let opened = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    // Equal events in a row count as one, so those of opening and closing alternate.
    let flags = inotify::WatchFlags::OPEN | inotify::WatchFlags::CLOSE_NOWRITE;
    inotify::add_watch(&opened, dir.path("rules.yaml"), flags).unwrap();
    const WRITES: usize = 400;
    for line in 0..WRITES {
        dir.write("audit.jsonl", &line.to_string());
        thread::sleep(Duration::from_millis(2));
    }
    let mut buffer = [std::mem::MaybeUninit::uninit(); 64 << 10];
    let mut events = inotify::Reader::new(&opened, &mut buffer);
    let reads = std::iter::from_fn(|| events.next().ok().map(|_| ())).count() / 2;
    assert!(reads < WRITES / 4, "{WRITES} writes of another file, and {reads} reads of the rules");
    // A change of the rules is still noticed.
    dir.write("rules.yaml", &denying("b"));
    watched.wait_for_reload(&denying("b"));
}
