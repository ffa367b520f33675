//! The page on installation: its commands run, with the network replaced by the files of this build, and its snippets are valid.

use std::fs;
use std::path::Path;

use serde_yaml::Value;

use super::{bash, finished, read, release_archives, run_tool, write_program, yaml};

/// The fenced blocks below a heading, each with its language.
fn blocks(heading: &str) -> Vec<(String, String)> {
    let page = read("docs/install.md");
    let section = page.split("\n## ").find(|section| section.starts_with(&format!("{heading}\n"))).unwrap();
    let blocks = section.split("\n```").skip(1).step_by(2).map(|block| {
        let (language, text) = block.split_once('\n').unwrap();
        (language.to_owned(), format!("{text}\n"))
    });
    blocks.collect()
}

fn only_block(heading: &str) -> String {
    let [(_, text)] = blocks(heading).try_into().unwrap();
    text
}

/// Runs a script in an empty home directory.
fn run(script: &str, home: &Path) -> String {
    let mut command = bash(&format!("set -euo pipefail\n{script}"), &home.join("programs"));
    let (code, stdout, stderr) = finished(command.current_dir(home).env("HOME", home).output().unwrap());
    assert_eq!(code, 0, "{script}\n{stdout}{stderr}");
    stdout
}

#[test]
fn archive_is_downloaded_verified_and_installed() {
    let home = tempfile::tempdir().unwrap();
    let archive = release_archives::package_into(&home.path().join("build"));
    let version = env!("CARGO_PKG_VERSION");
    // Copies what the page downloads.
    let curl = "for word; do
                  case $word in
                    https://github.com/OWNER/callgate/releases/download/*) cp \"archives/${word##*/}\" . ;;
                  esac
                done";
    write_program(&home.path().join("programs/curl"), curl);
    fs::rename(archive.parent().unwrap(), home.path().join("archives")).unwrap();
    let script = only_block("From a release archive");
    assert!(script.starts_with(&format!("version={version} ")), "the page names another version: {script}");
    let printed = run(&script.replace("-linux-musl", "-linux-gnu"), home.path());
    assert!(printed.contains(".tar.gz: OK"), "{printed}");
    assert_eq!(run("~/.local/bin/callgate --version", home.path()), format!("callgate {version}\n"));
}

#[test]
fn completions_and_manual_pages_are_written() {
    let home = tempfile::tempdir().unwrap();
    run(&only_block("Completions and manual pages"), home.path());
    let files =
        [".local/share/bash-completion/completions/callgate", ".local/share/man/man1/callgate-check.1"];
    for file in files {
        assert!(fs::metadata(home.path().join(file)).unwrap().len() > 500, "{file}");
    }
}

/// The workflows are valid, and use inputs and outputs that the action has.
#[test]
fn workflows_of_the_page_use_the_action_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let action = yaml("action.yml");
    let workflows = blocks("GitHub Action");
    assert_eq!(workflows.len(), 2);
    for (_, text) in workflows {
        let file = home.path().join("workflow.yml");
        fs::write(&file, &text).unwrap();
        let arguments = ["--builtin-schema", "vendor.github-workflows", file.to_str().unwrap()];
        run_tool("check-jsonschema", &arguments);
        let workflow: Value = serde_yaml::from_str(&text).unwrap();
        let (_, job) = workflow["jobs"].as_mapping().unwrap().iter().next().unwrap();
        let steps = job["steps"].as_sequence().unwrap();
        let step =
            steps.iter().find(|step| step["uses"].as_str().unwrap().starts_with("OWNER/callgate@v")).unwrap();
        for (input, _) in step["with"].as_mapping().unwrap() {
            assert!(action["inputs"].get(input).is_some(), "the action has no input {input:?}");
        }
        for output in text.split("steps.callgate.outputs.").skip(1) {
            let output = output.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            assert!(action["outputs"].get(output).is_some(), "the action has no output {output}");
        }
    }
    let page = read("docs/install.md");
    for (input, _) in action["inputs"].as_mapping().unwrap() {
        assert!(page.contains(&format!("| `{}` |", input.as_str().unwrap())), "{input:?} is not on the page");
    }
}

#[test]
fn pre_commit_configurations_of_the_page_are_valid_and_name_existing_hooks() {
    let home = tempfile::tempdir().unwrap();
    let hooks = yaml(".pre-commit-hooks.yaml");
    let ids: Vec<&str> =
        hooks.as_sequence().unwrap().iter().map(|hook| hook["id"].as_str().unwrap()).collect();
    let configurations = blocks("Pre-commit");
    assert_eq!(configurations.len(), 2);
    for (_, text) in configurations {
        let file = home.path().join("config.yaml");
        fs::write(&file, &text).unwrap();
        run_tool("pre-commit", &["validate-config", file.to_str().unwrap()]);
        let used = text.lines().filter_map(|line| line.trim().strip_prefix("- id: "));
        assert_eq!(used.collect::<Vec<_>>(), ids);
    }
}

/// Commands that need a registry or a container engine name what exists.
#[test]
fn other_commands_of_the_page_name_what_exists() {
    assert_eq!(only_block("From source"), "cargo install --path crates/callgate-cli --locked\n");
    let containers = blocks("Container");
    assert!(
        containers[0].1.contains(" ghcr.io/OWNER/callgate:") && containers[0].1.contains("\"$PWD:/work:ro\"")
    );
    assert!(read("Containerfile").contains("\nWORKDIR /work\n"));
    assert!(containers[1].1.contains(" /usr/local/bin/callgate /usr/local/bin/callgate"));
    assert!(read(".github/workflows/release.yml").contains("name=\"ghcr.io/${GITHUB_REPOSITORY,,}\""));
}
