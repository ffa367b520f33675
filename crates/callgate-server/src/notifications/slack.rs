//! Slack: messages as blocks, and clicks on their buttons, which Slack signs.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use callgate::card::{ActionId, ButtonStyle, Choice};
use callgate::json::{self, Value, json};
use callgate_http::{Caller, single_value};
use data_encoding::HEXLOWER_PERMISSIVE;
use reqwest::Url;
use ring::hmac;

use super::envelope::Envelope;
use super::message::AnswerButtons;
use crate::endpoint::parse_query;

/// How old a signed request may be, in seconds.
const MAX_AGE: i64 = 300;
/// The version of Slack's signatures.
const SIGNATURE_VERSION: &str = "v0";

/// What answers in Slack need: the secret that signs clicks, and who may answer.
pub(super) struct SlackApp {
    key: hmac::Key,
    /// Approvers by the ids of their Slack users.
    approvers: BTreeMap<String, Caller>,
}

/// A click on a button of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Click {
    /// The id of the Slack user.
    pub(crate) user: String,
    pub(crate) choice: Choice,
    /// The unique id of the approval request.
    pub(crate) request: String,
    /// The digest of what the message showed.
    pub(crate) digest: String,
    /// Where the message can be changed.
    pub(crate) response_url: Option<Url>,
}

impl SlackApp {
    pub(super) fn new(signing_secret: &str, approvers: BTreeMap<String, Caller>) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, signing_secret.as_bytes()), approvers }
    }

    /// The approver whom a Slack user is.
    pub(super) fn approver(&self, user: &str) -> Option<&Caller> {
        self.approvers.get(user)
    }

    /// Whether Slack has signed a request of this app, lately. `now`: seconds since 1970.
    pub(super) fn has_signed(&self, headers: &HeaderMap, body: &[u8], now: i64) -> bool {
        let text = |name| single_value(headers, name).ok().flatten();
        let Some(at) = text("x-slack-request-timestamp") else { return false };
        let signature = text("x-slack-signature").and_then(|value| value.strip_prefix("v0="));
        let Some(signature) = signature.and_then(|hex| HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok())
        else {
            return false;
        };
        // An old request may be one that somebody has recorded.
        if !at.parse::<i64>().is_ok_and(|at| now.saturating_sub(at).saturating_abs() <= MAX_AGE) {
            return false;
        }
        let signed = [SIGNATURE_VERSION.as_bytes(), b":", at.as_bytes(), b":", body].concat();
        hmac::verify(&self.key, &signed, &signature).is_ok()
    }
}

impl Click {
    /// The click that a request of Slack reports. `None` if it reports something else.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let payload = parse_query(std::str::from_utf8(body).ok()?).remove("payload")?;
        let payload = json::parse(&payload).ok()?;
        let text = |value: &Value, path: &[&str]| {
            let found = path.iter().try_fold(value, |value, name| value.get(name));
            found.and_then(Value::as_str).map(str::to_owned)
        };
        let action = payload.get("actions")?.as_array()?.first()?;
        let id = ActionId::parse(&text(action, &["action_id"])?).ok()??;
        let value = text(action, &["value"])?;
        let (request, digest) = value.rsplit_once(' ')?;
        Some(Self {
            user: text(&payload, &["user", "id"])?,
            choice: id.choice(),
            request: request.to_owned(),
            digest: digest.to_owned(),
            response_url: text(&payload, &["response_url"]).and_then(|url| Url::parse(&url).ok()),
        })
    }
}

/// Plain text everywhere, so that nothing in a call is markup or mentions anybody.
pub(super) fn body(envelope: &Envelope<'_>, answers: Option<&AnswerButtons>) -> Value {
    let title = &envelope.texts.title;
    let mut blocks = vec![section(title)];
    blocks.extend(envelope.paragraphs().into_iter().map(section));
    let mut buttons: Vec<Value> = answers.into_iter().flat_map(answer_buttons).collect();
    let link = envelope.links.page.as_ref();
    buttons.extend(
        link.map(|link| json!({ "type": "button", "text": plain("Open the approvals page"), "url": link })),
    );
    if !buttons.is_empty() {
        blocks.push(json!({ "type": "actions", "elements": buttons }));
    }
    json!({ "text": escaped(title), "blocks": blocks })
}

fn answer_buttons(answers: &AnswerButtons) -> impl Iterator<Item = Value> {
    let value = format!("{} {}", answers.request, answers.digest);
    answers.actions.iter().map(move |action| {
        let style = match action.style {
            ButtonStyle::Primary => "primary",
            ButtonStyle::Danger => "danger",
        };
        json!({ "type": "button", "action_id": action.id, "value": value, "style": style, "text": plain(&action.label) })
    })
}

/// The message after its request was answered: the same without buttons.
pub(crate) fn answered_body(text: &str) -> Value {
    json!({ "replace_original": true, "text": escaped(text), "blocks": [section(text)] })
}

/// A note that only the person who clicked sees; the message stays.
pub(crate) fn note_body(text: &str) -> Value {
    json!({ "replace_original": false, "response_type": "ephemeral", "text": escaped(text), "blocks": [section(text)] })
}

fn section(text: &str) -> Value {
    json!({ "type": "section", "text": plain(text) })
}

fn plain(text: &str) -> Value {
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's documentation ("Verifying requests from Slack").
    #[test]
    fn verifies_as_slack_says() {
        let app = SlackApp::new("8f742231b10e8888abcd99yyyzzz85a5", BTreeMap::new());
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar\
            &user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2F\
            commands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let headers = |at: &str, signature: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-slack-request-timestamp", at.parse().unwrap());
            headers.insert("x-slack-signature", signature.parse().unwrap());
            headers
        };
        let good = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let at = 1_531_420_618;
        assert!(app.has_signed(&headers("1531420618", good), body.as_bytes(), at + 200));
        assert!(!app.has_signed(&headers("1531420618", good), body.as_bytes(), at + 301), "old");
        assert!(!app.has_signed(&headers("1531420619", good), body.as_bytes(), at), "another time");
        assert!(!app.has_signed(&headers("1531420618", good), b"token=other", at), "another body");
        assert!(!app.has_signed(&headers("1531420618", "v0="), body.as_bytes(), at));
        assert!(!app.has_signed(&HeaderMap::new(), body.as_bytes(), at));
    }
}
