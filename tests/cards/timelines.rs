//! Timelines of conversations: messages, calls and approvals in order.

use std::collections::BTreeMap;

use callgate::card::{TimelineEntry, TimelineStatus, TimelineSubject, timeline};
use callgate::json::{Value, json};
use callgate::message::{Dialect, History, PartPosition};
use proptest::prelude::*;

use crate::dialects::{corpus, generated};

fn shown(entry: &TimelineEntry<'_>) -> String {
    let status =
        |status: &TimelineStatus| callgate::json::to_value(status).unwrap().as_str().unwrap().to_owned();
    match &entry.subject {
        TimelineSubject::Message { role, parts } => format!("{} said {} parts", role.name(), parts.len()),
        TimelineSubject::Call { call, status: of, .. } => format!("{} {}", call.id, status(of)),
        TimelineSubject::Approval { call, request, responses, status: of, .. } => {
            let call = call.map_or("hosted", |call| call.id.as_str());
            format!("{call} by {} with {} answers {}", request.approval_id, responses.len(), status(of))
        }
        TimelineSubject::Request(request) => format!("request {}", request.approval_id),
        TimelineSubject::Response(response) => format!("response {}", response.approval_id),
        TimelineSubject::Result(result) => format!("result {}", result.call_id),
    }
}

fn read(history: &Value) -> Vec<String> {
    let history = History::read(Dialect::AiSdk, history).unwrap();
    timeline(&history).iter().map(shown).collect()
}

fn call(id: &str) -> Value {
    json!({"type": "tool-call", "toolCallId": id, "toolName": "refund", "input": {}})
}

fn request(id: &str) -> Value {
    json!({"type": "tool-approval-request", "approvalId": format!("approval_{id}"), "toolCallId": id})
}

fn response(id: &str, approved: bool) -> Value {
    json!({"type": "tool-approval-response", "approvalId": format!("approval_{id}"), "approved": approved})
}

fn result(id: &str, kind: &str) -> Value {
    json!({"type": "tool-result", "toolCallId": id, "toolName": "refund", "output": {"type": kind, "value": "x"}})
}

#[test]
fn each_approval_is_one_entry_at_its_call() {
    let history = json!([
        {"role": "user", "content": "refund both"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Asking."}, call("c1"), request("c1"), call("c2"), request("c2"),
            {"type": "text", "text": "Please decide."}, call("c3")]},
        {"role": "tool", "content": [response("c1", true), result("c3", "text"), result("c1", "text")]},
        {"role": "tool", "content": [response("c2", false), result("c2", "execution-denied")]},
        {"role": "assistant", "content": "Done."}
    ]);
    assert_eq!(
        read(&history),
        [
            "user said 1 parts",
            "assistant said 1 parts",
            "c1 by approval_c1 with 1 answers executed",
            "c2 by approval_c2 with 1 answers denied",
            "assistant said 1 parts",
            "c3 executed",
            "assistant said 1 parts",
        ]
    );
}

#[test]
fn status_reports_the_final_outcome_of_a_call() {
    let answer = |extra: Value| {
        let mut answer = response("c", true);
        answer.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        answer
    };
    for (requested, then, status) in [
        (true, vec![], "pending"),
        (true, vec![response("c", true)], "answered"),
        (true, vec![response("c", false)], "denied"),
        (true, vec![answer(json!({"cancel": true}))], "denied"),
        (true, vec![response("c", true), result("c", "text")], "executed"),
        (true, vec![response("c", true), result("c", "error-text")], "failed"),
        (true, vec![answer(json!({"output": 7})), result("c", "text")], "answered"),
        // Dialects without a representation of denials write them as plain results.
        (true, vec![response("c", false), result("c", "text")], "denied"),
        (true, vec![response("c", false), response("c", true), result("c", "text")], "denied"),
        (true, vec![result("c", "text")], "unknown"),
        (true, vec![result("c", "execution-denied")], "denied"),
        (false, vec![], "unknown"),
        (false, vec![result("c", "text")], "executed"),
        (false, vec![result("c", "error-text")], "failed"),
        (false, vec![result("c", "execution-denied")], "denied"),
    ] {
        let content = if requested { vec![call("c"), request("c")] } else { vec![call("c")] };
        let history = json!([{"role": "assistant", "content": content}, {"role": "tool", "content": then}]);
        let entries = read(&history);
        assert_eq!(entries.len(), 1, "{history}");
        assert!(entries[0].ends_with(status), "{history}: {entries:?}");
    }
}

#[test]
fn unmatched_parts_are_separate_entries() {
    let history = json!([
        {"role": "assistant", "content": [call("c1"), request("c1"), request("c9")]},
        {"role": "tool", "content": [result("c8", "text"), result("c1", "text"), response("c1", true), response("c7", true)]}
    ]);
    assert_eq!(
        read(&history),
        [
            "c1 by approval_c1 with 0 answers unknown",
            "request approval_c9",
            "result c8",
            "response approval_c1",
            "response approval_c7",
        ]
    );
}

#[test]
fn provider_hosted_approval_includes_its_response() {
    let history = History::read(
        Dialect::OpenaiResponses,
        &json!([
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "refund", "arguments": "{}", "server_label": "pay"},
            {"type": "mcp_approval_request", "id": "mcpr_2", "name": "refund", "arguments": "{}", "server_label": "pay"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true}
        ]),
    )
    .unwrap();
    let entries: Vec<String> = timeline(&history).iter().map(shown).collect();
    assert_eq!(
        entries,
        ["hosted by mcpr_1 with 1 answers answered", "hosted by mcpr_2 with 0 answers pending"]
    );
}

fn assert_each_part_once(history: &History) {
    let mut seen: BTreeMap<PartPosition, usize> = BTreeMap::new();
    for (message, of) in history.messages().iter().enumerate() {
        seen.extend((0..of.parts().len()).map(|part| (PartPosition { message, part }, 0)));
    }
    let entries = timeline(history);
    for place in entries.iter().flat_map(|entry| &entry.positions) {
        *seen.get_mut(place).expect("a position in the history") += 1;
    }
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    // Text never moves behind a later message.
    let positions: Vec<PartPosition> = entries
        .iter()
        .filter(|entry| {
            matches!(entry.subject, TimelineSubject::Message { .. } | TimelineSubject::Call { .. })
        })
        .map(|entry| entry.positions[0])
        .collect();
    assert!(positions.is_sorted(), "{positions:?}");
}

#[test]
fn every_part_of_the_corpus_is_in_exactly_one_entry() {
    for (dialect, _, document) in corpus() {
        assert_each_part_once(&History::read(dialect, &document).unwrap());
    }
}

proptest! {
    #[test]
    fn every_part_of_a_generated_history_is_in_exactly_one_entry(history in generated::history()) {
        assert_each_part_once(&history);
    }
}
