//! Hints on how to resume answered calls: resume the run, or repeat the call from the gateway's client.

use std::io::Write;

use super::{ApprovalsContext, ApprovalsError};
use crate::output::{BOLD, Output, count_noun, escape_line, quote_shell_word};
use callgate::approval::{InboxItem, RequestStatus, Tally};

impl ApprovalsContext<'_> {
    /// Prints the hint after an answer.
    pub(super) fn print_next_step(
        &self,
        item: &InboxItem,
        tally: &Tally,
        output: &mut Output,
    ) -> Result<(), ApprovalsError> {
        if is_from_gateway(item) {
            let hint = match is_runnable(tally) {
                true => "the call resumes when the client repeats it with the same arguments",
                false => "the client receives the answer when it repeats the same call",
            };
            return Ok(writeln!(output, "{hint}")?);
        }
        let conversation = escape_line(&item.key.conversation).into_owned();
        let command =
            format!("callgate run --resume --state {} --policies … CALLS", quote_shell_word(&self.url));
        let command = output.paint(BOLD, &command).into_owned();
        Ok(writeln!(output, "resume the session `{conversation}`: {command}")?)
    }

    /// Prints the hints after a list, for answered requests that the list omits.
    pub(super) fn print_answered_calls(
        &self,
        items: &[InboxItem],
        output: &mut Output,
    ) -> Result<(), ApprovalsError> {
        let answered = || items.iter().filter(|item| matches!(item.status, RequestStatus::Answered(_)));
        let all = answered().count();
        let of_gateways = answered().filter(|item| is_from_gateway(item)).count();
        if all > 0 && all < items.len() {
            writeln!(output)?;
        }
        let questions = |count| count_noun(count, "answered call", "answered calls");
        match all - of_gateways {
            0 => {}
            count => {
                let go = if count == 1 { "resumes" } else { "resume" };
                let command = format!("callgate run --resume --state {} …", quote_shell_word(&self.url));
                writeln!(output, "{} {go} with {command}", questions(count))?;
            }
        }
        match of_gateways {
            0 => {}
            1 => writeln!(output, "{} resumes when the client repeats it", questions(1))?,
            count => {
                writeln!(output, "{} resume when the clients repeat them", questions(count))?;
            }
        }
        Ok(())
    }
}

/// Whether a call with this answer runs, or gets its result from the answer.
pub(super) fn is_runnable(tally: &Tally) -> bool {
    matches!(tally, Tally::Approved { .. } | Tally::Answered { .. })
}

/// Whether the request is from a gateway: its calls have a server and ids such as `a3a3c43c-2`, a random connection id and a number.
fn is_from_gateway(item: &InboxItem) -> bool {
    let request = &item.request;
    let is_named_so = |(connection_id, number): (&str, &str)| {
        connection_id.len() == 8
            && connection_id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            && !number.is_empty()
            && number.bytes().all(|digit| digit.is_ascii_digit())
    };
    request.server.is_some() && request.tool_call_id.split_once('-').is_some_and(is_named_so)
}
