//! Answers that people give in chat products: a signed request → the approver and the answer.

use std::sync::Arc;

use axum::http::HeaderMap;
use callgate::json::Value;
use callgate_http::{Caller, error_chain};

use super::channel::Channel;
use super::slack::{Click, answered_body, note_body};

/// The channels of a notification file in which people can answer.
#[derive(Clone)]
pub struct ChannelAnswers(Vec<Arc<Channel>>);

impl std::fmt::Debug for ChannelAnswers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelAnswers").field("channels", &self.0.len()).finish()
    }
}

/// An answer that a chat product has signed.
pub(crate) struct SignedClick {
    channel: Arc<Channel>,
    pub(crate) click: Click,
}

impl ChannelAnswers {
    /// Those of these channels in which people can answer.
    pub(super) fn of(channels: impl Iterator<Item = Arc<Channel>>) -> Self {
        Self(channels.filter(|channel| channel.slack_app().is_some()).collect())
    }

    /// The click that a request of Slack reports: `None` if no channel's secret has signed the request, `Some(None)` if it reports
    /// something else.
    pub(crate) fn slack_click(&self, headers: &HeaderMap, body: &[u8]) -> Option<Option<SignedClick>> {
        let now = jiff::Timestamp::now().as_second();
        let is_signed = |channel: &&Arc<Channel>| {
            channel.slack_app().is_some_and(|app| app.has_signed(headers, body, now))
        };
        let mut signed = self.0.iter().filter(is_signed).peekable();
        signed.peek()?;
        let Some(click) = Click::parse(body) else { return Some(None) };
        // Several channels can belong to one app, and have approvers of their own.
        let channels: Vec<&Arc<Channel>> = signed.collect();
        let knows = |channel: &&&Arc<Channel>| {
            channel.slack_app().is_some_and(|app| app.approver(&click.user).is_some())
        };
        let channel = channels.iter().find(knows).or(channels.first())?;
        Some(Some(SignedClick { channel: Arc::clone(channel), click }))
    }
}

impl SignedClick {
    /// The approver who clicked. `None` if the channel does not name the person.
    pub(crate) fn approver(&self) -> Option<&Caller> {
        self.channel.slack_app()?.approver(&self.click.user)
    }

    /// Replaces the message, whose request is answered.
    pub(crate) async fn replace_message(&self, text: &str) -> Result<(), String> {
        self.respond(answered_body(text)).await
    }

    /// Shows a note to the person who clicked.
    pub(crate) async fn show_note(&self, text: &str) -> Result<(), String> {
        self.respond(note_body(text)).await
    }

    async fn respond(&self, body: Value) -> Result<(), String> {
        let url = self.click.response_url.clone().filter(|url| self.channel.has_origin_of(url));
        let Some(url) = url else {
            return Err("the request has no response URL of the channel's origin".to_owned());
        };
        let request = self.channel.client().post(url).header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await.map_err(error_chain)?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(format!("status {}", response.status().as_u16())),
        }
    }
}
