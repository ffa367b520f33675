//! However files change, what they say in the end is taken in, or refused as a whole.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use callgate::engine::{Change, Refusal, Refused};
use callgate::reload::{Reloader, Watch, WatchOptions};

use super::{Desk, PATIENCE, Watched, both_ways, denies, denying, watched};

#[test]
fn edits_in_place_and_by_rename_are_taken_in_again_and_again() {
    both_ways(|options| {
        let desk = Desk::new(&[("rules.yaml", &denying("a"))]);
        // The directory, and the file itself, whose watch would be lost with the first rename.
        for path in ["", "rules.yaml"] {
            let watched = watched(&desk, &[path], options);
            for tool in ["b", "c"] {
                desk.write("rules.yaml", &denying(tool));
                watched.taken_in(&denying(tool));
                let renamed = format!("{tool}-renamed");
                desk.write_atomically("rules.yaml", &denying(&renamed));
                watched.taken_in(&denying(&renamed));
                assert!(denies(&watched.engine, &renamed) && !denies(&watched.engine, tool));
            }
        }
    });
}

#[test]
fn what_changed_before_the_watch_began_is_taken_in() {
    both_ways(|options| {
        let desk = Desk::new(&[("rules.yaml", &denying("a"))]);
        let engine = desk.engine(&[""]);
        desk.write("rules.yaml", &denying("b"));
        let watched = Watched::new(engine.clone(), Reloader::new(engine, desk.paths(&[""])), options);
        watched.taken_in(&denying("b"));
    });
}

/// A mounted config map: files are links by way of `..data`, which is renamed over.
#[cfg(unix)]
#[test]
fn the_swap_of_a_mounted_config_map_is_taken_in() {
    both_ways(|options| {
        let desk = Desk::new(&[("mount/..one/rules.yaml", &denying("one"))]);
        desk.link("mount/..data", "..one");
        desk.link("mount/rules.yaml", "..data/rules.yaml");
        let watched = watched(&desk, &["mount"], options);
        for (next, last) in [("two", "one"), ("three", "two")] {
            desk.write(&format!("mount/..{next}/rules.yaml"), &denying(next));
            desk.link("mount/..data", &format!("..{next}"));
            desk.remove(&format!("mount/..{last}"));
            watched.taken_in(&denying(next));
        }
    });
}

#[cfg(unix)]
#[test]
fn a_link_above_the_rules_that_leads_elsewhere_is_taken_in() {
    both_ways(|options| {
        let desk = Desk::new(&[
            ("releases/1/rules/a.yaml", &denying("one")),
            ("releases/2/rules/a.yaml", &denying("two")),
        ]);
        desk.link("current", "releases/1");
        let watched = watched(&desk, &["current/rules"], options);
        desk.link("current", "releases/2");
        watched.taken_in(&denying("two"));
    });
}

#[test]
fn files_come_and_go() {
    both_ways(|options| {
        let desk = Desk::new(&[("rules/a.yaml", &denying("a"))]);
        let watched = watched(&desk, &["rules"], options);
        desk.write_atomically("rules/deep/er/b.yaml", &denying("b"));
        watched.wait_for("the new file", |_| denies(&watched.engine, "b"));
        assert!(denies(&watched.engine, "a"));
        desk.remove("rules/a.yaml");
        watched.taken_in(&denying("b"));
        // In a directory that was not there when the watch began.
        desk.write("rules/deep/er/b.yaml", &denying("c"));
        watched.taken_in(&denying("c"));
    });
}

#[test]
fn a_half_written_file_is_refused_with_its_place_and_the_last_good_rules_stay() {
    both_ways(|options| {
        let desk = Desk::new(&[("rules.yaml", &denying("a"))]);
        let watched = watched(&desk, &[""], options);
        let whole = denying("b");
        desk.write("rules.yaml", whole.split_at(whole.len() / 2).0);
        assert_eq!(watched.refused("rules.yaml:1:").revision, None);
        assert!(denies(&watched.engine, "a"));
        desk.write("rules.yaml", "");
        watched.refused("CG104");
        desk.write("rules.yaml", &whole);
        watched.taken_in(&whole);
        // What was good before can be put back, too.
        desk.write("rules.yaml", "policies: [ { id: a, dney: {} } ]");
        watched.refused("did you mean `deny`?");
        desk.write("rules.yaml", &whole);
        watched.restored();
    });
}

#[test]
fn files_that_keep_changing_are_taken_in_once_they_keep_still() {
    both_ways(|options| {
        let desk = Desk::new(&[("a.yaml", &denying("a0")), ("b.yaml", &denying("b0"))]);
        let watched = watched(&desk, &[""], options);
        for number in 1..=100 {
            desk.write("a.yaml", &denying(&format!("a{number}")));
            desk.write("b.yaml", &denying(&format!("b{number}")));
        }
        watched.wait_for("the last rules", |_| denies(&watched.engine, "b100"));
        assert!(denies(&watched.engine, "a100"));
    });
}

#[test]
fn a_directory_that_disappears_and_comes_back_is_taken_in() {
    both_ways(|options| {
        let desk = Desk::new(&[("above/rules/a.yaml", &denying("a"))]);
        let watched = watched(&desk, &["above/rules"], options);
        desk.rename("above/rules", "elsewhere");
        watched.refused("does not exist");
        assert!(denies(&watched.engine, "a"));
        desk.rename("elsewhere", "above/rules");
        watched.restored();
        // Also where what it lies in goes, and what comes back is another directory.
        desk.remove("above");
        watched.refused("does not exist");
        desk.write("above/rules/a.yaml", &denying("b"));
        watched.taken_in(&denying("b"));
        desk.write("above/rules/a.yaml", &denying("c"));
        watched.taken_in(&denying("c"));
        // Also where it is another directory before anyone saw that it was gone.
        desk.remove("above");
        desk.write("above/rules/a.yaml", &denying("d"));
        watched.taken_in(&denying("d"));
        desk.write("above/rules/a.yaml", &denying("e"));
        watched.taken_in(&denying("e"));
    });
}

#[test]
fn a_file_that_policies_draw_on_is_watched_also_while_it_is_missing() {
    both_ways(|options| {
        let rules =
            "policies: [ { id: fits, match: pay, validate: { schema: { file: ../schemas/pay.json } } } ]";
        let schema = |maximum: u32| format!("{{ \"maxProperties\": {maximum} }}");
        let desk = Desk::new(&[("bundle/rules/a.yaml", rules), ("bundle/schemas/pay.json", &schema(1))]);
        let watched = watched(&desk, &["bundle"], options);
        let first = watched.engine.revision();
        desk.write("bundle/schemas/pay.json", &schema(2));
        watched.taken_in_files(&desk, &["bundle"]);
        assert_ne!(watched.engine.revision(), first);
        desk.remove("bundle/schemas");
        watched.refused("pay.json");
        desk.write_atomically("bundle/schemas/pay.json", &schema(1));
        watched.wait_for("the first schema", |_| watched.engine.revision() == first);
    });
}

#[test]
fn policy_tests_that_are_mended_let_the_rules_in() {
    both_ways(|options| {
        let requiring = |tool: &str| format!("reload: {{ tests: require }}\n{}", denying(tool));
        let tests =
            |came: &str| format!("cases: [ {{ name: my case, call: {{ tool: b }}, expect: {came} }} ]");
        let desk = Desk::new(&[
            ("bundle/rules/a.yaml", &requiring("a")),
            ("bundle/rules/a.test.yaml", &tests("executed")),
        ]);
        let engine = desk.engine(&["bundle"]);
        let watched = Watched::new(engine.clone(), Reloader::new(engine, desk.paths(&["bundle"])), options);
        let refused = |words: &str| {
            watched.wait_for(words, |change| match change {
                Change::Refused(Refused { why: Refusal::Tests(text), .. }) => text.contains(words),
                _ => false,
            });
            assert!(denies(&watched.engine, "a"));
        };
        desk.write_atomically("bundle/rules/a.yaml", &requiring("b"));
        refused("my case");
        // What tests draw on is watched, too.
        desk.write_atomically(
            "bundle/rules/a.test.yaml",
            &format!("tools: ../more/tools.json\n{}", tests("denied")),
        );
        refused("tools.json` does not exist");
        desk.write_atomically("bundle/more/tools.json", "[]");
        watched.taken_in(&requiring("b"));
    });
}

#[test]
fn what_says_the_same_changes_nothing() {
    both_ways(|options| {
        let desk = Desk::new(&[("rules.yaml", &denying("a"))]);
        let watched = watched(&desk, &[""], options);
        let loaded_at = watched.engine.status().loaded_at;
        desk.write_atomically("rules.yaml", &denying("a"));
        desk.write_atomically("rules.yaml", &format!("# A comment\n{}", denying("a")));
        desk.write("notes.txt", "no rules");
        desk.write_atomically("broken.yaml", "policies: [ { id: a, dney: {} } ]");
        let first = watched.news.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(first, Change::Refused(_)), "{first:?}");
        assert_eq!(watched.engine.status().loaded_at, loaded_at);
    });
}

#[test]
fn a_watch_that_is_dropped_from_within_ends() {
    both_ways(|options| {
        let desk = Desk::new(&[("rules.yaml", &denying("a"))]);
        let engine = desk.engine(&[""]);
        let slot = std::sync::Arc::new(std::sync::Mutex::new(None::<Watch>));
        let (tell, told) = channel();
        let held = slot.clone();
        engine.on_change(move |change| {
            if matches!(change, Change::TakenIn { .. }) {
                drop(held.lock().unwrap().take());
                tell.send(()).unwrap();
            }
        });
        let mut watch = slot.lock().unwrap();
        *watch = Some(Watch::start(Reloader::new(engine.clone(), desk.paths(&[""])), options).unwrap());
        drop(watch);
        desk.write("rules.yaml", &denying("b"));
        told.recv_timeout(PATIENCE).unwrap();
        assert!(denies(&engine, "b"));
    });
}

/// As where a client ends its gateway as soon as it has begun.
#[test]
fn a_watch_that_is_dropped_while_files_are_to_keep_still_ends() {
    let desk = Desk::new(&[("rules.yaml", &denying("a"))]);
    let reloader = Reloader::new(desk.engine(&[""]), desk.paths(&[""]));
    let hour = Duration::from_secs(3600);
    let watch = Watch::start(reloader, WatchOptions { debounce: hour, poll: hour, notify: false }).unwrap();
    // So that it has begun to wait.
    thread::sleep(Duration::from_millis(200));
    let (tell, ended) = channel();
    thread::spawn(move || {
        drop(watch);
        let _ = tell.send(());
    });
    assert!(ended.recv_timeout(PATIENCE).is_ok());
}
