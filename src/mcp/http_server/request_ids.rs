//! Rewrites request ids and progress tokens, which several clients of one caller may choose alike: unique ones on the way in, the
//! client's own on the way out.

use crate::json::{Value, json};
use crate::mcp::http_headers::META_SUBSCRIPTION;
use crate::mcp::jsonrpc::{JsonRpcMessage, MessageKind, RequestId};
use crate::mcp::method;

/// The ids of one request.
#[derive(Clone, Debug)]
pub(super) struct RequestIds {
    pub(super) own: RequestId,
    client: RequestId,
    /// The client's progress token.
    progress: Option<Value>,
}

impl RequestIds {
    /// Keeps the id of a request.
    pub(super) fn unchanged(id: &RequestId) -> Self {
        Self { own: id.clone(), client: id.clone(), progress: None }
    }

    /// Rewrites the id and the progress token of a request.
    pub(super) fn rewrite(frame: JsonRpcMessage, id: &RequestId, number: u64) -> (Self, JsonRpcMessage) {
        let own = RequestId::from_value(&json!(number)).unwrap_or_else(|| id.clone());
        let progress = frame.meta("progressToken").cloned();
        let mut frame = frame.with_id(&own);
        if progress.is_some() {
            frame.set_param_at(&["_meta", "progressToken"], own.to_json());
        }
        (Self { own, client: id.clone(), progress }, frame)
    }

    /// Whether a message answers the request.
    pub(super) fn is_response(&self, frame: &JsonRpcMessage) -> bool {
        *frame.kind() == MessageKind::Response(self.own.clone())
    }

    /// Restores the client's id and progress token in a message.
    pub(super) fn restore(&self, mut frame: JsonRpcMessage) -> JsonRpcMessage {
        if self.own == self.client && self.progress.is_none() {
            return frame;
        }
        let own = self.own.to_json();
        if let Some(progress) = &self.progress
            && frame.param("progressToken") == Some(&own)
        {
            frame.set_param("progressToken", progress.clone());
        }
        if frame.method() == method::CANCELLED && frame.param("requestId") == Some(&own) {
            frame.set_param("requestId", self.client.to_json());
        }
        if frame.meta(META_SUBSCRIPTION) == Some(&own) {
            frame.set_param_at(&["_meta", META_SUBSCRIPTION], self.client.to_json());
        }
        if let Some(said) =
            frame.result_mut().and_then(|result| result.get_mut("_meta")?.get_mut(META_SUBSCRIPTION))
            && *said == own
        {
            *said = self.client.to_json();
        }
        if self.is_response(&frame) { frame.with_id(&self.client) } else { frame }
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
        let (names, sent) = RequestIds::rewrite(request, &RequestId::from_text("a"), 7);
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
            let message = names.restore(message).into_json();
            assert_eq!(message["params"].to_string(), expected);
        }
        let answer = JsonRpcMessage::response(&names.own, json!({ "_meta": { META_SUBSCRIPTION: 7 } }));
        assert_eq!(
            names.restore(answer).to_string(),
            r#"{"jsonrpc":"2.0","id":"a","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}"#
        );
    }
}
