//! The links of messages: to the approvals page, and to answer a request. They lead to the configured page only.

use callgate::card::Choice;
use callgate::seal::Keys;
use jiff::Timestamp;
use reqwest::Url;

use super::message::Message;
use crate::answer_link::{AnswerLink, LinkRecipient};

/// The path of the page that answers.
const ANSWER_PATH: &str = "/answer";

/// Makes links.
pub(super) struct LinkMaker {
    /// The URL of the approvals page, without a slash at its end.
    pub(super) page: Option<String>,
    pub(super) keys: Keys,
}

/// The links of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageLinks {
    /// To the request on the approvals page. Who follows it must sign in.
    pub(super) page: Option<String>,
    /// To answer the request: labels with URLs.
    pub(super) answers: Vec<LinkButton>,
}

/// A link that answers a request.
#[derive(Clone, Debug)]
pub(super) struct LinkButton {
    pub(super) choice: Choice,
    pub(super) label: String,
    pub(super) url: String,
}

impl LinkMaker {
    /// The links of a message to one person, or to everybody who reads the channel.
    pub(super) fn links(&self, message: &Message, recipient: Option<LinkRecipient>) -> MessageLinks {
        let Some(page) = &self.page else { return MessageLinks::default() };
        MessageLinks {
            page: search_link(page, &message.search),
            answers: self.answers(page, message, recipient),
        }
    }

    fn answers(&self, page: &str, message: &Message, recipient: Option<LinkRecipient>) -> Vec<LinkButton> {
        let Some(linked) = &message.linked else { return Vec::new() };
        let expires = AnswerLink::end(linked.expires, Timestamp::now());
        let button = |choice: Choice, label: &str| {
            let (subject, recipient) = (linked.subject.clone(), recipient.clone());
            let link = AnswerLink { subject, choice, expires, recipient };
            // In the fragment, which browsers send to nobody: it is in no log of a server and in no `Referer`.
            let url = format!("{page}{ANSWER_PATH}#{}", link.to_token(&self.keys)?);
            Some(LinkButton { choice, label: label.to_owned(), url })
        };
        linked.actions.iter().filter_map(|action| button(action.choice, &action.label)).collect()
    }
}

/// The link to a request on the approvals page.
fn search_link(page: &str, search: &str) -> Option<String> {
    let mut url = Url::parse(page).ok()?;
    url.set_fragment(Some(&format!("search={}", percent_encoded(search))));
    Some(url.into())
}

/// A text for a query: everything but letters, digits and `-._~` is encoded.
fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}
