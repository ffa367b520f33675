//! Events as text for people: one line for each event that a person may want to act on.

use callgate::call::OutcomeKind;
use callgate::safe_text::is_hidden;
use callgate::{CandidateDifference, EngineEvent, EngineEventKind, RulesEvent};

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
        EngineEventKind::AnswerRecorded(answer) => {
            let by = answer.by.unwrap_or("an anonymous approver");
            format!("{}: {} by {by} ({})", answer.tool, answer.decision, answer.via)
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
