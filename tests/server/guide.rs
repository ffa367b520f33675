//! The clients of the guide for other languages, run as they are printed, and the deployment files.

use std::fs;
use std::path::Path;
use std::process::Command;

use callgate::json::json;

use super::harness::RunningServer;
use crate::fixtures::root;
use crate::packages::{python, run};

/// What every client of the guide prints, with members in the order of the language.
const PRINTED: [&str; 3] =
    ["executed", "suspended \"Refund 250 to ana?\"", "denied \"Customers are never deleted\""];

/// The block of the guide with this file name.
fn block(name: &str) -> String {
    let page = fs::read_to_string(root().join("docs/guides/call-from-any-language.md")).unwrap();
    let (_, block) = page.split_once(&format!(" {name}\n")).unwrap_or_else(|| panic!("no block `{name}`"));
    block.split_once("\n```").unwrap().0.to_owned() + "\n"
}

/// Runs a client against a server with the rules of the guide.
async fn printed(name: &str, command: impl FnOnce(&Path) -> Command + Send + 'static) -> String {
    let server = RunningServer::new(&block("rules.yaml")).await;
    let (url, file) = (format!("http://{}", server.address), server.folder.path().join(name));
    fs::write(&file, block(name)).unwrap();
    let (printed, done) = tokio::task::spawn_blocking(move || {
        run(command(&file).env("CALLGATE_URL", url).env_remove("CALLGATE_TOKEN"), "")
    })
    .await
    .unwrap();
    assert!(done, "{printed}");
    assert_eq!(server.pending().await.len(), 1);
    printed
}

fn check(printed: &str) {
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), PRINTED.len(), "{printed}");
    for (line, expected) in lines.iter().zip(PRINTED) {
        assert!(line.starts_with(expected), "{printed}");
    }
    let output = callgate::json::parse(lines[0].trim_start_matches("executed ")).unwrap();
    assert_eq!(output, json!({ "refunded": 40, "card": "[payment_card]" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn python_client_works_as_printed() {
    let python_client = |file: &Path| {
        let mut command = Command::new("python3");
        command.arg(file);
        command
    };
    let found = printed("client.py", python_client).await;
    check(&found);
    let page = fs::read_to_string(root().join("docs/guides/call-from-any-language.md")).unwrap();
    assert!(page.contains(&found), "the page shows what it prints: {found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn javascript_client_works_as_printed() {
    let node_client = |file: &Path| {
        let mut command = Command::new("node");
        command.arg(file);
        command
    };
    check(&printed("client.mjs", node_client).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn go_client_works_as_printed() {
    let home = tokio::task::spawn_blocking(|| python("go", &root().join("tests/server/go/requirements.txt")));
    let home = home.await.unwrap();
    let go_client = move |file: &Path| {
        let mut command = Command::new(home.join("bin/go"));
        command.arg("run").arg(file).current_dir(file.parent().unwrap());
        command.env("GOCACHE", home.join("cache")).env("GOFLAGS", "-mod=mod").env("GOTOOLCHAIN", "local");
        command.env("HOME", &home);
        command
    };
    check(&printed("client.go", go_client).await);
}

#[test]
fn deployment_files_start_a_server_with_known_options() {
    let text = |name: &str| fs::read_to_string(root().join("examples/server").join(name)).unwrap();
    let unit = text("callgate.service").replace("\\\n", " ");
    let started = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/")).unwrap();
    assert_eq!(crate::docs::command_errors(started), Vec::<String>::new());
    let compose: serde_json::Value = serde_yaml::from_str(&text("compose.yaml")).unwrap();
    let service = &compose["services"]["callgate"];
    let started = format!("callgate {}", service["command"].as_str().unwrap());
    assert_eq!(crate::docs::command_errors(&started), Vec::<String>::new());
    let shared: serde_json::Value = serde_yaml::from_str(&text("compose-postgres.yaml")).unwrap();
    let started = format!("callgate {}", shared["services"]["callgate"]["command"].as_str().unwrap());
    assert_eq!(crate::docs::command_errors(&started), Vec::<String>::new());
    let url = started.split_whitespace().find(|word| word.starts_with("postgres://")).unwrap();
    callgate_postgres::PostgresSettings::parse(url, None).unwrap();
    let shared: serde_json::Value = serde_yaml::from_str(&text("compose-redis.yaml")).unwrap();
    let started = format!("callgate {}", shared["services"]["callgate"]["command"].as_str().unwrap());
    assert_eq!(crate::docs::command_errors(&started), Vec::<String>::new());
    let parts = started.split('"').nth(1).unwrap().split_whitespace();
    let parts = parts.map(|part| part.split_once('=').unwrap().1).collect::<Vec<_>>();
    callgate_postgres::PostgresSettings::parse(parts[0], None).unwrap();
    callgate_redis::RedisSettings::parse(parts[1], None).unwrap();
    assert_eq!(parts[1], parts[2]);
    // The identity file that all name is valid, and compose passes on the variables that it needs.
    let identities = text("identities.yaml");
    for variable in ["BACKEND_TOKEN", "ANN_TOKEN"] {
        assert!(
            identities.contains(variable) && service["environment"].get(variable).is_some(),
            "{variable}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("identities.yaml");
    let digests = identities.replace("env: BACKEND_TOKEN", &format!("sha256: {}", "a".repeat(64)));
    fs::write(&file, digests.replace("env: ANN_TOKEN", &format!("sha256: {}", "b".repeat(64)))).unwrap();
    callgate_http::IdentityFile::open(&file).unwrap();
}
