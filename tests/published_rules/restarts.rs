//! Restarts without a publisher, and with one that has gone back.

use super::instance::Instance;
use super::publisher::{Answer, Publisher};
use super::{ALLOW_PAY, DENY_PAY, Workplace, wait_for};

#[test]
fn an_instance_starts_with_the_last_good_bundle() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(2, DENY_PAY)));
    let url = publisher.url();
    let mut instance = Instance::start(&place, &url, "a", &[]);
    // A newer one is rejected, so the one before is the last good one.
    publisher.publish(Answer::Bundle(place.bundle(3, "policies: nothing")));
    instance.check_now();
    wait_for("the rejection", || instance.rules()["bundle"]["newer"]["version"] == 3);
    instance.kill();
    drop(publisher);
    let mut instance = Instance::start(&place, &url, "a", &[]);
    assert_eq!(instance.version(), 2);
    assert!(!instance.allows("pay"));
    instance.check_fails("can't be fetched");
    instance.kill();
    // Without a stored bundle, nothing starts without the publisher.
    let started = place.run(&[
        "serve",
        "--policies",
        &url,
        "--policies-signed-by",
        "publishers.keys",
        "--policies-dir",
        "other",
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(started.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&started.stderr).contains("can't be fetched"));
}

#[test]
fn older_versions_are_refused_after_a_restart_and_a_rollback_is_a_new_version() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(7, DENY_PAY)));
    let mut instance = Instance::start(&place, &publisher.url(), "a", &[]);
    instance.kill();
    // Of another store, so that only the directory remembers.
    let state = ["--state", "file:other.db"];
    publisher.publish(Answer::Bundle(place.bundle(6, ALLOW_PAY)));
    let mut instance = Instance::start(&place, &publisher.url(), "a", &state);
    instance.check_fails("version 6 of the bundle is older than version 7");
    assert!(!instance.allows("pay"));
    publisher.publish(Answer::Bundle(place.bundle(8, ALLOW_PAY)));
    instance.check_now();
    wait_for("version 8", || instance.version() == 8);
    assert!(instance.allows("pay"));
    instance.kill();
}

#[test]
fn a_stored_bundle_of_a_key_that_is_no_longer_trusted_is_not_used() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, ALLOW_PAY)));
    let mut instance = Instance::start(&place, &publisher.url(), "a", &[]);
    instance.kill();
    let next = place.key("next.key");
    std::fs::write(place.path("publishers.keys"), next.public_key().to_string()).unwrap();
    let start = || {
        place.run(&[
            "serve",
            "--policies",
            &publisher.url(),
            "--policies-signed-by",
            "publishers.keys",
            "--policies-dir",
            "a",
            "--state",
            "file:shared.db",
            "--listen",
            "127.0.0.1:0",
        ])
    };
    let refused = start();
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        printed.contains("the stored bundle can't be used any more")
            && printed.contains("no trusted key signed")
    );
    // Edited files are refused, too.
    std::fs::write(place.path("a/versions.json"), "{").unwrap();
    let refused = start();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is damaged"));
}
