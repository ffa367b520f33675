//! The JSON payload that is sent with a card.

use callgate::card::{CardLabels, MAX_PAYLOAD_BYTES, PAYLOAD_KEY, Payload, PayloadError};
use callgate::json::{Value, json};
use callgate::message::RequestPart;
use proptest::prelude::*;

fn valid() -> Value {
    json!({"toolApproval": {"version": 1, "approvalId": "approval_c1", "toolCallId": "c1"}})
}

#[test]
fn invalid_payloads_report_the_member() {
    for (key, value, error) in [
        ("version", json!(2), "approval payload version 2 is not supported, only 1; post the card again"),
        ("version", json!("1"), "`toolApproval.version` must be a number, it is a string"),
        ("approvalId", json!(7), "`toolApproval.approvalId` must be a string, it is a number"),
        ("toolName", Value::Null, "`toolApproval.toolName` must be a string, it is null"),
        ("policies", json!("p"), "`toolApproval.policies` must be an array of strings, it is a string"),
        ("policies", json!(["p", 1]), "`toolApproval.policies[1]` must be a string, it is a number"),
        ("card", json!([]), "`toolApproval.card` must be an object, it is an array"),
        ("card", json!({"approve": 1}), "`toolApproval.card.approve` must be a string, it is a number"),
        ("card", json!({"maybe": "x"}), "`toolApproval.card.maybe` is not a known member"),
        ("expires", json!("x"), "`toolApproval.expires` is not a known member"),
    ] {
        let mut payload = valid();
        payload[PAYLOAD_KEY][key] = value;
        assert_eq!(Payload::from_json(&payload).unwrap_err().to_string(), error);
    }
    for key in ["version", "approvalId", "toolCallId"] {
        let mut payload = valid();
        payload[PAYLOAD_KEY].as_object_mut().unwrap().remove(key);
        assert_eq!(
            Payload::from_json(&payload).unwrap_err().to_string(),
            format!("`toolApproval.{key}` is missing")
        );
    }
    assert_eq!(Payload::from_json(&json!({"other": 1})), Err(PayloadError::Missing));
    assert_eq!(
        Payload::from_json(&json!({"toolApproval": 5})).unwrap_err().to_string(),
        "`toolApproval` must be an object, it is a number"
    );
    assert!(matches!(Payload::parse("{"), Err(PayloadError::InvalidJson(_))));
    let doubled = r#"{"toolApproval": {"version": 1, "version": 1, "approvalId": "a", "toolCallId": "c"}}"#;
    assert!(matches!(Payload::parse(doubled), Err(PayloadError::InvalidJson(_))));
}

#[test]
fn oversized_payloads_are_rejected() {
    let of = |input: Value| {
        Payload::from_request(RequestPart {
            input: Some(input),
            ..Payload::from_json(&valid()).unwrap().request
        })
    };
    let large = "x".repeat(MAX_PAYLOAD_BYTES);
    assert!(matches!(of(json!(large)).to_json(), Err(PayloadError::TooLong { .. })));
    let mut payload = valid();
    payload[PAYLOAD_KEY]["input"] = large.clone().into();
    assert!(matches!(Payload::from_json(&payload), Err(PayloadError::TooLong { .. })));
    assert!(matches!(Payload::parse(&payload.to_string()), Err(PayloadError::TooLong { .. })));
    let deep = (0..1000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    assert_eq!(of(deep.clone()).to_json(), Err(PayloadError::TooDeep));
    let mut payload = valid();
    payload[PAYLOAD_KEY].as_object_mut().unwrap().insert("input", deep);
    assert_eq!(Payload::from_json(&payload), Err(PayloadError::TooDeep));
    let beside = json!({"text": large, PAYLOAD_KEY: valid()[PAYLOAD_KEY]});
    assert!(Payload::from_json(&beside).is_ok(), "other members of the host do not count");
}

fn maybe() -> impl Strategy<Value = Option<String>> {
    prop::option::of("\\PC{0,12}|[\\\\\"\n\u{202e}]{0,3}")
}

fn input() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(prop_oneof![
        Just(Value::Null),
        Just(callgate::json::from_str("{\"n\": 1.50, \"big\": 9007199254740993}").unwrap()),
        "\\PC{0,12}".prop_map(Value::from),
    ])
}

proptest! {
    #[test]
    fn payloads_round_trip(
        ids in ("\\PC{0,12}", "\\PC{0,12}"), input in input(), texts in prop::collection::vec(maybe(), 10),
        repeats in prop::option::of(0..9u64),
        policies in prop::collection::vec("[a-z]{0,4}", 0..3), relevant in prop::collection::vec("/[a-z]{0,4}", 0..3),
    ) {
        let [tool_name, message, expires_at, input_digest, approval_token, conversation, server, title, approve, deny] =
            texts.try_into().unwrap();
        let request = RequestPart {
            approval_id: ids.0, tool_call_id: ids.1, tool_name, input, message, policies, expires_at, input_digest, approval_token,
            server, relevant, repeats, card: CardLabels { title, approve, deny },
        };
        let payload = Payload { request, conversation };
        let written = payload.to_json().unwrap();
        prop_assert_eq!(Payload::from_json(&written).unwrap(), payload.clone());
        prop_assert_eq!(Payload::parse(&written.to_string()).unwrap(), payload);
    }
}
