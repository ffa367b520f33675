//! A receiver over HTTP: message → request in the format of a webhook, chat product or notification service.

use callgate::json::{Value, json};
use callgate_http::{error_chain, https_client};
use data_encoding::BASE64;
use reqwest::{Client, Request, StatusCode, Url};
use ring::hmac;

use super::envelope::{DeliveryError, Envelope};
use super::slack::{self, SlackApp};
use crate::answer_link::choice_name;

/// The format of an HTTP receiver.
pub(super) enum HttpFormat {
    /// Signed JSON.
    Webhook {
        secret: Vec<u8>,
    },
    Slack {
        /// What answers in Slack need. Without it, messages have no buttons for them.
        app: Option<SlackApp>,
    },
    Teams,
    Ntfy,
}

/// A URL that messages are sent to.
pub(super) struct HttpReceiver {
    format: HttpFormat,
    url: Url,
    client: Client,
}

impl HttpReceiver {
    /// A receiver at this URL.
    ///
    /// # Errors
    /// The URL is not allowed: a text for the operator, without the URL, which may be a secret.
    pub(super) fn new(format: HttpFormat, url: &str) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("this is not a URL: {error}"))?;
        let is_safe =
            url.scheme() == "https" || (url.scheme() == "http" && callgate_http::is_this_machine(&url));
        if !is_safe {
            return Err("messages are sent over TLS only, except to this machine".to_owned());
        }
        let client = https_client(&url).timeout(std::time::Duration::from_secs(10));
        let client = client.build().map_err(error_chain)?;
        Ok(Self { format, url, client })
    }

    /// What answers in Slack need, if this is a channel of Slack that takes them.
    pub(super) fn slack_app(&self) -> Option<&SlackApp> {
        match &self.format {
            HttpFormat::Slack { app } => app.as_ref(),
            _ => None,
        }
    }

    /// Whether a URL has the origin of the channel's own. Requests to others could reach servers that only this machine reaches.
    pub(super) fn has_origin_of(&self, url: &Url) -> bool {
        self.url.origin() == url.origin()
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn format_name(&self) -> &'static str {
        match self.format {
            HttpFormat::Webhook { .. } => "webhook",
            HttpFormat::Slack { .. } => "slack",
            HttpFormat::Teams => "teams",
            HttpFormat::Ntfy => "ntfy",
        }
    }

    /// The host. The path of a URL may be a secret.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or("?")
    }

    /// Sends a message once.
    pub(super) async fn send(&self, envelope: &Envelope<'_>) -> Result<(), DeliveryError> {
        let request = self.request(envelope).map_err(|error| DeliveryError::lasting(error_chain(error)))?;
        match self.client.execute(request).await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => {
                let status = response.status();
                let may_pass = status.is_server_error()
                    || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
                Err(DeliveryError { why: format!("status {}", status.as_u16()), may_pass })
            }
            Err(error) => Err(DeliveryError { why: error_chain(error), may_pass: true }),
        }
    }

    /// The request that sends a message.
    fn request(&self, envelope: &Envelope<'_>) -> Result<Request, reqwest::Error> {
        let mut url = self.url.clone();
        let body = match &self.format {
            HttpFormat::Webhook { .. } => webhook_body(envelope),
            HttpFormat::Slack { app } => {
                // Buttons need the whole call in the message.
                let answers = envelope
                    .message
                    .answers
                    .as_ref()
                    .filter(|_| app.is_some() && envelope.arguments.is_some());
                slack::body(envelope, answers)
            }
            HttpFormat::Teams => teams_body(envelope),
            HttpFormat::Ntfy => {
                let topic = url.path().trim_matches('/').to_owned();
                url.set_path("/");
                ntfy_body(&topic, envelope)
            }
        };
        let body = body.to_string();
        let mut request = self.client.post(url).header("content-type", "application/json");
        if let HttpFormat::Webhook { secret } = &self.format {
            // A receiver rejects old timestamps, so each attempt has its own.
            let timestamp = jiff::Timestamp::now().as_second();
            request = request
                .header("webhook-id", envelope.id)
                .header("webhook-timestamp", timestamp)
                .header("webhook-signature", signature(secret, envelope.id, timestamp, &body));
        }
        request.body(body).build()
    }
}

fn webhook_body(envelope: &Envelope<'_>) -> Value {
    let mut data = envelope.message.data.clone();
    if let Value::Object(members) = &mut data {
        members.insert("link", json!(envelope.links.page));
        for button in &envelope.links.answers {
            members.insert(format!("{}_link", choice_name(button.choice)), json!(button.url));
        }
        if envelope.arguments.is_some() {
            members.insert("input", envelope.message.input.clone());
        }
    }
    json!({ "type": envelope.message.kind.name(), "timestamp": envelope.at.to_string(), "data": data })
}

/// A notification of ntfy, whose buttons open links.
fn ntfy_body(topic: &str, envelope: &Envelope<'_>) -> Value {
    let links = &envelope.links;
    let actions: Vec<Value> = links
        .answers
        .iter()
        .map(|button| json!({ "action": "view", "label": button.label, "url": button.url }))
        .collect();
    let text = envelope.paragraphs().join("\n\n");
    json!({ "topic": topic, "title": envelope.texts.title, "message": text, "click": links.page, "actions": actions })
}

/// The signature of a message by the Standard Webhooks specification.
fn signature(secret: &[u8], id: &str, timestamp: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(tag.as_ref()))
}

/// An Adaptive Card of rich text blocks, which have no markup. Its buttons open links.
fn teams_body(envelope: &Envelope<'_>) -> Value {
    let block = |text: &str, weight: &str| json!({ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": text, "weight": weight }] });
    let mut body = vec![block(&envelope.texts.title, "Bolder")];
    body.extend(envelope.paragraphs().into_iter().map(|text| block(text, "Default")));
    let open = |title: &str, url: &str| json!({ "type": "Action.OpenUrl", "title": title, "url": url });
    let mut actions: Vec<Value> =
        envelope.links.answers.iter().map(|button| open(&button.label, &button.url)).collect();
    actions.extend(envelope.links.page.as_ref().map(|link| open("Open the approvals page", link)));
    json!({ "type": "message", "attachments": [{
        "contentType": "application/vnd.microsoft.card.adaptive",
        "content": { "type": "AdaptiveCard", "version": "1.4", "body": body, "actions": actions },
    }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_the_standard_webhooks_specification_says() {
        // Its own example.
        let secret = BASE64.decode(b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let found =
            signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(found, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn messages_go_over_tls() {
        let channel = |url: &str| {
            HttpReceiver::new(HttpFormat::Slack { app: None }, url)
                .map(|receiver| format!("{} at {}", receiver.format_name(), receiver.host()))
        };
        assert_eq!(
            channel("https://hooks.slack.com/services/T0/B0/secret").unwrap(),
            "slack at hooks.slack.com"
        );
        assert!(channel("http://127.0.0.1:9/x").is_ok());
        for url in ["http://hooks.slack.com/x", "ftp://x", "hooks", "http://localhost.example.com"] {
            let why = channel(url).unwrap_err();
            assert!(!why.contains(url), "{why}");
        }
    }
}
