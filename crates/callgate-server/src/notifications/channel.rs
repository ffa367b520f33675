//! A channel: message → HTTP request in the format of its receiver.

use callgate::json::{Value, json};
use callgate_http::https_client;
use data_encoding::BASE64;
use reqwest::{Client, Request, Url};
use ring::hmac;

use super::message::{Message, MessageKind};
use super::slack::{self, SlackApp};

/// The format of a channel.
pub(super) enum ChannelKind {
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

/// Where messages are sent.
pub(super) struct Channel {
    kind: ChannelKind,
    url: Url,
    client: Client,
    events: Vec<MessageKind>,
    shows_arguments: bool,
}

/// What a message has at its receiver.
pub(super) struct Envelope<'m> {
    pub(super) message: &'m Message,
    /// Its id, the same for every attempt.
    pub(super) id: &'m str,
    /// When it happened.
    pub(super) at: jiff::Timestamp,
    /// The URL of the approvals page.
    pub(super) page: Option<&'m str>,
}

impl Envelope<'_> {
    /// The link to the request on the approvals page. Who follows it must sign in.
    fn link(&self) -> Option<String> {
        let mut url = Url::parse(self.page?).ok()?;
        url.set_fragment(Some(&format!("search={}", percent_encoded(&self.message.search))));
        Some(url.into())
    }
}

/// A text for a query: everything but letters, digits and `-._~` is encoded.
fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

impl Channel {
    /// A channel of this URL.
    ///
    /// # Errors
    /// The URL is not allowed: a text for the operator, without the URL, which may be a secret.
    pub(super) fn new(
        kind: ChannelKind,
        url: &str,
        events: Vec<MessageKind>,
        shows_arguments: bool,
    ) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("this is not a URL: {error}"))?;
        let is_safe =
            url.scheme() == "https" || (url.scheme() == "http" && callgate_http::is_this_machine(&url));
        if !is_safe {
            return Err("messages are sent over TLS only, except to this machine".to_owned());
        }
        let client = https_client(&url).timeout(std::time::Duration::from_secs(10));
        let client = client.build().map_err(callgate_http::error_chain)?;
        Ok(Self { kind, url, client, events, shows_arguments })
    }

    /// What answers in Slack need, if this is a channel of Slack that takes them.
    pub(super) fn slack_app(&self) -> Option<&SlackApp> {
        match &self.kind {
            ChannelKind::Slack { app } => app.as_ref(),
            _ => None,
        }
    }

    /// Whether a URL has the origin of the channel's own. Requests to others could reach servers that only this machine reaches.
    pub(super) fn has_origin_of(&self, url: &Url) -> bool {
        self.url.origin() == url.origin()
    }

    pub(super) fn wants(&self, message: &Message) -> bool {
        self.events.contains(&message.kind)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The name for the operator: its format and host. The path of a URL may be a secret.
    pub(super) fn name(&self) -> String {
        let kind = match self.kind {
            ChannelKind::Webhook { .. } => "webhook",
            ChannelKind::Slack { .. } => "slack",
            ChannelKind::Teams => "teams",
            ChannelKind::Ntfy => "ntfy",
        };
        format!("{kind} at {}", self.url.host_str().unwrap_or("?"))
    }

    /// The request that sends a message.
    pub(super) fn request(&self, envelope: &Envelope<'_>) -> Result<Request, reqwest::Error> {
        let message = envelope.message;
        let link = envelope.link();
        let details = message.arguments.as_deref().filter(|_| self.shows_arguments);
        let mut url = self.url.clone();
        let body = match &self.kind {
            ChannelKind::Webhook { .. } => self.webhook_body(envelope, link),
            ChannelKind::Slack { app } => {
                let answers = message.answers.as_ref().filter(|_| app.is_some() && self.shows_arguments);
                slack::body(message, details, link, answers)
            }
            ChannelKind::Teams => teams_body(message, details, link),
            ChannelKind::Ntfy => {
                let topic = url.path().trim_matches('/').to_owned();
                url.set_path("/");
                let text = [Some(message.text.as_str()), details]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("\n\n");
                json!({ "topic": topic, "title": message.title, "message": text, "click": link })
            }
        };
        let body = body.to_string();
        let mut request = self.client.post(url).header("content-type", "application/json");
        if let ChannelKind::Webhook { secret } = &self.kind {
            // A receiver rejects old timestamps, so each attempt has its own.
            let timestamp = jiff::Timestamp::now().as_second();
            request = request
                .header("webhook-id", envelope.id)
                .header("webhook-timestamp", timestamp)
                .header("webhook-signature", signature(secret, envelope.id, timestamp, &body));
        }
        request.body(body).build()
    }

    fn webhook_body(&self, envelope: &Envelope<'_>, link: Option<String>) -> Value {
        let mut data = envelope.message.data.clone();
        if let Value::Object(members) = &mut data {
            members.insert("link".to_owned(), json!(link));
            if self.shows_arguments {
                members.insert("input".to_owned(), envelope.message.input.clone());
            }
        }
        json!({ "type": envelope.message.kind.name(), "timestamp": envelope.at.to_string(), "data": data })
    }
}

/// The signature of a message by the Standard Webhooks specification.
fn signature(secret: &[u8], id: &str, timestamp: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(tag.as_ref()))
}

/// An Adaptive Card of rich text blocks, which have no markup.
fn teams_body(message: &Message, details: Option<&str>, link: Option<String>) -> Value {
    let block = |text: &str, weight: &str| json!({ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": text, "weight": weight }] });
    let mut body = vec![block(&message.title, "Bolder")];
    let texts = [Some(message.text.as_str()), details].into_iter().flatten().filter(|text| !text.is_empty());
    body.extend(texts.map(|text| block(text, "Default")));
    let actions: Vec<Value> = link
        .into_iter()
        .map(|link| json!({ "type": "Action.OpenUrl", "title": "Open the approvals page", "url": link }))
        .collect();
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
            Channel::new(ChannelKind::Slack { app: None }, url, Vec::new(), false)
                .map(|channel| channel.name())
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
