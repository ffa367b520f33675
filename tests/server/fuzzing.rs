//! Generated requests by schemathesis, from the OpenAPI document: every response is one that the document names, and nothing crashes.

use std::process::Command;

use super::harness::RunningServer;
use crate::packages::{python, run};

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } }
  - { id: no, match: { tool: drop, where: [ { path: $.input.table, matches: '^prod' } ] }, deny: {} }
  - { id: some, match: '*', rate_limit: { limit: 50, per: 1h, key: $.tool } }
  - { id: cards, match: '*', redact: { detect: [payment_card] } }
";

#[tokio::test(flavor = "multi_thread")]
async fn every_response_is_as_the_openapi_document_says() {
    let here = crate::fixtures::root().join("tests/server/schemathesis");
    let home = python("schemathesis", &here.join("requirements.txt"));
    let server = RunningServer::new(RULES).await;
    let (address, token) = (server.address.clone(), server.token.clone());
    let (printed, accepted) = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(home.join("bin/st"));
        command.arg("--config-file").arg(here.join("schemathesis.toml"));
        command.args([
            "run",
            &format!("http://{address}/openapi.json"),
            "--max-examples",
            "25",
            "--seed",
            "1",
        ]);
        command.args(["--header", &format!("Authorization: Bearer {token}"), "--no-color"]);
        run(command.current_dir(server.folder.path()), "")
    })
    .await
    .unwrap();
    assert!(accepted, "{printed}");
}
