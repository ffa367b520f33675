//! Candidate rules evaluate completed calls beside the active ones: what they compare, and that they change nothing.

mod differences;
mod isolation;
mod reloads;

use std::sync::{Arc, Mutex};

use callgate::{
    Candidate, CandidateDifference, CandidateOptions, EngineEvent, EngineEventKind, Observer, ToolCall,
    ToolError, ToolExecutor, ToolResponse, load_text,
};

/// One line for each difference: `c1 stricter run→deny no-mail/denied`, and each other event of the candidate.
#[derive(Clone, Default)]
struct Differences(Arc<Mutex<Vec<String>>>);

impl Differences {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Differences {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let line = match &event.kind {
            EngineEventKind::CandidateDecided(decided) if decided.difference == CandidateDifference::None => {
                return;
            }
            EngineEventKind::CandidateDecided(decided) => {
                let effect = |effect| format!("{effect:?}").to_lowercase();
                let candidate = &decided.candidate;
                format!(
                    "{} {} {}→{} {}/{}",
                    event.call.unwrap().id,
                    decided.difference.name(),
                    effect(decided.active.effect),
                    effect(candidate.effect),
                    candidate.policy.unwrap_or_default(),
                    candidate.code
                )
            }
            EngineEventKind::CandidateSkipped(calls) => format!("skipped {calls}"),
            EngineEventKind::CandidateRules(change) => format!("rules {change:?}"),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// Returns its arguments, or fails if they have an `error`, at most so many `times`. Counts its calls.
#[derive(Clone, Default)]
struct CountedEcho(Arc<Mutex<Vec<String>>>);

impl CountedEcho {
    fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl ToolExecutor for CountedEcho {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let line = format!("{} {}", call.tool, call.input);
        let mut calls = self.0.lock().unwrap();
        let before = calls.iter().filter(|known| **known == line).count();
        calls.push(line);
        let times = call.input.get("times").and_then(|times| times.as_u64()).unwrap_or(u64::MAX);
        match call.input.get("error").and_then(|error| error.as_str()) {
            Some(error) if (before as u64) < times => Err(ToolError::new(error)),
            _ => Ok(call.input.clone().into()),
        }
    }
}

fn candidate(rules: &str) -> Candidate {
    Candidate::new(load_text(rules).unwrap(), CandidateOptions::default())
}
