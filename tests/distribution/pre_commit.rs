//! The hooks for pre-commit, run by pre-commit itself in a repository with policies.

use std::fs;
use std::path::Path;

use super::{GOOD_RULES, GOOD_TESTS, bash, finished, run_tool, tool};
use crate::fixtures::root;

#[test]
fn hook_definitions_are_valid() {
    run_tool("pre-commit", &["validate-manifest", ".pre-commit-hooks.yaml"]);
}

/// Runs git and pre-commit without the settings of this machine.
fn run(script: &str, home: &Path) -> (i32, String) {
    let mut command = bash(script, tool("pre-commit").parent().unwrap());
    command.current_dir(home).env("HOME", home).env("PRE_COMMIT_HOME", home.join("cache"));
    for (name, value) in [("NAME", "Ana"), ("EMAIL", "ana@example.com")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        command.env_remove(variable);
    }
    let (code, stdout, stderr) = finished(command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap());
    (code, format!("{stdout}{stderr}"))
}

#[test]
fn hooks_check_and_test_the_bundle_if_one_of_its_files_changes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path();
    for directory in ["hooks", "project/policies"] {
        fs::create_dir_all(path.join(directory)).unwrap();
    }
    fs::copy(root().join(".pre-commit-hooks.yaml"), path.join("hooks/.pre-commit-hooks.yaml")).unwrap();
    fs::write(path.join("project/policies/rules.yaml"), GOOD_RULES).unwrap();
    fs::write(path.join("project/policies/rules.test.yaml"), GOOD_TESTS).unwrap();
    let setup = "for name in hooks project; do
                   git init --quiet $name && git -C $name add . && git -C $name commit --quiet --message Begin
                 done";
    assert_eq!(run(setup, path), (0, String::new()));
    let hook = |id: &str| run(&format!("cd project && git add . && pre-commit try-repo ../hooks {id}"), path);

    // Without a changed file in `policies`, nothing runs; policies of other tools are not read.
    fs::write(path.join("project/compose.yaml"), "services: {}\n").unwrap();
    let (code, printed) = hook("callgate-check");
    assert!(code == 0 && printed.contains("(no files to check)Skipped"), "{printed}");

    let changed = format!("{GOOD_RULES}  - {{ id: no-payments, match: pay, deny: {{}} }}\n");
    fs::write(path.join("project/policies/rules.yaml"), &changed).unwrap();
    // A file that is not a rules file is not checked as one.
    fs::write(path.join("project/policies/README.md"), "# Policies\n").unwrap();
    for id in ["callgate-check", "callgate-test"] {
        let (code, printed) = hook(id);
        assert!(code == 0 && printed.contains("Passed"), "{printed}");
    }

    // The rules change, and the hook runs the tests, which did not change.
    fs::write(path.join("project/policies/rules.yaml"), changed.replace("createRefund", "refund")).unwrap();
    let (code, printed) = hook("callgate-test");
    assert!(code == 1 && printed.contains("refunds are denied"), "{printed}");

    fs::write(path.join("project/policies/rules.yaml"), "policies: [{ id: a, denny: {} }]\n").unwrap();
    let (code, printed) = hook("callgate-check");
    assert!(code == 1 && printed.contains("error[CG201]"), "{printed}");
}
