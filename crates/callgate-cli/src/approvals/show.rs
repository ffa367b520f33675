//! `callgate approvals show`: one approval request with its card, answers and progress.

use std::io::Write;

use super::json_output as forms;
use super::{ApprovalsContext, ApprovalsError, answer_label};
use crate::OutputFormat;
use crate::output::{BOLD, DIM, Output, count_noun, escape_line, format_time, quote_name, quote_shell_word};
use callgate::approval::{InboxItem, RequestStatus};
use callgate::card::{Card, CardExtent};
use callgate::message::ResponsePart;
use callgate::safe_text::{escape_json, escape_quoted};
use callgate_server::{approval_card, approval_document, editable_paths};

impl ApprovalsContext<'_> {
    pub(super) fn show(&self, id: &str, output: &mut Output) -> Result<(), ApprovalsError> {
        let item = self.runtime.block_on(self.inbox.find(id))?;
        if self.format == OutputFormat::Json {
            return forms::write_json(&approval_document(&item), output);
        }
        // Commands take the place of the card's buttons.
        let card = Card { actions: Vec::new(), ..approval_card(&item, CardExtent::Complete) };
        writeln!(output, "{}", card.to_text().trim_end())?;
        writeln!(output, "\nSession: {}", quote_name(&item.key.conversation))?;
        if let Some(requester) =
            item.bound_request.as_ref().and_then(|question| question.requester.as_deref())
        {
            writeln!(output, "Requester: {}", quote_name(requester))?;
        }
        if let Some(question) = &item.bound_request {
            writeln!(output, "Requested: {}", format_time(&question.asked_at.to_string()))?;
            let paths = editable_paths(&item);
            if !paths.is_empty() {
                writeln!(output, "Editable: {}", escape_line(&paths.join(", ")))?;
            }
        }
        writeln!(output, "Stage: {}", format_progress(&item))?;
        for (index, answer) in item.answers.iter().enumerate() {
            let ignored = item.ignored.iter().find(|ignored| ignored.index == index);
            let ignored = ignored.map(|ignored| format!(" (does not count: {})", escape_line(&ignored.why)));
            writeln!(output, "Answer: {}{}", format_answer(answer), ignored.unwrap_or_default())?;
        }
        if item.is_pending() {
            // The id as given, which identifies exactly one request.
            let id = quote_shell_word(id);
            let command =
                format!("callgate approvals approve {id} --state {} --as NAME", quote_shell_word(&self.url));
            let command = output.paint(BOLD, &command).into_owned();
            let others = output.paint(DIM, "(or deny, edit, answer, cancel)").into_owned();
            writeln!(output, "\n{command}  {others}")?;
        }
        Ok(())
    }
}

/// Formats an answer in one line.
fn format_answer(answer: &ResponsePart) -> String {
    let mut text = answer_label(answer).to_owned();
    if let Some(by) = &answer.answered_by {
        text.push_str(&format!(" by {}", quote_name(&by.principal)));
    }
    if let Some(at) = &answer.answered_at {
        text.push_str(&format!(", {}", escape_line(&format_time(at))));
    }
    for value in [&answer.edited_input, &answer.output].into_iter().flatten() {
        text.push_str(&format!(": {}", escape_json(value, usize::MAX)));
    }
    if let Some(reason) = &answer.reason {
        text.push_str(&format!(" – {}", escape_quoted(reason, usize::MAX)));
    }
    text
}

fn join_names(of: &[String]) -> String {
    of.iter().map(|of| quote_name(of)).collect::<Vec<_>>().join(", ")
}

/// Formats the progress of an approval request in a few words.
pub(super) fn format_progress(item: &InboxItem) -> String {
    match &item.status {
        RequestStatus::Pending { by } if by.is_empty() => {
            format!("pending: {}", format_missing_approvals(item))
        }
        RequestStatus::Pending { by } => {
            format!("pending, approved by {}: {}", join_names(by), format_missing_approvals(item))
        }
        RequestStatus::Answered(tally) => format!("{tally}, not resumed yet"),
        RequestStatus::Expired { at } => format!("expired {}", format_time(&at.to_string())),
        RequestStatus::Invalid(error) => format!("invalid: {error}"),
        RequestStatus::Running { at } => format!("running since {}", format_time(&at.to_string())),
        RequestStatus::Completed { at, outcome } => {
            format!("completed: {} at {}", outcome.outcome, format_time(&at.to_string()))
        }
    }
}

/// Formats the missing approvals: `1 more approval is needed`.
pub(super) fn format_missing_approvals(item: &InboxItem) -> String {
    let open: Vec<_> = item.requirements.iter().filter(|ask| ask.missing() > 0).collect();
    let several = item.requirements.len() > 1;
    let needs = open.iter().map(|ask| {
        let count = usize::try_from(ask.missing()).unwrap_or(usize::MAX);
        let more = if ask.approvals > 0 { "more " } else { "" };
        let count = count_noun(count, &format!("{more}approval is"), &format!("{more}approvals are"));
        let of = match ask.quorum {
            1 => String::new(),
            quorum => format!(" ({} of {quorum})", ask.approvals),
        };
        let from = match ask.approvers.as_slice() {
            [] => String::new(),
            approvers => {
                let approvers: Vec<String> = approvers.iter().map(|approver| quote_name(approver)).collect();
                format!(" from {}", approvers.join(" or "))
            }
        };
        let whose = match &ask.policy {
            Some(policy) if several => format!(" for {}", quote_name(policy)),
            _ => String::new(),
        };
        format!("{count} needed{from}{of}{whose}")
    });
    let needs: Vec<String> = needs.collect();
    if needs.is_empty() { "the approvals contradict each other".to_owned() } else { needs.join("; ") }
}
