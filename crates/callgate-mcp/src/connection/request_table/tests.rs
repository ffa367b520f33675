use callgate::json::json;

use super::*;

fn id(text: &str) -> RequestId {
    RequestId::from_text(text)
}

fn request(text: &str, params: Value) -> JsonRpcMessage {
    JsonRpcMessage::request(&id(text), "tools/call", params)
}

#[test]
fn an_id_in_use_is_replaced_and_its_response_gets_the_original_back() {
    let table = RequestTable::new();
    let (first, second) = (table.add_server_request(0, &id("1")), table.add_server_request(1, &id("1")));
    assert_eq!(first, id("1"));
    assert_ne!(second, id("1"));
    for (sent_as, server) in [(second, 1), (first, 0)] {
        let receiver = table.take_response_receiver(&sent_as);
        assert!(matches!(receiver, Some(ClientResponseReceiver::Server(index, original))
                if index == server && original == id("1")));
        assert!(table.take_response_receiver(&sent_as).is_none(), "a request has one response");
    }
}

#[test]
fn both_directions_may_use_the_same_id() {
    let table = RequestTable::new();
    let (sender, _messages) = ClientSender::new();
    assert!(table.add(&id("1"), &request("1", json!({})), &sender).is_some());
    assert_eq!(table.add_server_request(0, &id("1")), id("1"));
    assert!(table.add(&id("1"), &request("1", json!({})), &sender).is_none(), "it is still pending");
    assert!(table.remove(&id("1")).is_empty());
    assert!(table.add(&id("1"), &request("1", json!({})), &sender).is_some());
}

#[test]
fn new_ids_differ_between_connections() {
    let (one, other) = (RequestTable::new(), RequestTable::new());
    assert_ne!(one.new_id(), one.new_id());
    assert_ne!(one.new_id(), other.new_id());
    assert_ne!(one.new_call_id(), one.new_call_id());
}

#[test]
fn a_cancellation_reaches_all_servers_of_its_request() {
    let table = RequestTable::new();
    let (sender, _messages) = ClientSender::new();
    let cancelled = table.add(&id("1"), &request("1", json!({})), &sender).unwrap();
    table.add(&id("2"), &request("2", json!({})), &sender).unwrap();
    assert!(table.record_sent(&id("1"), 0, &id("1")));
    assert!(table.record_sent(&id("1"), 2, &id("own")));
    assert!(table.record_sent(&id("2"), 1, &id("2")));
    table.cancel(&id("1"));
    assert!(*cancelled.borrow());
    assert_eq!(table.sent_to(&id("1")), [(0, id("1")), (2, id("own"))]);
    assert!(!table.record_sent(&id("1"), 1, &id("1")), "a cancelled request is not sent");
    assert!(table.is_busy(), "the other request is pending");
    assert_eq!(table.remove(&id("2")), [(1, id("2"))]);
    assert!(!table.is_busy(), "a cancelled request does not count");
    assert!(table.record_sent(&id("unknown"), 0, &id("unknown")), "a request of the gateway");
}

#[tokio::test]
async fn errors_of_cancelled_requests_are_not_sent() {
    let table = RequestTable::new();
    let (sender, mut messages) = ClientSender::new();
    for text in ["1", "2"] {
        table.add(&id(text), &request(text, json!({})), &sender).unwrap();
    }
    table.cancel(&id("1"));
    table.respond_with_error(&id("1"), &sender, "lost").await;
    table.respond_with_error(&id("2"), &sender, "lost").await;
    assert_eq!(messages.try_recv().unwrap().id(), Some(&id("2")));
    assert!(messages.try_recv().is_err());
}

#[tokio::test]
async fn messages_go_to_the_request_that_they_belong_to() {
    let table = RequestTable::new();
    let (general, general_messages) = ClientSender::new();
    let (one, mut messages_of_one) = ClientSender::new();
    let (other, mut messages_of_other) = ClientSender::new();
    table.add(&id("1"), &request("1", json!({ "_meta": { "progressToken": "p" } })), &one).unwrap();
    table.add(&id("2"), &request("2", json!({})), &other).unwrap();
    table.record_sent(&id("2"), 0, &id("own"));

    let progress = JsonRpcMessage::notification("notifications/progress", json!({ "progressToken": "p" }));
    table.select_sender(&progress, None, &general).send(progress).await;
    assert!(messages_of_one.try_recv().is_ok(), "by progress token");
    let log = JsonRpcMessage::notification("notifications/message", json!({}));
    table.select_sender(&log, Some(&id("own")), &general).send(log.clone()).await;
    assert!(messages_of_other.try_recv().is_ok(), "by the transport, with the id at the server");
    let of_subscription = json!({ "_meta": { META_SUBSCRIPTION: "own" } });
    let changed = JsonRpcMessage::notification(method::TOOLS_CHANGED, of_subscription);
    table.select_sender(&changed, None, &general).send(changed).await;
    assert!(messages_of_other.try_recv().is_ok(), "by subscription");

    drop(general_messages);
    table.select_sender(&log, None, &general).send(log.clone()).await;
    assert!(messages_of_one.try_recv().is_err() && messages_of_other.try_recv().is_err());
    table.remove(&id("2"));
    table.select_sender(&log, None, &general).send(log).await;
    assert!(messages_of_one.try_recv().is_ok(), "the only request, if nobody reads the general queue");
}

#[tokio::test]
async fn requests_of_the_gateway_end_with_the_connection() {
    let table = RequestTable::new();
    let (sender, mut messages) = ClientSender::new();
    table.add_server_request(1, &id("1"));
    let response = table.request_client(method::ELICIT, json!({}), &sender);
    let closed = async {
        assert_eq!(messages.recv().await.unwrap().method(), method::ELICIT);
        assert_eq!(table.take_server_requests(), [(1, id("1"))]);
    };
    assert_eq!(tokio::join!(response, closed).0, None);
}
