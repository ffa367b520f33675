//! A log for people, on stderr: one line for each event that a person may want to act on.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use callgate::call::OutcomeKind;
use callgate::safe_text::is_hidden;
use callgate::{CandidateDifference, EngineEvent, EngineEventKind, Observer, RulesEvent};
use jiff::Timestamp;

use crate::event_line::{EventSeverity, event_severity};
use crate::log_thread::{LineSink, LogRow, LogThread, OnFailure, OnFull, ThreadOptions};

/// Writes the outcomes of calls, approvals, refused limits, changes of rules and failures to stderr, by a thread of its own. A terminal or
/// program that does not read delays no call; what it misses is counted. Clones share the thread.
#[derive(Clone, Debug)]
pub struct StderrLog {
    thread: Arc<LogThread>,
}

impl StderrLog {
    /// Starts the log.
    ///
    /// # Errors
    /// The operating system starts no thread.
    pub fn start() -> io::Result<Self> {
        let options = ThreadOptions::new(OnFull::Drop, OnFailure::Continue);
        Ok(Self { thread: Arc::new(LogThread::start(StderrSink::default(), None, options)?) })
    }

    /// Writes every line so far, for five seconds at most, and ends the thread. Later lines are lost.
    pub fn close(&self) {
        self.thread.close();
    }

    /// The number of lines that are lost.
    pub fn lost(&self) -> u64 {
        self.thread.lost()
    }

    /// Why stderr can't be written at present.
    pub fn failure(&self) -> Option<String> {
        self.thread.failure()
    }
}

impl Observer for StderrLog {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if let Some(text) = text_line(event) {
            self.thread.send(LogRow { text, severity: event_severity(&event.kind) });
        }
    }
}

/// Writes to the descriptor itself: the lock of `std::io::Stderr`, held while nobody reads, would stop everything that prints.
#[derive(Default)]
struct StderrSink {
    /// The number of bytes of the first line that are written.
    written: usize,
}

impl LineSink for StderrSink {
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        while let Some(line) = lines.front() {
            let rest = line.text.as_bytes().get(self.written..).unwrap_or_default();
            match rest.is_empty() {
                true => {
                    lines.pop_front();
                    self.written = 0;
                }
                false => self.written += rustix::io::retry_on_intr(|| rustix::io::write(io::stderr(), rest))?,
            }
        }
        Ok(())
    }

    fn lost_report(&self, count: u64) -> LogRow {
        let text = format!("{:.3} {count} lines are missing here\n", Timestamp::now());
        LogRow { text, severity: EventSeverity::Warning }
    }
}

/// The line of an event, with its line break. `None` for events that say nothing new to a person.
pub fn text_line(event: &EngineEvent<'_>) -> Option<String> {
    let what = describe(&event.kind)?;
    let call = event.call.map(|call| {
        let principal = call.context.get("principal").and_then(|principal| principal.as_str());
        let by = principal.map_or_else(String::new, |principal| format!(" by {principal}"));
        let server = call.server.map_or_else(String::new, |server| format!("{server}/"));
        format!("{server}{}{by} ", call.tool)
    });
    // Names and messages may come from clients and servers: none may end the line or control the terminal.
    let text = single_line(&format!("{}{what}", call.unwrap_or_default()));
    Some(format!("{:.3} {text}\n", event.time))
}

/// Escapes control characters and invisible ones.
fn single_line(text: &str) -> String {
    let escaped =
        |c: char| if c.is_control() || is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

fn describe(kind: &EngineEventKind<'_>) -> Option<String> {
    Some(match kind {
        EngineEventKind::CallCompleted(span) => {
            let outcome = span.outcome;
            let milliseconds = outcome.duration_us.div_ceil(1_000);
            match (&outcome.reason.policy, outcome.outcome) {
                (_, OutcomeKind::Executed | OutcomeKind::Cached) => {
                    format!("{} in {milliseconds} ms", outcome.outcome)
                }
                (Some(policy), kind) => format!("{kind} by `{policy}`: {}", outcome.reason.message),
                (None, kind) => format!("{kind} ({}): {}", outcome.reason.code, outcome.reason.message),
            }
        }
        EngineEventKind::ApprovalDecided(decision) => {
            let by = if decision.by.is_empty() {
                String::new()
            } else {
                format!(" by {}", decision.by.join(", "))
            };
            format!("{}{by}", decision.code.replace('_', " "))
        }
        EngineEventKind::LimitRefused(refused) if refused.shadow => {
            format!("would exceed the limit `{}` (shadow mode)", refused.policy)
        }
        EngineEventKind::RunShadow(shadow) => {
            format!("`{}` would have changed or stopped the run (shadow mode)", shadow.id)
        }
        EngineEventKind::HookFailed(failure) => {
            format!("the hook `{}` failed in `{}`: {}", failure.hook, failure.point, failure.message)
        }
        EngineEventKind::StoreFailed(error) => format!("the state store failed: {error}"),
        EngineEventKind::CandidateDecided(decided) if decided.difference != CandidateDifference::None => {
            let by = decided.candidate.policy.map_or_else(String::new, |policy| format!(" by `{policy}`"));
            format!(
                "the candidate rules differ ({}): {}{by}",
                decided.difference.name(),
                decided.candidate.effect.name()
            )
        }
        EngineEventKind::CandidateSkipped(calls) => {
            format!("the candidate rules are slower than the calls: {calls} not evaluated")
        }
        EngineEventKind::CandidateRules(RulesEvent::Rejected { summary, .. }) => {
            format!("the reload of the candidate rules is rejected: {summary}")
        }
        EngineEventKind::CandidateRules(RulesEvent::Applied { .. }) => {
            "the candidate rules are reloaded".to_owned()
        }
        EngineEventKind::Rules(change) => match change {
            RulesEvent::Loaded => return None,
            RulesEvent::Applied { confirmed: true, .. } => "the pending rules are confirmed".to_owned(),
            RulesEvent::Applied { .. } => "the rules are reloaded".to_owned(),
            RulesEvent::Rejected { summary, .. } => format!("the reload of the rules is rejected: {summary}"),
            RulesEvent::Pending { .. } => "new rules may allow more, and are pending confirmation".to_owned(),
            _ => return None,
        },
        _ => return None,
    })
}
