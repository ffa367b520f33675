//! The approvals page in Chromium: keyboard, live updates, hostile texts, accessibility.

use std::process::Command;

use callgate::json::{self, Value, json};

use super::harness::{RunningServer, call};
use crate::fixtures::root;
use crate::packages;

const RULES: &str = "policies:
  - id: ask
    match: pay
    approval: { message: 'Pay for {{ input.note }}?', expires: 1h, edits: [ $.input.note ] }
";

/// The browser: that of the machine, installed from Debian's packages if it is missing.
fn chromium() -> String {
    let path = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
    if !std::path::Path::new(&path).exists() {
        packages::installed("chromium", "debian chromium", |_| {
            let mut update = Command::new("apt-get");
            update.args(["update", "-qq"]);
            let mut install = Command::new("apt-get");
            install.args(["install", "-y", "-qq", "chromium"]).env("DEBIAN_FRONTEND", "noninteractive");
            packages::install(&mut [update, install]);
        });
    }
    path
}

/// Runs a script that drives the browser, and returns what it has found.
pub async fn run_script(name: &'static str, arguments: Vec<String>) -> Value {
    let folder = root().join("tests/server/approvals_page");
    let (printed, done) = tokio::task::spawn_blocking(move || {
        let home = packages::node("approvals-page", &folder);
        std::fs::copy(folder.join(name), home.join(name)).unwrap();
        let mut command = Command::new("node");
        packages::run(command.arg(home.join(name)).args(arguments).env("CHROMIUM", chromium()), "")
    })
    .await
    .unwrap();
    assert!(done, "{printed}");
    json::parse(printed.lines().last().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvers_use_the_page_with_keyboard_and_phone() {
    let server = RunningServer::new(RULES).await;
    let hostile = "<img src=x onerror=\"window.injected=true\"><b>bold</b> \u{202e}tner";
    server
        .post("/v1/calls", &call("c1", "pay", json!({ "note": hostile, "amount": 12345678901234567890_u64 })))
        .await;
    server.post("/v1/calls", &call("c2", "pay", json!({ "note": "rent", "amount": 5 }))).await;
    for id in ["c3", "c4"] {
        server.post("/v1/calls", &call(id, "pay", json!({ "note": id, "amount": 6 }))).await;
    }
    let found =
        run_script("check.mjs", vec![format!("http://{}", server.address), server.token.clone()]).await;
    let printed = found.to_string();
    assert_eq!(found["errors"], json!([]), "{printed}");
    assert_eq!(found["violations"], json!([]), "{printed}");
    assert_eq!(found["overflow"], json!([]), "{printed}");
    assert_eq!(
        (&found["requests"], &found["live"], &found["signedOut"]),
        (&json!(4), &json!(3), &json!(true))
    );
    assert_eq!((&found["selected"], &found["afterBack"]), (&json!("2 requests selected"), &json!(2)));
    let listed = found["bulk"].as_str().unwrap();
    assert!(listed.contains("c3") && listed.contains("c4"), "{listed}");
    let together = server.post("/v1/calls", &call("c4", "pay", json!({ "note": "c4", "amount": 6 }))).await;
    assert_eq!(together.body["outcome"]["outcome"], "denied", "{together:?}");
    assert!(together.body["outcome"]["reason"]["message"].as_str().unwrap().contains("budget is used up"));
    assert_eq!(found["injected"], false);
    let text = found["text"].as_str().unwrap();
    assert!(
        text.contains("<b>bold</b>") && text.contains("\\u{202e}") && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(text.contains("12345678901234567890"), "every digit is shown: {text}");
    let dialog = found["dialog"].as_str().unwrap();
    assert!(dialog.contains("12345678901234567890") && dialog.contains("<b>bold</b>"), "{dialog}");
    assert!(dialog.contains("\\u{202e}") && !dialog.contains('\u{202e}'), "{dialog}");
    let edited = server.post("/v1/calls", &call("c2", "pay", json!({ "note": "rent", "amount": 5 }))).await;
    assert_eq!(edited.body["executions"][0]["input"]["note"], "late rent", "{edited:?}");
    let denied = server
        .post("/v1/calls", &call("c1", "pay", json!({ "note": hostile, "amount": 12345678901234567890_u64 })))
        .await;
    assert!(denied.body["outcome"]["reason"]["message"].as_str().unwrap().contains("too much"), "{denied:?}");
}
