//! Stubbed tools, which answer as the test file says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::case::CallStep;
use crate::stub::{Stub, StubbedAnswer};
use callgate::call::ToolCall;
use callgate::host::{Clock, ManualClock, ToolError, ToolExecutor, ToolResponse};
use callgate::json::Value;

/// An executor of stubbed tools for calls with distinct ids.
pub(super) struct StubbedTools<'a> {
    calls: Vec<&'a CallStep>,
    stubs: &'a [Arc<Stub>],
    clock: &'a ManualClock,
    /// How often each tool ran, by the id of its call.
    runs: Mutex<HashMap<String, usize>>,
}

impl<'a> StubbedTools<'a> {
    pub(super) fn new(
        calls: impl IntoIterator<Item = &'a CallStep>,
        stubs: &'a [Arc<Stub>],
        clock: &'a ManualClock,
    ) -> Self {
        Self { calls: calls.into_iter().collect(), stubs, clock, runs: Mutex::default() }
    }

    /// How often the tool of a call ran.
    pub(super) fn runs(&self, id: &str) -> usize {
        self.lock().get(id).copied().unwrap_or(0)
    }

    fn count_run(&self, id: &str) -> usize {
        let mut runs = self.lock();
        let count = runs.entry(id.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_answer(&self, call: &ToolCall, run: usize) -> Option<&StubbedAnswer> {
        let own = self.calls.iter().find(|step| step.call.id == call.id);
        let answers = own.and_then(|step| step.answers.as_ref()).or_else(|| {
            let stub = self.stubs.iter().find(|stub| stub.matches(call));
            stub.map(|stub| &stub.answers)
        })?;
        answers.get(run - 1).or_else(|| answers.last())
    }
}

impl ToolExecutor for StubbedTools<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let run = self.count_run(&call.id);
        let dry = || Ok(ToolResponse { dry: true, ..Value::Null.into() });
        let Some(answer) = self.find_answer(call, run) else { return dry() };
        if let Some(time) = answer.takes {
            self.clock.sleep(time).await;
        }
        match &answer.result {
            Some(Ok(output)) => Ok(output.clone().into()),
            Some(Err(error)) => Err(error.clone()),
            None => dry(),
        }
    }
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use std::time::Duration;

    use super::*;

    #[test]
    fn advances_the_clock_and_repeats_the_last_answer() {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let failing = StubbedAnswer {
            result: Some(Err(ToolError::new("again"))),
            takes: Some(Duration::from_secs(40)),
        };
        let working = StubbedAnswer { result: Some(Ok(json!(1))), takes: None };
        let call = ToolCall::new("c1", "t", json!({}));
        let step =
            CallStep { call: call.clone(), task: None, answers: Some(vec![failing, working]), expect: None };
        let tools = StubbedTools::new([&step], &[], &clock);
        let answers: Vec<_> =
            (0..3).map(|_| clock.block_on(tools.execute(&call)).map(|answer| answer.output)).collect();
        assert_eq!(answers, [Err(ToolError::new("again")), Ok(json!(1)), Ok(json!(1))]);
        assert_eq!((clock.now().as_second(), tools.runs("c1"), tools.runs("c2")), (40, 3, 0));
    }
}
