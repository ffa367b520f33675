//! How calls go on whose questions are answered: a run is taken further, a gateway's client makes its call again.

use std::io::Write;

use super::{Desk, Refusal};
use crate::approval::{Item, Progress, Standing};
use crate::cli::output::{BOLD, Output, amount, one_line, shell_word};

impl Desk<'_> {
    /// After the answer to one question.
    pub(super) fn say_how_to_go_on(
        &self,
        item: &Item,
        standing: &Standing,
        output: &mut Output,
    ) -> Result<(), Refusal> {
        if is_of_gateway(item) {
            let what = match runs(standing) {
                true => "the same call with the same arguments goes on when the client makes it again",
                false => "the client is told when it makes the same call again",
            };
            return Ok(writeln!(output, "{what}")?);
        }
        let conversation = one_line(&item.name.conversation).into_owned();
        let command = format!("callgate run --resume --state {} --policies … CALLS", shell_word(&self.url));
        let command = output.paint(BOLD, &command).into_owned();
        Ok(writeln!(output, "take the session `{conversation}` further: {command}")?)
    }

    /// After a list: what is not shown because it waits for nobody any more.
    pub(super) fn say_what_is_answered(&self, items: &[Item], output: &mut Output) -> Result<(), Refusal> {
        let answered = || items.iter().filter(|item| matches!(item.progress, Progress::Answered(_)));
        let all = answered().count();
        let of_gateways = answered().filter(|item| is_of_gateway(item)).count();
        if all > 0 && all < items.len() {
            writeln!(output)?;
        }
        let questions = |count| amount(count, "answered question", "answered questions");
        match all - of_gateways {
            0 => {}
            count => {
                let go = if count == 1 { "goes" } else { "go" };
                let command = format!("callgate run --resume --state {} …", shell_word(&self.url));
                writeln!(output, "{} {go} on with {command}", questions(count))?;
            }
        }
        match of_gateways {
            0 => {}
            1 => writeln!(output, "{} goes on when the client makes the same call again", questions(1))?,
            count => {
                writeln!(output, "{} go on when the clients make the same calls again", questions(count))?;
            }
        }
        Ok(())
    }
}

/// Whether a call runs that was answered so, or has its answer.
pub(super) fn runs(standing: &Standing) -> bool {
    matches!(standing, Standing::Approved { .. } | Standing::Answered { .. })
}

/// Whether a gateway asks: its calls have a server and are named `a3a3c43c-2`, by what is drawn for a connection and a number.
fn is_of_gateway(item: &Item) -> bool {
    let request = &item.request;
    let is_named_so = |(drawn, number): (&str, &str)| {
        drawn.len() == 8
            && drawn.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            && !number.is_empty()
            && number.bytes().all(|digit| digit.is_ascii_digit())
    };
    request.server.is_some() && request.tool_call_id.split_once('-').is_some_and(is_named_so)
}
