//! The shipped bundle against leaks of personal data and secrets, over its sample calls.

use callgate::Engine;
use callgate::call::{CallRecord, Outcome, OutcomeKind};
use callgate::json::{Value, json};

use crate::recorded_calls::{engine, play, project, records};

const BUNDLE: &str = "policies/pii";

fn samples() -> Vec<CallRecord> {
    records(&std::fs::read_to_string(project("policies/pii/calls.jsonl")).unwrap())
}

fn call(engine: &Engine, tool: &str, input: Value) -> Outcome {
    let line = json!({ "id": "c", "tool": tool, "input": input }).to_string();
    play(&mut engine.session(), &records(&line)).remove(0)
}

#[test]
fn sample_calls_match_snapshot() {
    let mut shown = String::new();
    for outcome in play(&mut engine(BUNDLE).session(), &samples()) {
        let mut value = callgate::json::to_value(&outcome).unwrap();
        let members = value.as_object_mut().unwrap();
        members.retain(|name, value| {
            ["id", "tool", "outcome", "input", "output", "error", "reason"].contains(&name.as_str())
                && !value.is_null()
        });
        shown.push_str(&callgate::json::to_string_pretty(&value).unwrap());
        shown.push('\n');
    }
    for secret in [
        "AKIAIOSFODNN7EXAMPLE",
        "s3cr3t-pw",
        "4111 1111",
        "4111-1111",
        "3704 0044",
        "ana.silva@",
        "555 2671",
        "536-90",
        "943 476",
        "eyJhbGci",
        "not really one",
        "hunter22",
    ] {
        assert!(!shown.contains(secret), "{secret} is shown in\n{shown}");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/pii");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("samples", shown));
}

#[test]
fn sending_tools_are_recognized_by_name() {
    let engine = engine(BUNDLE);
    let secret = || json!({ "text": ["see", { "key": "-----BEGIN PRIVATE KEY-----" }] });
    for tool in [
        "send",
        "sendEmail",
        "send_email",
        "gmail.send",
        "crm/sendMessage",
        "bulkSend",
        "postTweet",
        "post",
        "api.post",
        "publish-page",
        "uploadFile",
        "s3_put_object",
        "http",
        "httpRequest",
        "web_fetch",
        "webhook",
        "createEmailDraft",
        "slack",
        "sms_notify",
        "forwardMail",
        "replyToReview",
        "SEND_MAIL",
    ] {
        assert_eq!(call(&engine, tool, secret()).outcome, OutcomeKind::Denied, "{tool}");
    }
    for tool in [
        "query_postgres",
        "read_file",
        "compost",
        "composter",
        "resender",
        "computeSum",
        "sender_stats",
        "store_secret",
    ] {
        assert_eq!(call(&engine, tool, secret()).outcome, OutcomeKind::Executed, "{tool}");
    }
}

#[test]
fn values_that_only_resemble_secrets_are_allowed() {
    let engine = engine(BUNDLE);
    for text in [
        "order #W2378156 of 2026-01-05, item 1151293680, total 1819.92",
        "tracking id 843053632392",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "see https://example.com:8443/a@b?x=1 and mail bob@example.com",
        "risk-management-framework-2024",
        "the BEGIN PRIVATE KEY header",
        "call +1 415 555 2671",
    ] {
        let outcome = call(&engine, "send_message", json!({ "text": text, "retries": 3, "to": null }));
        assert_eq!(outcome.outcome, OutcomeKind::Executed, "{text}: {}", outcome.reason.message);
    }
}
