//! A message on its way to one receiver: its texts, its links and its id; and why it did not arrive.

use super::links::MessageLinks;
use super::message::Message;
use super::templates::MessageTexts;

/// What a message has at its receiver.
pub(super) struct Envelope<'m> {
    pub(super) message: &'m Message,
    pub(super) texts: MessageTexts,
    /// The arguments as text, if the channel shows them.
    pub(super) arguments: Option<&'m str>,
    pub(super) links: MessageLinks,
    /// Its id, the same for every attempt.
    pub(super) id: &'m str,
    /// When it happened.
    pub(super) at: jiff::Timestamp,
}

impl Envelope<'_> {
    /// The texts below the title, without empty ones.
    pub(super) fn paragraphs(&self) -> Vec<&str> {
        let texts = [Some(self.texts.text.as_str()), self.arguments, Some(self.texts.footer.as_str())];
        texts.into_iter().flatten().filter(|text| !text.is_empty()).collect()
    }
}

/// Why a message was not delivered, without addresses, which may be secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryError {
    pub(super) why: String,
    /// Whether another attempt may succeed.
    pub(super) may_pass: bool,
}

impl DeliveryError {
    /// A failure that another attempt repeats.
    pub(super) fn lasting(why: impl Into<String>) -> Self {
        Self { why: why.into(), may_pass: false }
    }
}
