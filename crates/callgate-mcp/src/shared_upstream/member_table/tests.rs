use super::*;
use crate::upstream_event::UpstreamEvent;

fn request(method: &str) -> JsonRpcMessage {
    JsonRpcMessage::request(&RequestId::from_text("1"), method, json!({ "_meta": { "progressToken": 7 } }))
}

fn texts(queue: &mut mpsc::Receiver<UpstreamEvent>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Ok(event) = queue.try_recv() {
        texts.push(match event {
            UpstreamEvent::Message { message, .. } => message.to_string(),
            other => format!("{other:?}"),
        });
    }
    texts
}

#[test]
fn a_client_that_reads_nothing_is_disconnected_and_others_are_not() {
    let mut table = MemberTable::default();
    let (queue, mut slow) = mpsc::channel(1);
    let slow_id = table.add_member(queue);
    let (queue, mut other) = mpsc::channel(8);
    table.add_member(queue);
    let id = RequestId::from_text("1");
    let pending = table.register(slow_id, &id, request("tools/call")).unwrap();
    for _ in 0..3 {
        table.deliver_notification(JsonRpcMessage::notification(method::TOOLS_CHANGED, json!({})), None);
    }
    assert_eq!((texts(&mut slow).len(), texts(&mut other).len()), (1, 3));
    assert!(table.register(slow_id, &id, request("tools/call")).is_none(), "it is not connected");
    let response = JsonRpcMessage::response(pending.id().unwrap(), json!({}));
    table.deliver_response(pending.id().unwrap(), response, |message, _| UpstreamEvent::Message {
        message,
        about: None,
    });
    assert_eq!(texts(&mut other), Vec::<String>::new(), "nobody gets a response to somebody else");
}

#[test]
fn a_server_reaches_only_clients_with_a_request_of_the_id_that_it_names() {
    let mut table = MemberTable::default();
    let (queue, mut one) = mpsc::channel(8);
    let member = table.add_member(queue);
    let id = RequestId::from_text("1");
    let sent = table.register(member, &id, request("subscriptions/listen")).unwrap();
    let progress = |token: Value| {
        JsonRpcMessage::notification("notifications/progress", json!({ "progressToken": token }))
    };
    // The client's own token and id mean nothing at the server.
    for token in [json!(7), json!("1"), json!("callgate-99"), Value::Null] {
        table.deliver_notification(progress(token), None);
    }
    assert_eq!(texts(&mut one), Vec::<String>::new());
    table.deliver_notification(progress(sent.id().unwrap().to_json()), None);
    assert!(texts(&mut one)[0].contains(r#""progressToken":7"#));
    let params = json!({ "_meta": { META_SUBSCRIPTION: sent.id().unwrap().to_json() } });
    table.deliver_notification(JsonRpcMessage::notification(method::TOOLS_CHANGED, params), None);
    let heard = texts(&mut one);
    assert!(heard.len() == 1 && heard[0].contains(&format!("{META_SUBSCRIPTION}\":\"1\"")), "{heard:?}");
    table.withdraw(member, &id);
    table.deliver_notification(progress(sent.id().unwrap().to_json()), None);
    assert_eq!(texts(&mut one), Vec::<String>::new());
}

#[test]
fn capabilities_that_concern_other_clients_are_not_declared() {
    let capabilities = json!({ "tools": {}, "logging": {}, "tasks": {}, "resources": { "subscribe": true, "listChanged": true } });
    let mut response =
        JsonRpcMessage::response(&RequestId::from_text("1"), json!({ "capabilities": capabilities }));
    remove_unshared_capabilities(&mut response);
    let shared = json!({ "capabilities": { "tools": {}, "resources": { "listChanged": true } } });
    assert_eq!(response.result_value(), Some(&shared));
}
