//! The adapters in `examples/` build on their own and work as shown.

use std::process::Command;

use crate::recorded_calls::project;

#[test]
fn rig_agent_obeys_the_rules_and_requests_approval() {
    let manifest = project("examples/rig/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(&manifest)
        // Cached between runs, and separate from this test's own target directory.
        .env("CARGO_TARGET_DIR", project("target/adapters"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("adapters_rig", String::from_utf8(output.stdout).unwrap()));
}
