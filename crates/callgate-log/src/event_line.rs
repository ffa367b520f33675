//! Events as lines of JSON: `EngineEvent` → one line of a log.
//!
//! The members of a call (`id`, `tool`, `server`, `session`, `context`, `task`, `input`, `recorded`) have the names that
//! `callgate run` reads, so that a log with content is a recording.

use callgate::call::{OutcomeKind, PolicyTrace, Reason};
use callgate::json::{Digest, Value, json};
use callgate::seal::{Keys, Purpose};
use callgate::{
    CallIdentity, CandidateDecided, CandidateDifference, EngineEvent, EngineEventKind, NotificationReport,
    Outcome, RecordedAnswer, RulesEvent, ToolCallSpan,
};

use crate::event_name::event_name;
use crate::json_line::JsonLine;

/// The version of the format of events. It grows with changes that readers must know; new members are not such a change.
pub const FORMAT_VERSION: u64 = 1;

/// What a log contains of arguments and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Keyed digests, by which equal values can be recognized, and no messages, which may quote them.
    #[default]
    Digests,
    /// The values themselves, as policies redact them. `callgate run` and `callgate backtest` can read such a log.
    Redacted,
}

/// Formats events as lines of JSON.
#[derive(Clone, Debug)]
pub struct EventFormat {
    content: Content,
    keys: Keys,
}

impl EventFormat {
    /// A format with this content. Digests are made with the keys: those of the server, so that they are comparable across processes.
    pub fn new(content: Content, keys: Keys) -> Self {
        Self { content, keys }
    }

    /// What lines contain of arguments and results.
    pub fn content(&self) -> Content {
        self.content
    }

    /// Whether an event is recorded: all are, except decisions of candidate rules that are those of the active ones.
    pub fn records(&self, event: &EngineEvent<'_>) -> bool {
        !matches!(&event.kind, EngineEventKind::CandidateDecided(decided) if decided.difference == CandidateDifference::None)
    }

    /// The line of an event, without a line break at its end.
    pub fn line(&self, event: &EngineEvent<'_>) -> String {
        let mut line = start_line(event_name(&event.kind), event.time);
        if !event.revision.is_empty() {
            line.string("revision", event.revision);
        }
        if let Some(run) = &event.run {
            line.string("run", run.request_id);
            line.string("session", run.session.unwrap_or(run.conversation));
            if run.iteration > 0 {
                line.number("iteration", run.iteration);
            }
        }
        if let Some(call) = &event.call {
            self.write_call(&mut line, call);
        }
        if let (EngineEventKind::CallCompleted(_), Some(call), Content::Redacted) =
            (&event.kind, &event.call, self.content)
        {
            write_surroundings(&mut line, call);
        }
        self.write_kind(&mut line, &event.kind);
        line.finish()
    }

    /// The line of an event, within a length: without its values if they are too long, or else with its digest only.
    pub(crate) fn bounded_line(&self, event: &EngineEvent<'_>, limit: usize) -> String {
        let line = self.line(event);
        if line.len() <= limit {
            return line;
        }
        let without_values = Self::new(Content::Digests, self.keys.clone()).line(event);
        if without_values.len() <= limit {
            return without_values;
        }
        let mut short = start_line(event_name(&event.kind), event.time);
        short.string("revision", event.revision);
        short.number("omitted_bytes", line.len() as u64);
        short.string("omitted_digest", &Digest::compute(line.as_bytes()).to_string());
        short.finish()
    }

    fn write_call(&self, line: &mut JsonLine, call: &CallIdentity<'_>) {
        line.string("id", call.id);
        line.string("tool", call.tool);
        line.optional_string("server", call.server);
        for member in ["principal", "tenant", "issuer"] {
            if let Some(value) = call.context.get(member).filter(|value| !value.is_null()) {
                line.value(member, value);
            }
        }
        if let Some(round) = call.round.filter(|round| round.size > 1) {
            line.object("round_position", |line| {
                line.number("index", round.index as u64);
                line.number("size", round.size as u64);
            });
        }
    }

    fn write_kind(&self, line: &mut JsonLine, kind: &EngineEventKind<'_>) {
        match kind {
            EngineEventKind::CallDecided(decided) => {
                line.string("effect", decided.effect.name());
                self.write_reason(line, decided.reason);
                write_policies(line, decided.policies);
                self.write_value(line, "input", decided.input);
            }
            // Its arguments are those of the decision.
            EngineEventKind::CallStarted(_) => {}
            EngineEventKind::CallCompleted(span) => self.write_outcome(line, span),
            EngineEventKind::ApprovalRequested(request) => {
                line.string("approval_id", &request.approval_id);
                line.strings("asking_policies", request.policies.iter().map(String::as_str));
                line.optional_string("expires_at", request.expires_at.as_deref());
                if self.content == Content::Redacted {
                    line.optional_string("message", request.message.as_deref());
                }
                self.write_value(line, "input", &request.input);
            }
            EngineEventKind::ApprovalDecided(decision) => {
                line.string("approval_id", &decision.approval_id);
                line.boolean("approved", decision.approved);
                line.string("code", &decision.code);
                line.strings("by", decision.by.iter().map(String::as_str));
                line.optional_string("comment", decision.reason.as_deref());
            }
            EngineEventKind::LimitRefused(refused) => {
                line.string("policy", refused.policy);
                line.amount("cost", refused.cost);
                if let Some(retry_after) = refused.retry_after {
                    line.number("retry_after_ms", milliseconds(retry_after));
                }
                line.flag("shadow", refused.shadow);
            }
            EngineEventKind::CacheHit(hit) => {
                line.string("policy", hit.policy);
                line.number("age_ms", milliseconds(hit.age));
            }
            EngineEventKind::RunShadow(shadow) => {
                line.string("policy", &shadow.id);
                line.string("kind", &shadow.kind);
                line.string("verdict", shadow.verdict.name());
                if let Some(reason) = &shadow.reason {
                    self.write_reason(line, reason);
                }
            }
            EngineEventKind::HookFailed(failure) => {
                line.string("hook", failure.hook);
                line.string("point", failure.point);
                line.string("message", failure.message);
            }
            EngineEventKind::StoreFailed(error) => {
                line.string("code", error.code());
                line.string("message", &error.to_string());
            }
            EngineEventKind::Rules(change) | EngineEventKind::CandidateRules(change) => {
                write_rules(line, change)
            }
            EngineEventKind::CandidateDecided(decided) => write_candidate(line, decided),
            EngineEventKind::CandidateSkipped(calls) => line.number("count", *calls),
            EngineEventKind::AnswerRecorded(answer) => write_answer(line, answer),
            EngineEventKind::NotificationSent(report) | EngineEventKind::NotificationFailed(report) => {
                write_notification(line, report);
            }
            // A later version of the library has more; they are named, so that nothing is lost silently.
            other => line.string("message", &format!("{other:?}")),
        }
    }

    fn write_outcome(&self, line: &mut JsonLine, span: &ToolCallSpan<'_>) {
        let outcome = span.outcome;
        line.string("outcome", outcome.outcome.name());
        self.write_reason(line, &outcome.reason);
        write_policies(line, &outcome.policies);
        if let Some(approved) = &outcome.approved {
            line.value("approved_by", &json!(approved));
        }
        line.flag("replayed", outcome.replayed);
        line.flag("dry", outcome.dry);
        if !outcome.audit.is_empty() {
            line.value("audit", &json!(outcome.audit));
        }
        if let Some(attempts) = outcome.attempts {
            line.number("attempts", u64::from(attempts));
        }
        if let Some(retry_after) = outcome.retry_after_ms {
            line.number("retry_after_ms", retry_after);
        }
        line.number("duration_us", outcome.duration_us);
        self.write_value(line, "input", &outcome.input);
        self.write_recorded(line, outcome);
    }

    /// The result of a call that reached its tool.
    fn write_recorded(&self, line: &mut JsonLine, outcome: &Outcome) {
        if !is_of_tool(outcome.outcome) {
            return;
        }
        match (self.content, &outcome.output, &outcome.error) {
            (Content::Redacted, _, Some(error)) => {
                line.object("recorded", |line| line.string("error", error))
            }
            (Content::Redacted, Some(output), None) => {
                line.object("recorded", |line| line.value("output", output));
            }
            (Content::Digests, Some(output), _) => self.write_value(line, "output", output),
            (Content::Redacted, None, None) | (Content::Digests, None, _) => {}
        }
    }

    /// A reason. Its message may quote arguments and results.
    fn write_reason(&self, line: &mut JsonLine, reason: &Reason) {
        line.object("reason", |line| {
            line.optional_string("policy", reason.policy.as_deref());
            line.string("code", &reason.code);
            if self.content == Content::Redacted {
                line.string("message", &reason.message);
            }
        });
    }

    /// A value, or its digest.
    fn write_value(&self, line: &mut JsonLine, name: &str, value: &Value) {
        match self.content {
            Content::Redacted => line.value(name, value),
            Content::Digests => {
                let digest = self.keys.digest(Purpose::Log, value).to_string();
                line.string(&format!("{name}_digest"), &digest);
            }
        }
    }
}

/// The first members of a line.
pub(crate) fn start_line(event: &str, time: jiff::Timestamp) -> JsonLine {
    let mut line = JsonLine::new();
    line.number("version", FORMAT_VERSION);
    line.string("event", event);
    line.time("time", time);
    line
}

fn write_answer(line: &mut JsonLine, answer: &RecordedAnswer<'_>) {
    line.string("session", answer.session);
    line.string("id", answer.call);
    line.string("tool", answer.tool);
    line.string("approval_id", answer.approval_id);
    line.string("decision", answer.decision);
    line.optional_string("approver", answer.by);
    line.string("via", answer.via);
    line.boolean("complete", answer.complete);
}

fn write_notification(line: &mut JsonLine, report: &NotificationReport<'_>) {
    line.string("session", report.session);
    line.string("id", report.call);
    line.string("tool", report.tool);
    line.string("approval_id", report.approval_id);
    line.string("about", report.about);
    line.string("message_id", report.message);
    line.string("channel", report.channel);
    line.number("channel_number", report.number);
    line.optional_string("recipient", report.recipient);
    line.number("attempts", report.attempts);
    line.optional_string("message", report.failure);
}

/// What a recording needs of a call beside its arguments and its result.
fn write_surroundings(line: &mut JsonLine, call: &CallIdentity<'_>) {
    if !call.context.is_null() {
        line.value("context", call.context);
    }
    if let Some(turns) = call.task.document().and_then(|task| task.get("turns")) {
        line.value("task", turns);
    }
}

/// Whether an outcome says what the tool returned.
fn is_of_tool(kind: OutcomeKind) -> bool {
    matches!(kind, OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Failed | OutcomeKind::Recovered)
}

fn write_policies(line: &mut JsonLine, policies: &[PolicyTrace]) {
    if policies.is_empty() {
        return;
    }
    line.objects("policies", policies, |line, policy| {
        line.string("id", &policy.id);
        line.string("kind", &policy.kind);
        line.string("phase", policy.phase.name());
        line.string("verdict", policy.verdict.name());
        line.flag("shadow", policy.shadow);
        line.flag("undecided", policy.undecided);
    });
}

fn write_candidate(line: &mut JsonLine, decided: &CandidateDecided<'_>) {
    line.string("difference", decided.difference.name());
    line.string("candidate_revision", decided.revision);
    for (name, decision) in [("active", &decided.active), ("candidate", &decided.candidate)] {
        line.object(name, |line| {
            line.string("effect", decision.effect.name());
            line.optional_string("policy", decision.policy);
            line.string("code", decision.code);
        });
    }
    write_policies(line, decided.policies);
}

fn write_rules(line: &mut JsonLine, change: &RulesEvent<'_>) {
    match change {
        RulesEvent::Applied { from, .. } => line.string("from", from),
        RulesEvent::Rejected { revision, summary } => {
            line.optional_string("rejected_revision", *revision);
            line.string("message", summary);
        }
        RulesEvent::Pending { revision, relaxations } => {
            line.string("pending_revision", revision);
            line.strings("relaxations", relaxations.iter().map(String::as_str));
        }
        _ => {}
    }
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
