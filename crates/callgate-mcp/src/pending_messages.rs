//! Messages about a call that is pending approval: to the agent, who must approve it and what to do then; to the operator, how to
//! answer.
//!
//! The agent's message names no command, file or id: an agent with a shell would use them to approve its own call.

use std::fmt::Write;

use super::gateway::Gateway;
use callgate::approval::ApprovalRequirement;
use callgate::call::ApprovalRequest;
use callgate::card::call_digest;
use callgate::message::RequestPart;
use callgate::safe_text::escape_controls;

/// Whether the client asked a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientPrompt {
    /// It can't ask, or must not: it does not authenticate who answers.
    NotAsked,
    /// It was asked, and nobody answered.
    Unanswered,
}

/// The message for the agent. `is_answerable`: people can answer outside the client.
pub(super) fn agent_message(
    askers: &[ApprovalRequirement],
    client: ClientPrompt,
    is_answerable: bool,
    message: &str,
) -> String {
    let approvers = approvers(askers);
    let then = match (is_answerable, client) {
        (true, _) => {
            "Once it is approved, make the same call with the same arguments again; until then it stays pending."
        }
        (false, ClientPrompt::Unanswered) => {
            "Nobody answered the approval request. The same call with the same arguments asks again."
        }
        (false, ClientPrompt::NotAsked) => {
            "Nobody can approve it: this client can't ask a person, and the gateway has no state in which others could answer."
        }
    };
    format!("Not run: pending approval. {message}\nApproval needed from {approvers}. {then}")
}

/// The approvers that each policy requires.
fn approvers(askers: &[ApprovalRequirement]) -> String {
    let mut demands: Vec<String> = askers.iter().map(approvers_of).collect();
    demands.sort_unstable();
    demands.dedup();
    match demands.is_empty() {
        true => "a person".to_owned(),
        false => demands.join(", and from "),
    }
}

fn approvers_of(asker: &ApprovalRequirement) -> String {
    let names = asker.approvers.iter().map(|name| escape_controls(name)).collect::<Vec<_>>().join(" or ");
    match (names.as_str(), asker.quorum) {
        ("", 0 | 1) => "a person".to_owned(),
        ("", quorum) => format!("{quorum} people"),
        (names, 0 | 1) => names.to_owned(),
        (names, quorum) => format!("{quorum} of {names}"),
    }
}

impl Gateway {
    /// Reports a new question to the operator, with the commands that answer it.
    pub(super) fn log_pending(&self, request: &ApprovalRequest) {
        let Some(state) = &self.approval_state else { return };
        let mut message =
            format!("{} is pending: `{}`", request.approval_id, escape_controls(&request.tool_name));
        if let Some(server) = &request.server {
            let _ = write!(message, " on `{}`", escape_controls(server));
        }
        let _ = write!(message, ", digest {}", call_digest(&RequestPart::from(request)));
        let state = escape_controls(state);
        let _ = write!(
            message,
            "; answer it with `callgate approvals approve {} --state {state} --as NAME`, list all with `callgate approvals list \
             --state {state}`",
            request.approval_id
        );
        self.log(&message);
    }
}
