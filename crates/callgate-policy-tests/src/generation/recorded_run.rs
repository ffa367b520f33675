//! Runs recorded calls against the rules, as a test would: rounds of records → outcomes.

use std::sync::Arc;

use jiff::Timestamp;

use crate::case::CallStep;
use crate::runner::test_engine;
use crate::stub::StubbedAnswer;
use crate::stubbed_tools::StubbedTools;
use crate::test_file::DEFAULT_CLOCK_START;
use callgate::call::{CallRecord, Outcome, RecordedResult, ToolCall};
use callgate::host::{ManualClock, ToolError};
use callgate::json::Value;
use callgate::policy::CompiledPolicies;
use callgate::tools::ToolCatalog;

/// The outcome of a call.
pub(super) struct RecordedCallResult {
    pub(super) outcome: Outcome,
    pub(super) runs: usize,
}

/// The calls of a session, by round; a single call is a round of one.
pub(super) type RecordedRounds = Vec<Vec<CallRecord>>;

/// The outcomes of a session's calls, in order. The calls are numbered as in a test without ids.
pub(super) fn run_recorded(
    policies: &Arc<CompiledPolicies>,
    tools: &Arc<ToolCatalog>,
    rounds: &RecordedRounds,
) -> Vec<RecordedCallResult> {
    let clock = ManualClock::new(DEFAULT_CLOCK_START.parse().unwrap_or(Timestamp::UNIX_EPOCH));
    let engine = test_engine(Arc::clone(policies), Arc::clone(tools), &clock).build();
    let mut session = engine.session();
    let mut results = Vec::new();
    let mut number = 0;
    for round in rounds {
        let steps: Vec<CallStep> = round
            .iter()
            .map(|record| {
                number += 1;
                to_step(record, number)
            })
            .collect();
        let tools = StubbedTools::new(&steps, &[], &clock);
        if let Some(task) = round.iter().filter_map(CallRecord::task).next_back() {
            session.set_task(task);
        }
        let outcomes = match steps.as_slice() {
            [step] => vec![clock.block_on(session.execute(step.call.clone(), &tools))],
            _ => {
                let calls = steps.iter().map(|step| step.call.clone()).collect();
                clock.block_on(session.execute_round(calls, &tools))
            }
        };
        results.extend(steps.iter().zip(outcomes).map(|(step, outcome)| {
            let runs = tools.runs(&step.call.id);
            RecordedCallResult { outcome, runs }
        }));
    }
    results
}

fn to_step(record: &CallRecord, number: usize) -> CallStep {
    let call = ToolCall { id: format!("call_{number}"), options: Value::Null, ..record.call.clone() };
    let result = record.recorded.as_ref().map(|recorded| match recorded {
        RecordedResult::Output(output) => Ok(output.clone()),
        RecordedResult::Error { message, kind } => {
            Err(ToolError { kind: kind.clone(), ..ToolError::new(message) })
        }
    });
    let answers = result.map(|result| vec![StubbedAnswer { result: Some(result), takes: None }]);
    CallStep { call, task: None, answers, expect: None }
}
