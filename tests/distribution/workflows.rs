//! The workflows: valid, safe, and in agreement with the scripts that they call.

use std::collections::BTreeSet;
use std::process::Command;

use regex::Regex;
use serde_yaml::Value;

use super::{read, run_tool, tool, yaml};
use crate::fixtures::root;
use crate::packages;

const WORKFLOWS: [&str; 2] = [".github/workflows/ci.yml", ".github/workflows/release.yml"];
const ACTION: &str = "action.yml";

/// Every `run:` script of a workflow or action.
fn run_scripts(node: &Value) -> Vec<String> {
    match node {
        Value::Mapping(mapping) => mapping
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value.as_str()) {
                (Some("run"), Some(script)) => vec![script.to_owned()],
                _ => run_scripts(value),
            })
            .collect(),
        Value::Sequence(items) => items.iter().flat_map(run_scripts).collect(),
        _ => Vec::new(),
    }
}

fn scripts() -> Vec<(&'static str, String)> {
    let files = WORKFLOWS.iter().chain([&ACTION]);
    let scripts: Vec<_> =
        files.flat_map(|file| run_scripts(&yaml(file)).into_iter().map(|script| (*file, script))).collect();
    assert!(scripts.len() >= 9, "{}", scripts.len());
    scripts
}

#[test]
fn workflows_and_the_action_match_their_schemas() {
    run_tool(
        "check-jsonschema",
        &[&["--builtin-schema", "vendor.github-workflows"], &WORKFLOWS[..]].concat(),
    );
    run_tool("check-jsonschema", &["--builtin-schema", "vendor.github-actions", ACTION]);
}

/// Without `shell: bash`, a runner ignores failures of all commands of a pipeline but the last.
#[test]
fn every_step_of_a_workflow_stops_at_the_first_failure() {
    for workflow in WORKFLOWS.map(yaml) {
        assert_eq!(workflow["defaults"]["run"]["shell"], "bash");
    }
}

/// Least privilege, pinned actions, no expressions in scripts, no persisted credentials.
#[test]
fn workflows_and_the_action_pass_the_security_audit() {
    run_tool("zizmor", &[&["--offline", "--pedantic", "--quiet"], &WORKFLOWS[..], &[ACTION]].concat());
}

#[test]
fn actions_are_pinned_by_commit_with_their_version() {
    let pinned = Regex::new(r"^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$").unwrap();
    let mut count = 0;
    for text in WORKFLOWS.map(read) {
        for used in text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, used)| used) {
            assert!(pinned.is_match(used), "{used}");
            count += 1;
        }
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn every_script_is_valid_and_contains_no_expressions() {
    for (file, script) in scripts() {
        assert!(!script.contains("${{"), "{file}: pass the value in `env`:\n{script}");
        let mut shellcheck = Command::new(tool("shellcheck"));
        shellcheck.args(["--shell", "bash", "-"]);
        // As runners start `shell: bash`.
        let (printed, valid) = packages::run(&mut shellcheck, &format!("set -eo pipefail\n{script}"));
        assert!(valid, "{file}:\n{script}\n{printed}");
    }
}

#[test]
fn every_named_script_exists() {
    let path = Regex::new(r"(?:^|[\s/])((?:scripts|\.ci|tests|crates)/[\w./-]+)").unwrap();
    let mut found = BTreeSet::new();
    for (file, script) in scripts() {
        for named in path.captures_iter(&script) {
            assert!(root().join(&named[1]).exists(), "{file} names {}", &named[1]);
            found.insert(named[1].to_owned());
        }
    }
    let expected = [
        ".ci/run",
        "crates/callgate-cli",
        "scripts/npm",
        "scripts/release",
        "scripts/wheel-requirements.txt",
        "scripts/wheels",
        "scripts/zig-requirements.txt",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn releases_have_an_archive_for_every_target_of_the_script() {
    let release = yaml(WORKFLOWS[1]);
    let matrix = release["jobs"]["archive"]["strategy"]["matrix"]["include"].as_sequence().unwrap();
    let built: BTreeSet<&str> = matrix.iter().map(|entry| entry["target"].as_str().unwrap()).collect();
    let script = read("scripts/release");
    let lists = script.lines().filter_map(|line| line.strip_prefix("supported_targets=\""));
    let words = lists.flat_map(|list| list.trim_end_matches('"').split(' '));
    let supported: BTreeSet<&str> = words.filter(|word| !word.starts_with('$')).collect();
    assert_eq!(built, supported);
    let page = read("docs/install.md");
    for target in supported {
        assert!(page.contains(&format!("`{target}`")), "docs/install.md does not list {target}");
    }
}

/// All builds use the toolchain that the workspace supports at least.
#[test]
fn all_builds_use_the_same_toolchain() {
    let manifest = read("Cargo.toml");
    let minimum = manifest.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    for workflow in WORKFLOWS.map(yaml) {
        let toolchain = workflow["env"]["RUSTUP_TOOLCHAIN"].as_str().unwrap().to_owned();
        assert!(toolchain.starts_with(&format!("{minimum}.")), "{toolchain}");
        assert!(read("Containerfile").contains(&format!("FROM rust:{toolchain}-alpine AS build")));
    }
}
