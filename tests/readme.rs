//! The README's examples: its commands run, its rules load, its calls parse. (Its Rust code runs as a doc test.)

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use callgate::call::CallRecord;

use crate::fixtures::root;
use crate::packages;

/// The fenced blocks of one language.
fn blocks(language: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let fence = format!("```{language}\n");
    let blocks = readme.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned());
    blocks.collect()
}

/// Runs a command line of the README with the binary of this build.
fn run(line: &str, directory: &Path) -> Output {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_callgate"));
    let line = line.replace("cargo run --quiet --", "callgate");
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    Command::new("bash")
        .args(["-c", &line])
        .env("PATH", path)
        .env_remove("CALLGATE_KEYS")
        .current_dir(directory)
        .output()
        .unwrap()
}

fn without_times(text: &str) -> String {
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC").unwrap();
    // Each state has its own key.
    let digest = regex::Regex::new("digest [0-9a-f]{16}").unwrap();
    digest.replace_all(&time.replace_all(text, "[time]"), "digest [digest]").into_owned()
}

/// Runs all commands of the README in order. Their output contains the shown output; `…` stands for the rest.
#[test]
fn every_command_prints_the_shown_output() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut count = 0;
    for block in blocks("console") {
        for example in format!("\n{block}").split("\n$ ").skip(1) {
            let (line, shown) = example.split_once('\n').unwrap_or((example, ""));
            count += 1;
            if line == "tests/run" {
                assert!(root().join(line).exists());
                continue;
            }
            let in_the_clone = line.starts_with("cargo ");
            let output = run(line, if in_the_clone { root() } else { elsewhere.path() });
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            let printed = without_times(&String::from_utf8(output.stdout).unwrap());
            for part in
                without_times(shown).split('…').map(str::trim_end).filter(|part| !part.trim().is_empty())
            {
                assert!(printed.contains(part), "{line} does not print\n{part}\nbut\n{printed}");
            }
        }
    }
    assert!(count >= 5, "the README's commands were not found");
}

#[test]
fn main_example_shows_a_denial_and_a_suspension() {
    let line = blocks("console")
        .iter()
        .flat_map(|block| block.lines())
        .find(|line| line.contains(" run "))
        .unwrap()
        .to_owned();
    let output = run(line.trim_start_matches("$ "), root());
    let printed = String::from_utf8(output.stdout).unwrap();
    for outcome in ["executed", "denied", "suspended"] {
        assert!(printed.contains(outcome), "{outcome} is missing in:\n{printed}");
    }
}

#[test]
fn rules_and_calls_parse() {
    let rules = blocks("yaml");
    assert!(!rules.is_empty());
    let (tests, rules): (Vec<String>, Vec<String>) =
        rules.into_iter().partition(|text| text.contains("cases:"));
    for text in &rules {
        callgate::engine::load_text(text).unwrap();
    }
    // The shown tests pass with the shown rules.
    let chains = callgate::engine::load_text(&rules[0]).unwrap();
    assert!(!tests.is_empty());
    for text in tests {
        let loaded = callgate_policy_tests::load_texts([("README.test.yaml", text)]);
        assert!(loaded.diagnostics.is_empty());
        let report = loaded.suite.run(&chains);
        assert!(report.passed(), "{}", callgate_policy_tests::render::text(&report, false));
    }
    let calls = blocks("json");
    assert!(!calls.is_empty());
    for line in calls.iter().flat_map(|block| block.lines()) {
        CallRecord::parse(line).unwrap();
    }
}

#[test]
fn every_linked_file_exists() {
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/reference.md",
        "docs/failures.md",
        "docs/asking-people.md",
        "docs/seeds.md",
        "docs/explain.md",
        "docs/testing.md",
    ] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let beside = root().join(page);
        let beside = beside.parent().unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            assert!(
                target.starts_with("http") || target.is_empty() || beside.join(target).exists(),
                "{page} links to {link}"
            );
        }
    }
}

/// Each row of the failures page names an existing test.
#[test]
fn every_failure_names_a_test() {
    let page = std::fs::read_to_string(root().join("docs/failures.md")).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| failure") && !line.starts_with("| ---"))
        .collect();
    assert!(rows.len() > 25);
    for row in rows {
        let named = |word: &&str| ["tests/", "src/", "crates/"].iter().any(|folder| word.starts_with(folder));
        let tests: Vec<&str> = row.split('`').filter(named).collect();
        assert!(!tests.is_empty(), "no test in: {row}");
        for test in tests {
            assert!(root().join(test).exists(), "{test} does not exist: {row}");
            let has_tests = || std::fs::read_to_string(root().join(test)).unwrap().contains("test]\n");
            assert!(test.starts_with("tests/") || has_tests(), "{test} has no tests: {row}");
        }
    }
}

/// Each row of the table of approval outcomes names an existing test, by its file and name.
#[test]
fn every_approval_outcome_names_a_test() {
    let page = std::fs::read_to_string(root().join("docs/asking-people.md")).unwrap();
    let named: Vec<(&str, &str)> = page.split('`').filter_map(|word| word.split_once(".rs: ")).collect();
    assert!(named.len() > 25, "{}", named.len());
    for (file, test) in named {
        let text = std::fs::read_to_string(root().join(format!("tests/approvals/{file}.rs"))).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{file}.rs has no test {test}");
    }
}

/// Runs the gateway's command, with the installed server instead of the one that `npx` would fetch. It does what the table says.
#[test]
fn gateway_example_does_what_the_table_says() {
    let home = tempfile::tempdir().unwrap();
    let shop = home.path().join("shop");
    std::fs::create_dir_all(shop.join(".github/workflows")).unwrap();
    std::fs::write(shop.join("notes.txt"), "the key is AKIAIOSFODNN7EXAMPLE\n").unwrap();
    let rule = blocks("yaml").into_iter().find(|block| block.contains("nothing-is-moved")).unwrap();
    std::fs::write(home.path().join("mine.yaml"), rule).unwrap();
    let context = callgate::json::json!({ "workspace": shop });
    std::fs::write(home.path().join("context.json"), context.to_string()).unwrap();
    let call = |id: u32, tool: &str, arguments: callgate::json::Value| {
        let params = callgate::json::json!({ "name": tool, "arguments": arguments });
        callgate::json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let hello = callgate::json::json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let messages = [
        callgate::json::json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        callgate::json::json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        callgate::json::json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        call(
            3,
            "write_file",
            callgate::json::json!({ "path": home.path().join("other.txt"), "content": "x" }),
        ),
        call(
            4,
            "write_file",
            callgate::json::json!({ "path": shop.join(".github/workflows/ci.yml"), "content": "x" }),
        ),
        call(5, "read_text_file", callgate::json::json!({ "path": shop.join("notes.txt") })),
    ];
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    std::fs::write(home.path().join("messages"), lines).unwrap();

    let server = packages::node("mcp-node", &root().join("tests/gateway"))
        .join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let command = blocks("sh").into_iter().find(|block| block.starts_with("callgate proxy")).unwrap();
    let command = command
        .replace("policies/filesystem", &root().join("policies/filesystem").display().to_string())
        .replace("npx -y @modelcontextprotocol/server-filesystem", &format!("node {}", server.display()));
    // The client keeps its input open until its last request is answered.
    let client =
        r#"{ cat messages; for _ in $(seq 500); do grep -qs '"id":5' said && break; sleep 0.1; done; }"#;
    let line = format!(
        "export HOME={}; set -o pipefail; {client} | {{ {command}\n}} | tee said",
        home.path().display()
    );
    let output = run(&line, home.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<callgate::json::Value> =
        printed.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
    let answer = |id: u32| &answers.iter().find(|answer| answer["id"] == id).unwrap()["result"];
    let tools = answer(2)["tools"].as_array().unwrap();
    assert!(tools.len() > 10 && tools.iter().all(|tool| tool["name"] != "move_file"));
    let text = |id: u32| answer(id)["content"][0]["text"].as_str().unwrap();
    let shown = code_span("Not run (outside_workspace)");
    assert!(shown.split('…').all(|part| text(3).contains(part.trim())), "{}", text(3));
    assert!(text(4).starts_with("Not run: pending approval."), "{}", text(4));
    assert!(!text(5).contains("AKIA") && text(5).starts_with("the key is"), "{}", text(5));
    assert!(!home.path().join("other.txt").exists() && !shop.join(".github/workflows/ci.yml").exists());
}

/// The first code span of the README with this beginning.
fn code_span(beginning: &str) -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut words = readme.split('`');
    words.find(|word| word.starts_with(beginning)).unwrap().to_owned()
}

/// Each file and folder of the repository that these pages name exists.
#[test]
fn pages_name_existing_files() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/glossary.md",
        "docs/threat-model.md",
        "docs/failures.md",
    ];
    let mut missing = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let is_ours = |word: &&str| {
            let top =
                ["src/", "crates/", "tests/", "docs/", "benches/", "examples/", "policies/", "schemas/"];
            top.iter().any(|folder| word.starts_with(folder)) && !word.contains(['*', ' ', '<', '…'])
        };
        let named: Vec<&str> = text.split('`').filter(is_ours).collect();
        for name in named.into_iter().filter(|name| !name.contains(char::is_uppercase)) {
            let path = name.split_once(": ").map_or(name, |(path, _)| path);
            if !root().join(path).exists() {
                missing.push(format!("{page}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "these files do not exist:\n{}", missing.join("\n"));
}
