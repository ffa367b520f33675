//! The adapters beside the examples build by themselves and do what they show.

use std::process::Command;

use crate::playback::project;

#[test]
fn an_agent_of_rig_runs_by_the_rules_and_waits_for_a_person() {
    let manifest = project("examples/rig/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(&manifest)
        // Kept from run to run, and apart from what this test is built into.
        .env("CARGO_TARGET_DIR", project("target/adapters"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("adapters_rig", String::from_utf8(output.stdout).unwrap()));
}
