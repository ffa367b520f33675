//! Records answers that people give in chat products, as the answers of the approvers whom the operator has named.

use std::sync::Arc;

use callgate::card::Choice;
use callgate::safe_text::escape_controls;

use crate::api::Api;
use crate::endpoints::approvals::{answer_item, sees};
use crate::notifications::SignedClick;
use crate::problem::Problem;
use crate::request_types::{AnswerBody, AnswerDecision};

impl Api {
    /// Records the answer of a click, and shows the result where it was given. `log` gets notes for the operator.
    pub(crate) async fn answer_click(self: Arc<Self>, signed: SignedClick, log: impl Fn(&str) + Send) {
        let shown = match self.record_click(&signed).await {
            Ok(text) => signed.replace_message(&text).await,
            Err(problem) => signed.show_note(&problem.detail).await,
        };
        if let Err(why) = shown {
            log(&format!("the result of an answer is not shown in Slack: {}", escape_controls(&why)));
        }
    }

    /// Records an answer; returns what to show in place of the message.
    async fn record_click(self: &Arc<Self>, signed: &SignedClick) -> Result<String, Problem> {
        let refused =
            || Problem::new(403, "access_denied", "You are not among the approvers of this channel.");
        let approver = signed.approver().ok_or_else(refused)?;
        let click = &signed.click;
        let items = self.activity.approvals.items(&self.inbox).await;
        let items = items.map_err(|error| Problem::unavailable("store_unavailable", error.to_string()))?;
        let item = items.iter().find(|item| item.qualified_id() == click.request && sees(approver, item));
        let item = item.ok_or_else(|| Problem::not_found("There is no such approval request any more."))?;
        let decision = match click.choice {
            Choice::Approve => AnswerDecision::Approve,
            Choice::Deny => AnswerDecision::Deny,
        };
        let body =
            AnswerBody { decision, digest: click.digest.clone(), reason: None, input: None, output: None };
        let after = answer_item(self, approver, item, body, "slack").await?;
        let by = approver.context.get("principal").and_then(|name| name.as_str()).unwrap_or_default();
        let done = match (click.choice, after.is_pending()) {
            (Choice::Deny, _) => "denied",
            (Choice::Approve, false) => "approved",
            (Choice::Approve, true) => "approved, and needs further approvals",
        };
        Ok(escape_controls(&format!("{}: {done} by {by}", item.request.tool_name)))
    }
}
