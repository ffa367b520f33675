//! Answers that people give in chat products: a signed request → the approver and the answer.

use std::sync::Arc;

use axum::http::HeaderMap;
use callgate::json::Value;
use callgate_http::{Caller, error_chain};
use reqwest::Url;

use super::channel::Channel;
use super::http_receiver::HttpReceiver;
use super::slack::{Click, answered_body, note_body};
use crate::answer_link::LinkRecipient;

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
    /// The answers of these channels.
    pub(super) fn of(channels: impl Iterator<Item = Arc<Channel>>) -> Self {
        Self(channels.collect())
    }

    /// The approver to whom the link of an e-mail was sent. `None` if the notification file names them no more.
    pub(crate) fn email_approver(&self, recipient: &LinkRecipient) -> Option<&Caller> {
        let all = self.0.iter().flat_map(|channel| channel.email_approvers());
        let mut meant = all.filter(|approver| {
            approver.address == recipient.address && approver.identity.principal == recipient.principal
        });
        meant.next().map(|approver| &approver.caller)
    }

    /// The click that a request of Slack reports: `None` if no channel's secret has signed the request, `Some(None)` if it reports
    /// something else.
    pub(crate) fn slack_click(&self, headers: &HeaderMap, body: &[u8]) -> Option<Option<SignedClick>> {
        let now = jiff::Timestamp::now().as_second();
        let is_signed = |channel: &&Arc<Channel>| {
            channel.slack().is_some_and(|(app, _)| app.has_signed(headers, body, now))
        };
        let mut signed = self.0.iter().filter(is_signed).peekable();
        signed.peek()?;
        let Some(click) = Click::parse(body) else { return Some(None) };
        // Several channels can belong to one app, and have approvers of their own.
        let channels: Vec<&Arc<Channel>> = signed.collect();
        let knows = |channel: &&&Arc<Channel>| {
            channel.slack().is_some_and(|(app, _)| app.approver(&click.user).is_some())
        };
        let channel = channels.iter().find(knows).or(channels.first())?;
        Some(Some(SignedClick { channel: Arc::clone(channel), click }))
    }
}

impl SignedClick {
    /// The approver who clicked. `None` if the channel does not name the person.
    pub(crate) fn approver(&self) -> Option<&Caller> {
        self.channel.slack()?.0.approver(&self.click.user)
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
        let receiver = self.channel.slack().map(|(_, receiver)| receiver);
        let is_own = |(receiver, url): &(&HttpReceiver, Url)| receiver.has_origin_of(url);
        let Some((receiver, url)) = receiver.zip(self.click.response_url.clone()).filter(is_own) else {
            return Err("the request has no response URL of the channel's origin".to_owned());
        };
        let request = receiver.client().post(url).header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await.map_err(error_chain)?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(format!("status {}", response.status().as_u16())),
        }
    }
}
