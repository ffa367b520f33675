//! Rules that may allow more: confirmed once, at any instance or in the state store, and applied by all.

use super::instance::Instance;
use super::publisher::{Answer, Publisher};
use super::{Workplace, wait_for};

const STRICT: &str = "reload: { widening: confirm }\npolicies:\n  - { id: pay, match: pay, deny: { message: No } }\n  \
                      - { id: refund, match: refund, deny: { message: No } }\n";
const WIDER: &str = "reload: { widening: confirm }\npolicies:\n  - { id: pay, match: pay, allow: {} }\n  \
                     - { id: refund, match: refund, deny: { message: No } }\n";
const WIDEST: &str = "reload: { widening: confirm }\npolicies: []\n";

fn wait_until_pending(instances: &[Instance], version: u64) {
    for instance in instances {
        wait_for("the pending rules", || {
            let newer = instance.rules()["bundle"]["newer"].clone();
            newer["version"] == version && newer["status"] == "pending"
        });
    }
    wait_for("the reports", || {
        let reports = instances[0].instances();
        reports.iter().filter(|report| report["newer"]["version"] == version).count() == instances.len()
    });
}

#[test]
fn a_widening_is_confirmed_once_for_all_instances() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, STRICT)));
    let start = |name: &str| Instance::start(&place, &publisher.url(), name, &[]);
    let mut instances: Vec<Instance> = ["a", "b", "c"].map(start).into();
    publisher.publish(Answer::Bundle(place.bundle(2, WIDER)));
    instances[0].check_now();
    wait_until_pending(&instances, 2);
    assert!(instances.iter().all(|instance| !instance.allows("pay")));
    assert!(instances[0].output().contains("callgate bundle confirm"));
    // A restart confirms nothing.
    instances[2].kill();
    instances[2] = start("c");
    wait_for("the pending rules", || instances[2].rules()["pending"].is_object());
    assert!(!instances[2].allows("pay"));
    // Once, by the command. Without `--yes` it only shows what is pending.
    let shown = place.succeed(&["bundle", "confirm", "--state", "file:shared.db"]);
    assert!(
        shown.contains("pending on 3 instances") && shown.contains("`pay`") && shown.contains("--yes"),
        "{shown}"
    );
    assert!(instances.iter().all(|instance| !instance.allows("pay")));
    place.succeed(&["bundle", "confirm", "--state", "file:shared.db", "--yes"]);
    for instance in &instances {
        wait_for("version 2", || instance.version() == 2);
        assert!(instance.allows("pay"));
    }
    let nothing = place.run(&["bundle", "confirm", "--state", "file:shared.db", "--yes"]);
    assert_eq!(nothing.status.code(), Some(1));
    // Once, at one of them. An earlier confirmation counts for no other version.
    publisher.publish(Answer::Bundle(place.bundle(3, STRICT)));
    instances[0].check_now();
    instances.iter().for_each(|instance| wait_for("version 3", || instance.version() == 3));
    publisher.publish(Answer::Bundle(place.bundle(4, WIDER)));
    instances[1].check_now();
    wait_until_pending(&instances, 4);
    assert_eq!(instances[1].confirm("another"), 409);
    let revision = instances[1].rules()["pending"]["revision"].as_str().unwrap().to_owned();
    assert_eq!(instances[1].confirm(&revision), 200);
    for instance in &instances {
        wait_for("version 4", || instance.version() == 4);
        assert!(instance.allows("pay"));
    }
}

/// What a person has seen is what the confirmation counts for.
#[test]
fn an_instance_with_other_rules_needs_its_own_confirmation() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, STRICT)));
    let mut late = Instance::start(&place, &publisher.url(), "late", &[]);
    late.kill();
    publisher.publish(Answer::Bundle(place.bundle(2, WIDER)));
    // Its first rules, so that nothing is compared.
    let other = Instance::start(&place, &publisher.url(), "other", &[]);
    publisher.publish(Answer::Bundle(place.bundle(3, WIDEST)));
    other.check_now();
    wait_for("the pending rules", || other.rules()["pending"].is_object());
    let revision = other.rules()["pending"]["revision"].as_str().unwrap().to_owned();
    assert_eq!(other.confirm(&revision), 200);
    wait_for("version 3", || other.version() == 3);
    let late = Instance::start(&place, &publisher.url(), "late", &[]);
    wait_for("the pending rules", || late.rules()["pending"].is_object());
    // It has looked for a confirmation, and found that of the other one.
    let requests = publisher.requests().len();
    for more in 1..3 {
        late.check_now();
        wait_for("a check", || publisher.requests().len() >= requests + more);
    }
    assert_eq!(late.version(), 1);
    place.succeed(&["bundle", "confirm", "--state", "file:shared.db", "--yes"]);
    wait_for("version 3", || late.version() == 3);
}
