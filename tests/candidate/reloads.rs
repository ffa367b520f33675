//! Candidate rules reload like active ones, and those that can't be used leave everything as it was.

use std::fs;

use callgate::json::json;
use callgate::reload::{ReloadResult, Reloader};
use callgate::{Candidate, CandidateOptions, Engine, ToolCall, load_text};

use super::{CountedEcho, Differences};

fn deny(tool: &str) -> String {
    format!("reload: {{ widening: confirm }}\npolicies: [ {{ id: no-{tool}, match: {tool}, deny: {{}} }} ]")
}

#[tokio::test]
async fn new_candidate_rules_apply_to_later_calls_and_invalid_ones_to_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("candidate.yaml");
    fs::write(&file, "policies: [ { id: broken").unwrap();
    let candidate = Candidate::unloaded(CandidateOptions::default()).unwrap();
    let seen = Differences::default();
    let engine = Engine::builder(load_text("policies: []").unwrap());
    let engine = engine.candidate(&candidate).observer(seen.clone()).build();
    let (revision, mut session) = (engine.revision(), engine.session());
    let mut reloader = Reloader::for_candidate(&candidate, [file.clone()]);
    let mut differences = async |text: Option<&str>| {
        let result = text.map(|text| {
            fs::write(&file, text).unwrap();
            reloader.reload()
        });
        let call = ToolCall::new("c", "mail", json!({}));
        session.execute(call, &CountedEcho::default()).await;
        candidate.finish();
        let lines = seen.take();
        let lines = lines.iter().map(|line| line.split(" {").next().unwrap().to_owned());
        (result, lines.collect::<Vec<_>>())
    };
    let denied = "c stricter run→deny no-mail/denied".to_owned();
    assert_eq!(differences(None).await, (None, vec![]));
    let (result, lines) = differences(Some("policies: [ { id: broken")).await;
    assert_eq!((result, &lines[..]), (Some(ReloadResult::Rejected), &["rules Rejected".to_owned()][..]));
    let (result, lines) = differences(Some(&deny("mail"))).await;
    assert_eq!(result, Some(ReloadResult::Applied));
    assert_eq!(lines, ["rules Applied".to_owned(), denied.clone()]);
    let (result, lines) = differences(Some("policies: [ { id: again-broken")).await;
    assert_eq!(result, Some(ReloadResult::Rejected));
    assert_eq!(lines, ["rules Rejected".to_owned(), denied]);
    // They allow more than the candidate before, and permit nothing: nobody has to confirm them.
    let (result, lines) = differences(Some(&deny("other"))).await;
    assert_eq!((result, &lines[..]), (Some(ReloadResult::Applied), &["rules Applied".to_owned()][..]));
    assert_eq!(engine.revision(), revision);
    assert!(engine.status().last_rejected.is_none());
}

#[tokio::test]
async fn a_session_that_is_older_than_the_candidate_is_not_judged_by_what_it_lacks() {
    let rules = "policies: [ { id: first-look, match: { tool: mail, where: { not: { path: '$.session.labels[*]', eq: looked } } }, deny: {} }, { id: looked, match: look, label: { add: [looked] } }, { id: no-rm, match: rm, deny: {} } ]";
    let active = "policies: [ { id: looked, match: look, label: { add: [looked] } } ]";
    let candidate = Candidate::unloaded(CandidateOptions::default()).unwrap();
    let seen = Differences::default();
    let engine = Engine::builder(load_text(active).unwrap());
    let engine = engine.candidate(&candidate).observer(seen.clone()).build();
    let tools = CountedEcho::default();
    let mut old = engine.session();
    old.execute(ToolCall::new("c1", "look", json!({})), &tools).await;
    candidate.finish();
    candidate.engine().replace(load_text(rules).unwrap());
    old.execute(ToolCall::new("c2", "mail", json!({})), &tools).await;
    old.execute(ToolCall::new("c3", "rm", json!({})), &tools).await;
    let mut new = engine.session();
    new.execute(ToolCall::new("c4", "mail", json!({})), &tools).await;
    candidate.finish();
    let lines = seen.take();
    let expected = ["c3 stricter run→deny no-rm/denied", "c4 stricter run→deny first-look/denied"];
    assert_eq!(lines[1..], expected);
    assert_eq!(candidate.summary().not_compared, 1);
}
