//! Routing of a clicked button's action id to its approval request.

use callgate::card::{
    ActionId, Choice, MAX_ACTION_BYTES, Payload, RouteError, route_action, route_action_with_payload,
};
use callgate::json::json;
use callgate::message::{
    Dialect, History, Message, Part, RequestPart, ResultOutput, ResultPart, ResultStatus, Role,
};
use proptest::prelude::*;

fn request(approval_id: &str, call: &str) -> RequestPart {
    RequestPart {
        approval_id: approval_id.to_owned(),
        tool_call_id: call.to_owned(),
        approval_token: Some("token".to_owned()),
        ..RequestPart::default()
    }
}

fn history(requests: &[(&str, &str)]) -> History {
    let parts = requests.iter().flat_map(|(approval, call)| {
        [Part::call(*call, "refund", json!({})), request(approval, call).into()]
    });
    History::new(vec![Message::new(Role::Assistant, parts.collect())])
}

fn click(choice: Choice, approval_id: &str) -> ActionId {
    ActionId::new(choice, approval_id)
}

#[test]
fn click_resolves_to_its_approval_request_with_its_token() {
    let long = "approval_".to_owned() + &"x".repeat(300);
    for approval_id in ["approval_c1", long.as_str(), "approval_a:b", "approval_ü", ""] {
        let history = history(&[("approval_other", "c0"), (approval_id, "c1")]);
        for (choice, approved) in [(Choice::Approve, true), (Choice::Deny, false)] {
            let text = click(choice, approval_id).to_string();
            let routed = route_action(&text.parse().unwrap(), &history).unwrap();
            assert_eq!((routed.choice, routed.response.approved), (choice, approved));
            assert_eq!(routed.request.tool_call_id, "c1");
            assert_eq!(routed.response.approval_id, approval_id);
            assert_eq!(routed.response.approval_token.as_deref(), Some("token"));
            let by_payload = route_action_with_payload(
                &text.parse().unwrap(),
                &Payload::from_request(request(approval_id, "c1")),
            );
            assert_eq!(by_payload, Ok(routed));
        }
    }
}

#[test]
fn invalid_clicks_report_the_reason() {
    let action = click(Choice::Approve, "approval_c1");
    let error = |history: &History| route_action(&action, history).unwrap_err();
    assert_eq!(
        error(&history(&[("approval_c2", "c2")])).to_string(),
        "this history has no approval request `approval_c1`"
    );
    assert!(matches!(
        error(&history(&[("approval_c1", "c1"), ("approval_c1", "c2")])),
        RouteError::Ambiguous { .. }
    ));
    let mut answered = history(&[("approval_c1", "c1")]);
    answered.append_approval_response(route_action(&action, &answered).unwrap().response).unwrap();
    assert_eq!(error(&answered).to_string(), "`approval_c1` was already approved");
    answered.push(Message::new(
        Role::Tool,
        vec![Part::result(ResultPart {
            call_id: "c1".to_owned(),
            name: "refund".to_owned(),
            output: ResultOutput::Text("done".to_owned()),
            status: ResultStatus::Output,
        })],
    ));
    assert_eq!(error(&answered).to_string(), "the call of `approval_c1` already has a result");
    let other =
        route_action_with_payload(&action, &Payload::from_request(request("approval_c2", "c2"))).unwrap_err();
    assert_eq!(other.to_string(), "the action is for `approval_c1`, but its payload is for `approval_c2`");
}

#[test]
fn provider_hosted_approval_is_answered_once() {
    let mut history = History::read(
        Dialect::OpenaiResponses,
        &json!([{"type": "mcp_approval_request", "id": "mcpr_1", "name": "refund", "arguments": "{}", "server_label": "pay"}]),
    )
    .unwrap();
    let action = click(Choice::Deny, "mcpr_1");
    history.append_approval_response(route_action(&action, &history).unwrap().response).unwrap();
    assert_eq!(route_action(&action, &history).unwrap_err().to_string(), "`mcpr_1` was already denied");
}

#[test]
fn ignores_foreign_actions_and_rejects_malformed_ones() {
    for other in ["", "open-settings", "mcp-approval:approve:c1", "Tool-approval:approve:c1", "tool-approval"]
    {
        assert_eq!(ActionId::parse(other), Ok(None), "{other}");
        assert!(other.parse::<ActionId>().unwrap_err().to_string().contains("is not an approval action"));
    }
    let long = format!("tool-approval:deny:{}", "x".repeat(60));
    let upper = format!("tool-approval:deny:~{}", "A".repeat(40));
    for (broken, error) in [
        ("tool-approval:maybe:c1", "`maybe` is not an approval choice"),
        ("tool-approval:", "`` is not an approval choice"),
        ("tool-approval:approve", "the approval id is missing: add it after `tool-approval:approve:`"),
        ("tool-approval:deny:", "the approval id is missing"),
        ("tool-approval:deny:a b", "`a b` is not valid in an action"),
        ("tool-approval:deny:a:b", "`a:b` is not valid in an action"),
        ("tool-approval:deny:~12", "`~12` is not valid in an action"),
        (upper.as_str(), "is not valid in an action"),
        (long.as_str(), "is not valid in an action"),
    ] {
        let message = ActionId::parse(broken).unwrap_err().to_string();
        assert!(message.contains(error), "{broken}: {message}");
    }
}

proptest! {
    #[test]
    fn action_id_is_short_and_matches_only_its_approval(one in "\\PC{0,80}|[a-zA-Z0-9_.~-]{0,60}", other in "[a-z~]{0,50}") {
        let action = click(Choice::Approve, &one);
        let text = action.to_string();
        prop_assert!(text.len() <= MAX_ACTION_BYTES, "{text}");
        prop_assert_eq!(ActionId::parse(&text).unwrap().unwrap(), action.clone());
        prop_assert!(action.matches(&one));
        prop_assert_eq!(action.matches(&other), one == other);
        // The key that replaces a long approval id in an action id does not match as an approval id.
        let key = action.key().to_owned();
        prop_assert_eq!(click(Choice::Approve, &key) == action, key == one);
    }
}
