//! `callgate bundle pull`: published rules as files, for commands that read files.

use super::publisher::{Answer, Publisher};
use super::{ALLOW_PAY, DENY_PAY, Workplace, document};
use callgate_bundle::sign;

const OUT: &str = "rules";

impl Workplace {
    /// Pulls what is published; returns the exit status and what it prints.
    fn pull(&self, publisher: &Publisher) -> (Option<i32>, String) {
        let pulled =
            self.run(&["bundle", "pull", &publisher.url(), "--signed-by", "publishers.keys", "--out", OUT]);
        let printed =
            [pulled.stdout, pulled.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (pulled.status.code(), printed.concat())
    }

    /// The outcome of a call of `pay` by the pulled rules.
    fn outcome(&self) -> String {
        std::fs::write(self.path("calls.jsonl"), "{\"tool\":\"pay\",\"input\":{}}\n").unwrap();
        let ran = self.succeed(&["run", "--policies", OUT, "--format", "json", "calls.jsonl"]);
        callgate::json::parse(ran.lines().next().unwrap()).unwrap()["outcome"].as_str().unwrap().to_owned()
    }
}

#[test]
fn commands_that_read_files_use_published_rules() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, DENY_PAY)));
    let (status, printed) = place.pull(&publisher);
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.starts_with("`rules`: version 1 of the bundle `payments`, 1 file, sha256:"), "{printed}");
    assert_eq!(place.outcome(), "denied");
    place.succeed(&["check", OUT]);
    // The same version again, and a newer one.
    assert_eq!(place.pull(&publisher).0, Some(0));
    publisher.publish(Answer::Bundle(place.bundle(2, ALLOW_PAY)));
    assert_eq!(place.pull(&publisher).0, Some(0));
    assert_eq!(place.outcome(), "executed");
    let left = std::fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".callgate-pull")));
}

#[test]
fn what_no_instance_would_accept_changes_nothing() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(7, DENY_PAY)));
    assert_eq!(place.pull(&publisher).0, Some(0));
    let of_another = sign(&document("payments", 8, ALLOW_PAY), &[&place.key("other.key")]);
    let mut tampered = place.bundle(8, ALLOW_PAY);
    let middle = tampered.len() / 2;
    tampered[middle] ^= 1;
    let broken = place.bundle(8, "policies:\n  - { id: pay, match: pay, alow: {} }\n");
    for (name, bundle, expected) in [
        ("another publisher", of_another, "signed"),
        ("changed bytes", tampered, "error"),
        ("an older version", place.bundle(6, ALLOW_PAY), "version 6 is older than version 7"),
        ("other content of the version", place.bundle(7, ALLOW_PAY), "published before with other content"),
        ("another bundle", place.bundle_named("mail", 8, ALLOW_PAY), "has the bundle `payments`"),
        ("rules with errors", broken, "rules.yaml:2"),
    ] {
        publisher.publish(Answer::Bundle(bundle));
        let (status, printed) = place.pull(&publisher);
        assert_ne!(status, Some(0), "{name}");
        assert!(printed.contains(expected), "{name}: {printed}");
        assert!(!printed.contains(".callgate-pull"), "{name}: {printed}");
        assert_eq!(place.outcome(), "denied", "{name}");
    }
    publisher.publish(Answer::Status(503, String::new()));
    assert_eq!(place.pull(&publisher).0, Some(2));
    assert_eq!(place.outcome(), "denied");
}

#[test]
fn files_of_others_are_not_replaced() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, ALLOW_PAY)));
    std::fs::create_dir(place.path(OUT)).unwrap();
    std::fs::write(place.path("rules/mine.yaml"), DENY_PAY).unwrap();
    let (status, printed) = place.pull(&publisher);
    assert_eq!(status, Some(2), "{printed}");
    assert!(printed.contains("has files that no bundle put there"), "{printed}");
    assert_eq!(std::fs::read_to_string(place.path("rules/mine.yaml")).unwrap(), DENY_PAY);
    std::fs::remove_file(place.path("rules/mine.yaml")).unwrap();
    assert_eq!(place.pull(&publisher).0, Some(0));
}
