//! A channel: where messages are sent, about what, and with which texts.

use std::sync::Arc;

use callgate::safe_text::escape_markup;
use jiff::Timestamp;

use super::email::{EmailApprover, EmailReceiver};
use super::envelope::{DeliveryError, Envelope};
use super::http_receiver::HttpReceiver;
use super::links::LinkMaker;
use super::message::{LinkedRequest, Message, MessageKind};
use super::slack::SlackApp;
use super::templates::ChannelTemplates;
use crate::answer_link::LinkRecipient;

/// Where messages are sent.
pub(super) enum Receiver {
    Http(HttpReceiver),
    Email(EmailReceiver),
}

/// A channel of the notification file.
pub(super) struct Channel {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    pub(super) receiver: Receiver,
    pub(super) events: Vec<MessageKind>,
    pub(super) shows_arguments: bool,
    pub(super) templates: ChannelTemplates,
}

/// A message for one receiver.
#[derive(Clone)]
pub(super) struct Delivery {
    pub(super) message: Arc<Message>,
    pub(super) id: String,
    pub(super) at: Timestamp,
    /// The index of the approver, if the channel sends to each one.
    pub(super) approver: Option<usize>,
}

impl Channel {
    /// What answers in Slack need, with the receiver, if this is a channel of Slack that takes them.
    pub(super) fn slack(&self) -> Option<(&SlackApp, &HttpReceiver)> {
        match &self.receiver {
            Receiver::Http(receiver) => Some((receiver.slack_app()?, receiver)),
            Receiver::Email(_) => None,
        }
    }

    /// The approvers to whom it sends e-mails.
    pub(super) fn email_approvers(&self) -> &[EmailApprover] {
        match &self.receiver {
            Receiver::Http(_) => &[],
            Receiver::Email(receiver) => &receiver.approvers,
        }
    }

    pub(super) fn format_name(&self) -> &'static str {
        match &self.receiver {
            Receiver::Http(receiver) => receiver.format_name(),
            Receiver::Email(_) => "email",
        }
    }

    /// The name for the operator: its format and host.
    pub(super) fn name(&self) -> String {
        let host = match &self.receiver {
            Receiver::Http(receiver) => receiver.host(),
            Receiver::Email(receiver) => receiver.host(),
        };
        format!("{} at {host}", self.format_name())
    }

    /// The approvers who get a message: those of the call's tenant whose answer would count. `None` stands for everybody who reads the
    /// channel. Empty if the channel does not want the message.
    pub(super) fn recipients(&self, message: &Message) -> Vec<Option<usize>> {
        if !self.events.contains(&message.kind) {
            return Vec::new();
        }
        if matches!(self.receiver, Receiver::Http(_)) {
            return vec![None];
        }
        let gets = |approver: &EmailApprover| {
            let is_of_tenant = approver.tenant().is_none_or(|tenant| *tenant == message.source.tenant);
            let counts = |linked: &LinkedRequest| linked.accepts(&approver.identity);
            is_of_tenant && message.linked.as_ref().is_none_or(counts)
        };
        let all = self.email_approvers().iter().enumerate();
        all.filter(|(_, approver)| gets(approver)).map(|(index, _)| Some(index)).collect()
    }

    /// The approver who gets a message of a channel that sends to each one.
    pub(super) fn approver(&self, delivery: &Delivery) -> Option<&EmailApprover> {
        self.email_approvers().get(delivery.approver?)
    }

    /// Sends a message once.
    pub(super) async fn send(&self, delivery: &Delivery, links: &LinkMaker) -> Result<(), DeliveryError> {
        let Delivery { message, id, at, .. } = delivery;
        let approver = self.approver(delivery);
        let recipient = approver.map(|approver| LinkRecipient {
            address: approver.address.clone(),
            principal: approver.identity.principal.clone(),
        });
        // Mail programs turn URLs in texts into links.
        let escape = |text: &str| match &self.receiver {
            Receiver::Email(_) => escape_markup(text),
            Receiver::Http(_) => text.to_owned(),
        };
        let envelope = Envelope {
            message,
            texts: self.templates.texts(message, escape),
            arguments: message.arguments.as_deref().filter(|_| self.shows_arguments),
            links: links.links(message, recipient),
            id,
            at: *at,
        };
        match (&self.receiver, approver) {
            (Receiver::Http(receiver), _) => receiver.send(&envelope).await,
            (Receiver::Email(receiver), Some(approver)) => receiver.send(&envelope, approver).await,
            (Receiver::Email(_), None) => Err(DeliveryError::lasting("the message has no recipient")),
        }
    }
}
