//! Answers by links: the token of a link and who follows it → the request that it shows, or the recorded answer.
//!
//! Opening a link changes nothing. An answer is recorded as one on the approvals page: for a person who has signed in, or for the
//! recipient of an e-mail if every policy that requires the approval has `answer_by_link: allow`.

use std::sync::Arc;

use callgate::approval::InboxItem;
use callgate::card::Choice;
use callgate::json::{Value, json};
use callgate::principal::Principal;
use callgate_http::Caller;
use jiff::Timestamp;

use crate::answer_link::{AnswerLink, LinkError, choice_name};
use crate::api::Api;
use crate::approver::approver;
use crate::endpoints::approvals::{answer_item, document, sees};
use crate::notifications::ChannelAnswers;
use crate::problem::Problem;
use crate::request_types::{AnswerBody, AnswerDecision};

/// Who follows a link.
pub(crate) struct LinkVisitor<'a> {
    /// The approver who is signed in.
    pub(crate) signed_in: Option<&'a Caller>,
    /// The channels, which know the recipients of e-mails.
    pub(crate) channels: Option<&'a ChannelAnswers>,
}

/// A link whose visitor may see its request.
struct OpenLink {
    link: AnswerLink,
    item: InboxItem,
    caller: Caller,
    /// Whether the link itself proves who the visitor is.
    is_by_link: bool,
}

impl Api {
    /// The request of a link, for the page that shows it.
    ///
    /// # Errors
    /// The link can't be used by this visitor.
    pub(crate) async fn show_link(&self, token: &str, visitor: LinkVisitor<'_>) -> Result<Value, Problem> {
        let open = self.open_link(token, &visitor).await?;
        let own = approver(&open.caller);
        let has_answered = open.item.bound_request.as_ref().is_some_and(|bound| {
            let principal = |name: &str| Principal::parse(name, bound.comparison());
            let own = own.as_ref().and_then(|own| principal(&own.principal));
            let by = open.item.answers.iter().filter_map(|answer| answer.answered_by.as_ref());
            own.is_some() && by.map(|by| principal(&by.principal)).any(|name| name == own)
        });
        Ok(json!({
            "choice": choice_name(open.link.choice),
            "request": document(&open.item),
            "principal": own.map(|own| own.principal),
            "signed_in": !open.is_by_link,
            "has_answered": has_answered,
        }))
    }

    /// Records the answer of a link, and returns the request with it.
    ///
    /// # Errors
    /// The link can't be used by this visitor, or the answer would not count.
    pub(crate) async fn answer_link(
        self: &Arc<Self>,
        token: &str,
        reason: Option<String>,
        visitor: LinkVisitor<'_>,
    ) -> Result<Value, Problem> {
        let OpenLink { link, item, caller, is_by_link } = self.open_link(token, &visitor).await?;
        let decision = match link.choice {
            Choice::Approve => AnswerDecision::Approve,
            Choice::Deny => AnswerDecision::Deny,
        };
        let body = AnswerBody { decision, digest: link.subject.shown, reason, input: None, output: None };
        let via = if is_by_link { "email" } else { "link" };
        answer_item(self, &caller, &item, body, via).await.map(|after| document(&after))
    }

    async fn open_link(&self, token: &str, visitor: &LinkVisitor<'_>) -> Result<OpenLink, Problem> {
        let link =
            AnswerLink::from_token(token, self.engine.keys(), Timestamp::now()).map_err(link_problem)?;
        let items = self.activity.approvals.items(&self.inbox).await;
        let items = items.map_err(|error| Problem::unavailable("store_unavailable", error.to_string()))?;
        let item = items.iter().map(|item| &**item).find(|item| item.qualified_id() == link.subject.request);
        let by_link = || {
            let recipient =
                link.recipient.as_ref().filter(|_| item.is_some_and(InboxItem::allows_answer_by_link))?;
            visitor.channels?.email_approver(recipient)
        };
        let (caller, is_by_link) = match visitor.signed_in {
            Some(caller) => (caller, false),
            None => {
                let detail = "Sign in to see the call and to answer.";
                let problem = || Problem::new(401, "sign_in_required", detail);
                (by_link().ok_or_else(problem)?, true)
            }
        };
        let unknown = "There is no such approval request any more, or you may not see it.";
        let item = item.filter(|item| sees(caller, item)).ok_or_else(|| Problem::not_found(unknown))?;
        if !is_recipient(&link, item, caller) {
            let detail =
                "This link was sent to another person. Open the approvals page to answer in your own name.";
            return Err(Problem::new(403, "other_recipient", detail));
        }
        if !link.subject.is_of(item) {
            let detail = "The call has changed since the message was sent. Open the approvals page to see it as it is now.";
            return Err(Problem::new(409, "changed", detail));
        }
        Ok(OpenLink { item: item.clone(), caller: caller.clone(), link, is_by_link })
    }
}

/// Whether a caller is the person to whom a link was sent, if it was sent to one.
fn is_recipient(link: &AnswerLink, item: &InboxItem, caller: &Caller) -> bool {
    let (Some(recipient), Some(bound)) = (&link.recipient, &item.bound_request) else {
        return link.recipient.is_none();
    };
    let principal = |name: &str| Principal::parse(name, bound.comparison());
    let own = approver(caller).and_then(|own| principal(&own.principal));
    own.is_some() && own == principal(&recipient.principal)
}

fn link_problem(error: LinkError) -> Problem {
    match error {
        LinkError::Invalid => {
            let detail = "This link is incomplete, or was not made by this server. Copy the whole link from the message.";
            Problem::new(403, "invalid_link", detail)
        }
        LinkError::Expired => Problem::new(
            410,
            "link_expired",
            "This link has expired. Open the approvals page to see the request.",
        ),
    }
}
