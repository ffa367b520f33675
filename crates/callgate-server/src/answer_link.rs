//! Signed links: which request a link answers, how, and whose link it is → a token, and back.
//!
//! The token is encrypted and authenticated with a subkey of the server's keys that is used for nothing else. So it can't be changed or
//! forged, and reveals neither the session nor the recipient to those who see the link.

use callgate::approval::InboxItem;
use callgate::call::ApprovalRequest;
use callgate::card::{Choice, call_digest};
use callgate::json::{self, Value, json};
use callgate::message::RequestPart;
use callgate::seal::{Keys, Purpose};
use jiff::{SignedDuration, Timestamp};

/// How long a link is valid whose request does not expire.
const LONGEST_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The longest token, in bytes.
const MAX_TOKEN: usize = 8 << 10;
const VERSION: u64 = 1;

/// What a link answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerLink {
    pub(crate) subject: LinkSubject,
    pub(crate) choice: Choice,
    /// When the link ends, at the latest when its request expires.
    pub(crate) expires: Timestamp,
    /// Whom it was sent to, if it was sent to one person.
    pub(crate) recipient: Option<LinkRecipient>,
}

/// The request that a link answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkSubject {
    /// The unique id of the request.
    pub(crate) request: String,
    /// The digest of the request's token: another one if approval is requested again.
    pub(crate) sealed: String,
    /// The digest of the call that is shown.
    pub(crate) shown: String,
}

/// The person to whom a link was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkRecipient {
    pub(crate) address: String,
    pub(crate) principal: String,
}

/// Why a link can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// It was not made with one of the keys, or was changed.
    Invalid,
    Expired,
}

impl LinkSubject {
    pub(crate) fn new(conversation: &str, request: &ApprovalRequest) -> Self {
        Self {
            request: format!("{conversation}/{}", request.approval_id),
            sealed: json::digest(&json!(request.approval_token)).to_string(),
            shown: call_digest(&RequestPart::from(request)),
        }
    }

    /// Whether a request of the store is the one that the link answers, unchanged.
    pub(crate) fn is_of(&self, item: &InboxItem) -> bool {
        *self == Self::new(&item.key.conversation, &item.request)
    }
}

impl AnswerLink {
    /// When the link of a request ends.
    pub(crate) fn end(request_expires: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let longest = now.checked_add(LONGEST_LIFETIME).unwrap_or(Timestamp::MAX);
        request_expires.map_or(longest, |at| at.min(longest))
    }

    /// The token of the link. `None` if the system provides no random bytes.
    pub(crate) fn to_token(&self, keys: &Keys) -> Option<String> {
        let LinkSubject { request, sealed, shown } = &self.subject;
        let recipient = self.recipient.as_ref().map(|to| json!([to.address, to.principal]));
        let choice = choice_name(self.choice);
        let content = json!([VERSION, request, sealed, shown, choice, self.expires.to_string(), recipient]);
        keys.encrypt(Purpose::Link, &Value::Null, content.to_string().as_bytes()).ok()
    }

    /// The link of a token.
    ///
    /// # Errors
    /// The token is forged, or the link has ended.
    pub(crate) fn from_token(token: &str, keys: &Keys, now: Timestamp) -> Result<Self, LinkError> {
        if token.len() > MAX_TOKEN {
            return Err(LinkError::Invalid);
        }
        let content = keys.decrypt(Purpose::Link, &Value::Null, token).map_err(|_| LinkError::Invalid)?;
        let link = Self::parse(&content).ok_or(LinkError::Invalid)?;
        if now < link.expires { Ok(link) } else { Err(LinkError::Expired) }
    }

    fn parse(content: &[u8]) -> Option<Self> {
        let content = json::parse_bytes(content).ok()?;
        let [version, request, sealed, shown, choice, expires, recipient] = content.as_array()?.as_slice()
        else {
            return None;
        };
        if *version != json!(VERSION) {
            return None;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let recipient = match recipient.as_array().map(Vec::as_slice) {
            Some([address, principal]) => {
                Some(LinkRecipient { address: text(address)?, principal: text(principal)? })
            }
            _ => None,
        };
        Some(Self {
            subject: LinkSubject { request: text(request)?, sealed: text(sealed)?, shown: text(shown)? },
            choice: [Choice::Approve, Choice::Deny]
                .into_iter()
                .find(|known| choice.as_str() == Some(choice_name(*known)))?,
            expires: expires.as_str()?.parse().ok()?,
            recipient,
        })
    }
}

/// The name of a choice in links and answers.
pub(crate) fn choice_name(choice: Choice) -> &'static str {
    match choice {
        Choice::Approve => "approve",
        Choice::Deny => "deny",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(digits: &str) -> Keys {
        Keys::parse(&digits.repeat(32)).unwrap()
    }

    fn link() -> AnswerLink {
        let text = |text: &str| text.to_owned();
        AnswerLink {
            subject: LinkSubject { request: text("s1/approval_c1"), sealed: text("a"), shown: text("b") },
            choice: Choice::Deny,
            expires: "2026-01-01T12:00:00Z".parse().unwrap(),
            recipient: Some(LinkRecipient { address: text("ann@example.com"), principal: text("ann") }),
        }
    }

    #[test]
    fn a_token_is_the_link_until_it_ends() {
        let (keys, link) = (keys("5a"), link());
        let token = link.to_token(&keys).unwrap();
        assert!(!token.contains("ann") && token.bytes().all(|byte| byte.is_ascii_graphic()), "{token}");
        let at = |time: &str| AnswerLink::from_token(&token, &keys, time.parse().unwrap());
        assert_eq!(at("2026-01-01T11:59:59Z"), Ok(link));
        assert_eq!(at("2026-01-01T12:00:00Z"), Err(LinkError::Expired));
    }

    #[test]
    fn only_tokens_of_links_are_links() {
        let (own, now) = (keys("5a"), "2026-01-01T00:00:00Z".parse().unwrap());
        let token = link().to_token(&own).unwrap();
        let refused = |token: &str, keys: &Keys| {
            assert_eq!(AnswerLink::from_token(token, keys, now), Err(LinkError::Invalid), "{token}");
        };
        refused(&token, &keys("77"));
        let shorter = token.get(..token.len() - 1).unwrap();
        for changed in ["", "x", shorter, &format!("{token}A"), &"x".repeat(100_000)] {
            refused(changed, &own);
        }
        for index in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[index] = if bytes[index] == b'B' { b'C' } else { b'B' };
            refused(std::str::from_utf8(&bytes).unwrap(), &own);
        }
        // What is encrypted for another purpose is no link, whatever it contains.
        let content = json!([1, "s1/approval_c1", "a", "b", "approve", "2030-01-01T00:00:00Z", null]);
        let other = own.encrypt(Purpose::Approval, &Value::Null, content.to_string().as_bytes()).unwrap();
        refused(&other, &own);
    }

    #[test]
    fn a_link_ends_with_its_request_and_within_a_week() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-01-01T00:00:00Z");
        assert_eq!(AnswerLink::end(None, now), at("2026-01-08T00:00:00Z"));
        assert_eq!(AnswerLink::end(Some(at("2026-01-01T01:00:00Z")), now), at("2026-01-01T01:00:00Z"));
        assert_eq!(AnswerLink::end(Some(at("2027-01-01T01:00:00Z")), now), at("2026-01-08T00:00:00Z"));
    }
}
