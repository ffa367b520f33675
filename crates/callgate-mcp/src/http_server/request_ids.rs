//! Rewrites request ids and progress tokens, which several clients of one caller may choose alike: unique ones on the way in, the
//! client's own on the way out.

use crate::http_headers::META_SUBSCRIPTION;
use crate::jsonrpc::{JsonRpcMessage, MessageKind, RequestId};
use crate::method;
use callgate::json::{Value, json};

/// The ids of one request.
#[derive(Clone, Debug)]
pub(super) struct RequestIds {
    pub(super) upstream_id: RequestId,
    client_id: RequestId,
    /// The client's progress token.
    progress_token: Option<Value>,
}

impl RequestIds {
    /// Keeps the id of a request.
    pub(super) fn unchanged(id: &RequestId) -> Self {
        Self { upstream_id: id.clone(), client_id: id.clone(), progress_token: None }
    }

    /// Rewrites the id and the progress token of a request.
    pub(super) fn rewrite(message: JsonRpcMessage, id: &RequestId, number: u64) -> (Self, JsonRpcMessage) {
        let upstream_id = RequestId::from_value(&json!(number)).unwrap_or_else(|| id.clone());
        let progress_token = message.meta("progressToken").cloned();
        let mut message = message.with_id(&upstream_id);
        if progress_token.is_some() {
            message.set_param_at(&["_meta", "progressToken"], upstream_id.to_json());
        }
        (Self { upstream_id, client_id: id.clone(), progress_token }, message)
    }

    /// Whether a message answers the request.
    pub(super) fn is_response(&self, message: &JsonRpcMessage) -> bool {
        *message.kind() == MessageKind::Response(self.upstream_id.clone())
    }

    /// Restores the client's id and progress token in a message.
    pub(super) fn restore(&self, mut message: JsonRpcMessage) -> JsonRpcMessage {
        if self.upstream_id == self.client_id && self.progress_token.is_none() {
            return message;
        }
        let upstream_id = self.upstream_id.to_json();
        if let Some(token) = &self.progress_token
            && message.param("progressToken") == Some(&upstream_id)
        {
            message.set_param("progressToken", token.clone());
        }
        if message.method() == method::CANCELLED && message.param("requestId") == Some(&upstream_id) {
            message.set_param("requestId", self.client_id.to_json());
        }
        if message.meta(META_SUBSCRIPTION) == Some(&upstream_id) {
            message.set_param_at(&["_meta", META_SUBSCRIPTION], self.client_id.to_json());
        }
        if let Some(subscription) =
            message.result_mut().and_then(|result| result.get_mut("_meta")?.get_mut(META_SUBSCRIPTION))
            && *subscription == upstream_id
        {
            *subscription = self.client_id.to_json();
        }
        if self.is_response(&message) { message.with_id(&self.client_id) } else { message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restores_the_ids_of_the_client() {
        let request = JsonRpcMessage::request(
            &RequestId::from_text("a"),
            "subscriptions/listen",
            json!({ "_meta": { "progressToken": "mine", "x": 1 } }),
        );
        let (ids, sent) = RequestIds::rewrite(request, &RequestId::from_text("a"), 7);
        assert_eq!(
            sent.to_string(),
            r#"{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"_meta":{"progressToken":7,"x":1}}}"#
        );
        for (message, expected) in [
            (
                JsonRpcMessage::notification(
                    "notifications/progress",
                    json!({ "progressToken": 7, "progress": 1 }),
                ),
                r#"{"progressToken":"mine","progress":1}"#,
            ),
            (
                JsonRpcMessage::notification("x", json!({ "_meta": { META_SUBSCRIPTION: 7 } })),
                r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}"#,
            ),
            (
                JsonRpcMessage::notification(method::CANCELLED, json!({ "requestId": 7 })),
                r#"{"requestId":"a"}"#,
            ),
        ] {
            let message = ids.restore(message).into_json();
            assert_eq!(message["params"].to_string(), expected);
        }
        let answer = JsonRpcMessage::response(&ids.upstream_id, json!({ "_meta": { META_SUBSCRIPTION: 7 } }));
        assert_eq!(
            ids.restore(answer).to_string(),
            r#"{"jsonrpc":"2.0","id":"a","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}"#
        );
    }
}
