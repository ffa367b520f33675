//! `callgate task seal`: the header of the gateway over HTTP, sealed by a host that is not written in Rust.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use callgate::{Keys, Task, TaskTurn};
use jiff::{SignedDuration, Timestamp};

use super::TestDir;

fn test_dir() -> (TestDir, Keys) {
    let keys = "5a".repeat(32);
    let dir = TestDir::new(&[("gateway.key", &keys)]);
    fs::set_permissions(dir.0.path().join("gateway.key"), fs::Permissions::from_mode(0o600)).unwrap();
    (dir, Keys::parse(&keys).unwrap())
}

const SEAL: [&str; 6] = ["task", "seal", "--session", "chat 7", "--keys", "gateway.key"];

#[test]
fn the_gateway_opens_what_the_command_sealed() {
    let (dir, keys) = test_dir();
    let seal = |more: &[&str], input: &str| {
        let ended = dir.run_with_input(&[&SEAL, more].concat(), input);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        ended.stdout.trim_end().to_owned()
    };
    let now = Timestamp::now();
    let open = |sealed: &str, session, minutes| {
        Task::open_sealed(sealed, Some(session), now + SignedDuration::from_mins(minutes), &keys)
    };
    let sealed = seal(&[], "Pay ana@example.com.\n");
    assert_eq!(open(&sealed, "chat 7", 0), Task::from_text("Pay ana@example.com."));
    assert!(open(&sealed, "chat 8", 0).unknown_reason().is_some());
    assert!(open(&sealed, "chat 7", 10).unknown_reason().is_some());
    let longer = seal(&["--expires-in", "1h"], "Pay ana@example.com.");
    assert_eq!(open(&longer, "chat 7", 10), Task::from_text("Pay ana@example.com."));
    let turns = Task::new([TaskTurn::new("Pay Ana"), TaskTurn::new("And Bob")]);
    assert_eq!(open(&seal(&["--json"], r#"["Pay Ana", { "text": "And Bob" }]"#), "chat 7", 0), turns);
    // JSON is a text as any other, unless the host says that it is JSON.
    assert_eq!(open(&seal(&[], "[\"Pay Ana\"]"), "chat 7", 0), Task::from_text("[\"Pay Ana\"]"));
    assert_eq!(open(&seal(&[], "\n"), "chat 7", 0), Task::NONE);
}

#[test]
fn nothing_is_sealed_without_a_usable_task_and_key() {
    let (dir, _) = test_dir();
    let path = |name: &str| dir.0.path().join(name);
    fs::write(path("public.key"), "5a".repeat(32)).unwrap();
    fs::set_permissions(path("public.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let long = "a".repeat(300 << 10);
    let with_keys = |keys| ["task", "seal", "--session", "chat 7", "--keys", keys];
    for (arguments, input, why) in [
        (&with_keys("public.key")[..], "Pay", "public.key"),
        (&with_keys("missing.key"), "Pay", "missing.key"),
        (&["task", "seal", "--session", "chat 7"], "Pay", "CALLGATE_KEYS"),
        (&["task", "seal", "--session", "", "--keys", "gateway.key"], "Pay", "session"),
        (&[&SEAL[..], &["--expires-in", "0s"]].concat(), "Pay", "30s"),
        (&[&SEAL[..], &["--expires-in", "soon"]].concat(), "Pay", "30s"),
        (&[&SEAL[..], &["--json"]].concat(), "Pay", "invalid JSON"),
        (&[&SEAL[..], &["--json"]].concat(), "{ \"text\": 5 }", "a list of strings"),
        (&SEAL[..], &long, "longer than 256 KiB"),
    ] {
        let ended = dir.run_with_input(arguments, input);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ended.stderr.contains(why), "{arguments:?}: {}", ended.stderr);
    }
}
