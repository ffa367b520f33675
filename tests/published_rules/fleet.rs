//! Several instances that share a state store: one publication reaches all, and what one rejects is visible at all.

use std::collections::BTreeMap;

use callgate::json::Value;
use callgate_bundle::{Bundle, sign};

use super::instance::Instance;
use super::publisher::{Answer, Publisher};
use super::{ALLOW_PAY, DENY_PAY, Workplace, wait_for};

fn three_instances(place: &Workplace, publisher: &Publisher) -> Vec<Instance> {
    ["a", "b", "c"].map(|name| Instance::start(place, &publisher.url(), name, &[])).into()
}

#[test]
fn a_publication_reaches_all_instances_and_a_rejection_is_visible_at_all() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, ALLOW_PAY)));
    let instances = three_instances(&place, &publisher);
    assert!(instances.iter().all(|instance| instance.version() == 1 && instance.allows("pay")));
    // One is notified of the new version, the others read it from the shared store.
    publisher.publish(Answer::Bundle(place.bundle(2, DENY_PAY)));
    instances[0].check_now();
    for instance in &instances {
        wait_for("version 2", || instance.version() == 2);
        assert!(!instance.allows("pay"));
    }
    wait_for("the report of all", || {
        instances[2].instances().iter().filter(|report| report["version"] == 2).count() == 3
    });
    assert!(
        place
            .succeed(&["bundle", "status", "--state", "file:shared.db"])
            .contains("3 instances, newest version 2, 0 without it")
    );
    // Rules that no instance accepts.
    publisher.publish(Answer::Bundle(place.bundle(3, "policies:\n  - { id: pay, match: pay, alow: {} }\n")));
    instances[1].check_now();
    let is_rejected = |report: &Value| {
        let reason = report["newer"]["reason"].as_str().unwrap_or_default();
        report["newer"]["version"] == 3
            && report["newer"]["status"] == "rejected"
            && reason.contains("rules.yaml")
    };
    wait_for("the rejection", || {
        instances[0].instances().iter().filter(|&report| is_rejected(report)).count() == 3
    });
    assert!(instances.iter().all(|instance| instance.version() == 2 && !instance.allows("pay")));
    let status = place.run(&["bundle", "status", "--state", "file:shared.db"]);
    assert_eq!(status.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(printed.contains("version 3 is rejected:") && printed.contains("rules.yaml:2"), "{printed}");
    // Unpacked files are removed, and named as in the bundle.
    assert!(!instances[0].output().contains("unpacked-"), "{}", instances[0].output());
    // The correction.
    publisher.publish(Answer::Bundle(place.bundle(4, ALLOW_PAY)));
    instances[2].check_now();
    for instance in &instances {
        wait_for("version 4", || instance.version() == 4);
        assert!(instance.allows("pay") && instance.rules()["rejected"].is_null());
    }
}

/// A bundle whose rules must pass their tests, and do so.
fn tested_bundle(place: &Workplace, version: u64) -> Vec<u8> {
    let test = "callgate: 1\ncases:\n  - name: pay\n    call: { tool: pay, input: {}, returns: { ok: true } }\n    expect: executed\n";
    let files = BTreeMap::from([
        ("rules.yaml".to_owned(), format!("reload: {{ tests: require }}\n{ALLOW_PAY}")),
        ("rules.test.yaml".to_owned(), test.to_owned()),
    ]);
    sign(&Bundle::new("payments", version, files).unwrap().document(), &[&place.key("publisher.key")])
}

/// The rules in effect at one instance require tests, because the last version did not reach it. It rejects a version without tests, which
/// the others accept, and every instance shows that.
#[test]
fn a_version_that_one_instance_rejects_is_visible_at_all() {
    let place = Workplace::new();
    let cut_off = Publisher::start(Answer::Bundle(tested_bundle(&place, 1)));
    let strict = Instance::start(&place, &cut_off.url(), "strict", &[]);
    let publisher = Publisher::start(Answer::Bundle(place.bundle(2, ALLOW_PAY)));
    let others = ["a", "b"].map(|name| Instance::start(&place, &publisher.url(), name, &[]));
    let untested = || Answer::Bundle(place.bundle(3, DENY_PAY));
    publisher.publish(untested());
    cut_off.publish(untested());
    others[0].check_now();
    strict.check_now();
    others.iter().for_each(|other| wait_for("version 3", || other.version() == 3));
    let is_rejected = |report: &Value| {
        let reason = report["newer"]["reason"].as_str().unwrap_or_default();
        report["newer"]["version"] == 3 && report["newer"]["status"] == "rejected" && reason.contains("test")
    };
    for instance in others.iter().chain([&strict]) {
        wait_for("one rejection", || {
            let reports = instance.instances();
            let (rejected, accepted): (Vec<_>, Vec<_>) =
                reports.iter().partition(|report| is_rejected(report));
            matches!(rejected[..], [report] if report["version"] == 1)
                && accepted.len() == 2
                && accepted.iter().all(|report| report["version"] == 3)
        });
    }
    assert!(strict.version() == 1 && strict.allows("pay"));
    assert!(others.iter().all(|other| !other.allows("pay")));
    let status = place.run(&["bundle", "status", "--state", "file:shared.db"]);
    assert_eq!(status.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(printed.contains("3 instances, newest version 3, 1 without it"), "{printed}");
    assert_eq!(printed.matches("version 3 is rejected:").count(), 1, "{printed}");
    // The correction reaches all.
    for publisher in [&publisher, &cut_off] {
        publisher.publish(Answer::Bundle(tested_bundle(&place, 4)));
    }
    strict.check_now();
    for instance in others.iter().chain([&strict]) {
        wait_for("version 4", || instance.version() == 4);
    }
}

#[test]
fn unchanged_bundles_are_not_sent_again() {
    let place = Workplace::new();
    std::fs::write(place.path("credentials"), "Bearer secret-token").unwrap();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, ALLOW_PAY)));
    let more = ["--policies-credentials", "credentials"];
    let instance = Instance::start(&place, &publisher.url(), "a", &[&more[..], &["--metrics", "0"]].concat());
    for checks in 1..4 {
        instance.check_now();
        wait_for("a check", || publisher.requests().len() > checks);
    }
    let requests = publisher.requests();
    // The start, the first check of the follower, and then by ETag.
    assert!(requests[2..].iter().all(|headers| headers.contains_key("if-none-match")), "{requests:?}");
    assert!(requests.iter().all(|headers| headers["authorization"] == "Bearer secret-token"));
    for secret in ["secret-token", "secret-query"] {
        let shown = format!("{}{}{}", instance.output(), instance.rules(), instance.instances()[0]);
        assert!(!shown.contains(secret), "{shown}");
    }
    let metrics = instance.metrics();
    for line in [
        "callgate_bundle_version{name=\"payments\"} 1",
        "callgate_bundle_newest_version{name=\"payments\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

/// An instance that was just created, by a publisher who has gone back.
#[test]
fn a_new_instance_accepts_no_version_older_than_that_of_the_others() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(5, DENY_PAY)));
    let old = Publisher::start(Answer::Bundle(place.bundle(4, ALLOW_PAY)));
    let _instance = Instance::start(&place, &publisher.url(), "a", &[]);
    let started = place.run(&[
        "serve",
        "--policies",
        &old.url(),
        "--policies-signed-by",
        "publishers.keys",
        "--policies-dir",
        "b",
        "--state",
        "file:shared.db",
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(started.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&started.stderr).contains("version 4 of the bundle is older than version 5")
    );
    assert!(!place.path("b/active.bundle.json").exists());
}
