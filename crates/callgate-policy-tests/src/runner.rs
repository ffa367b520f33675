//! The suite and its runner: cases + bundle → [`SuiteReport`]. Each case has an engine and a thread of its own, so that one which panics or
//! never ends fails alone.

use std::any::Any;
use std::cell::LazyCell;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::case::{ApprovalReply, CallStep, CaseStep, Identities, TestCase, TestFile, TestedCall};
use crate::case_history::{CaseHistory, ReplyError};
use crate::coverage::Coverage;
use crate::expectation::{ActualResult, Expectation};
use crate::report::{CallReport, CaseReport, Failure, FileReport, ReplyReport, SuiteReport};
use crate::stubbed_tools::StubbedTools;
use callgate::call::Outcome;
use callgate::engine::{Engine, EngineBuilder};
use callgate::host::ManualClock;
use callgate::json::Value;
use callgate::kernel::EventListener;
use callgate::policy::CompiledPolicies;
use callgate::session::Session;
use callgate::tools::ToolCatalog;

/// The time limit of a case, by the system clock. Its own clock jumps, so that none takes long.
const CASE_TIME_LIMIT: Duration = Duration::from_secs(30);

/// The seed of the random number generator in each case.
const SEED: u64 = 0;

/// Cases that are ready to run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    pub(super) files: Vec<TestFile>,
}

impl Suite {
    /// The number of cases; each row of a table is one.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.cases.len()).sum()
    }

    /// Whether there are no cases.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The principals and roles of the callers and approvers in all cases.
    #[doc(hidden)]
    pub fn identities(&self) -> Identities {
        let mut identities = Identities::default();
        self.files.iter().flat_map(|file| &file.cases).for_each(|case| identities.add(case));
        identities
    }

    /// The calls of all cases, in order.
    #[doc(hidden)]
    pub fn calls(&self) -> impl Iterator<Item = TestedCall> {
        self.files.iter().flat_map(|file| &file.cases).flat_map(|case| case.tested_calls())
    }

    /// Whether a case sets the task.
    #[doc(hidden)]
    pub fn sets_task(&self) -> bool {
        self.files.iter().flat_map(|file| &file.cases).any(|case| case.sets_task())
    }

    /// The cases whose name, or whose file's name, contains this text, ignoring case.
    #[must_use]
    pub fn filter_by_name(&self, text: &str) -> Self {
        let text = text.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&text);
        let mut files = self.files.clone();
        for file in files.iter_mut().filter(|file| !has(&file.name)) {
            file.cases.retain(|case| has(&case.empty_report().full_name()));
        }
        files.retain(|file| !file.cases.is_empty());
        Self { files }
    }

    /// Runs all cases against a bundle, in order.
    pub fn run(&self, policies: &Arc<CompiledPolicies>) -> SuiteReport {
        self.run_with_progress(policies, &mut |_| {})
    }

    /// Runs all cases against a bundle, in order, and calls `seen` with each report as soon as the case has ended.
    pub fn run_with_progress(
        &self,
        policies: &Arc<CompiledPolicies>,
        seen: &mut dyn FnMut(&CaseReport),
    ) -> SuiteReport {
        self.run_with_listener(policies, None, seen)
    }

    /// Like [`Suite::run_with_progress`], and records which branches of the bundle the cases take.
    pub fn run_with_coverage(
        &self,
        policies: &Arc<CompiledPolicies>,
        coverage: &Arc<Coverage>,
        seen: &mut dyn FnMut(&CaseReport),
    ) -> SuiteReport {
        let listener: Arc<dyn EventListener> = Arc::clone(coverage) as _;
        self.run_with_listener(policies, Some(&listener), seen)
    }

    /// Like [`Suite::run_with_progress`], with a listener for every evaluation of a policy. A case that never ends keeps sending events.
    pub fn run_with_listener(
        &self,
        policies: &Arc<CompiledPolicies>,
        listener: Option<&Arc<dyn EventListener>>,
        seen: &mut dyn FnMut(&CaseReport),
    ) -> SuiteReport {
        let declared = LazyCell::new(|| declared_tools(policies));
        let files = self.files.iter().map(|file| {
            let tools = file.tools.as_ref().unwrap_or_else(|| &declared);
            let run = |case| {
                let (policies, tools) = (Arc::clone(policies), Arc::clone(tools));
                let rules = CaseRules { policies, tools, listener: listener.cloned() };
                let report = run_on_thread(rules, case, CASE_TIME_LIMIT, run_case);
                seen(&report);
                report
            };
            FileReport { file: file.name.clone(), cases: file.cases.iter().map(run).collect() }
        });
        SuiteReport { files: files.collect(), revision: policies.revision().to_owned() }
    }
}

/// The tools that rules declare, for test files that name none.
pub(super) fn declared_tools(policies: &CompiledPolicies) -> Arc<ToolCatalog> {
    Arc::new(ToolCatalog::new(policies.tools().iter().cloned()))
}

/// The rules that a case runs against, and its tools.
struct CaseRules {
    policies: Arc<CompiledPolicies>,
    tools: Arc<ToolCatalog>,
    listener: Option<Arc<dyn EventListener>>,
}

/// Whether a case passes against a bundle within this time.
pub(super) fn case_passes(
    policies: Arc<CompiledPolicies>,
    tools: Arc<ToolCatalog>,
    case: &Arc<TestCase>,
    limit: Duration,
) -> bool {
    run_on_thread(CaseRules { policies, tools, listener: None }, case, limit, run_case).passed
}

type RunCase = fn(CaseRules, &TestCase) -> CaseReport;

/// Runs a case on a thread of its own. The thread of a case that never ends is abandoned.
fn run_on_thread(rules: CaseRules, case: &Arc<TestCase>, limit: Duration, run: RunCase) -> CaseReport {
    let (send, receive) = mpsc::channel();
    let shared = Arc::clone(case);
    let thread = thread::Builder::new().name("case".to_owned()).spawn(move || {
        // The receiver is gone if the case took too long.
        let _ = send.send(run(rules, &shared));
    });
    let failed = |note: String| {
        let mut report = case.empty_report();
        report.add_case_failure(note);
        report
    };
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => return failed(format!("its thread can't be started: {error}")),
    };
    match receive.recv_timeout(limit) {
        Ok(report) => report,
        Err(RecvTimeoutError::Timeout) => {
            failed(format!("it did not end within {} s: a call waits forever", limit.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => failed(format!("Callgate panicked: {}", panic_message(&*panic))),
            Ok(()) => failed("it ended without a report".to_owned()),
        },
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

fn run_case(rules: CaseRules, case: &TestCase) -> CaseReport {
    let CaseRules { policies, tools, listener } = rules;
    let clock = ManualClock::new(case.clock);
    let mut engine = test_engine(policies, tools, &clock);
    let conversation = case.has_approval_replies().then(CaseHistory::new);
    if conversation.is_some() {
        engine = CaseHistory::configure_engine(engine);
    }
    let mut session = engine.build().session();
    if conversation.is_some() {
        session = CaseHistory::configure_session(session, case);
    }
    if let Some(listener) = listener {
        session = session.with_listener(listener);
    }
    *session.state_mut() = case.session.clone();
    session.set_task(case.task.clone());
    let mut run = CaseRun { case, clock, session, conversation, report: case.empty_report() };
    case.steps.iter().for_each(|step| run.run_step(step));
    if let Some(tested_call) = &case.tested_call {
        run.run_calls(std::slice::from_ref(tested_call));
    }
    run.report.passed = run.report.failures.is_empty();
    run.report
}

/// The engine of a case. Its random numbers are seeded, so that no case passes by chance.
pub(super) fn test_engine(
    policies: Arc<CompiledPolicies>,
    tools: Arc<ToolCatalog>,
    clock: &ManualClock,
) -> EngineBuilder {
    Engine::builder(policies).tool_catalog(tools).clock(clock.clone()).seed(SEED)
}

/// A running case.
struct CaseRun<'a> {
    case: &'a TestCase,
    clock: ManualClock,
    session: Session,
    /// Present if a step answers an approval request.
    conversation: Option<CaseHistory>,
    report: CaseReport,
}

impl CaseRun<'_> {
    fn run_step(&mut self, step: &CaseStep) {
        match step {
            CaseStep::Wait(time) => self.clock.advance(*time),
            CaseStep::Calls(calls) => self.run_calls(calls),
            CaseStep::Reply(reply) => self.run_reply(reply),
        }
    }

    fn run_calls(&mut self, steps: &[CallStep]) {
        let (case, clock) = (self.case, self.clock.clone());
        let tools = StubbedTools::new(steps, &case.stubs, &clock);
        let calls = || steps.iter().map(|step| &step.call);
        let session = &mut self.session;
        if let Some(task) = steps.iter().filter_map(|step| step.task.as_ref()).next_back() {
            session.set_task(task.clone());
        }
        let outcomes = match (&mut self.conversation, steps) {
            (Some(conversation), _) => {
                clock.block_on(conversation.run_round(session, &calls().collect::<Vec<_>>(), &tools))
            }
            (None, [step]) => Ok(vec![clock.block_on(session.execute(step.call.clone(), &tools))]),
            (None, _) => Ok(clock.block_on(session.execute_round(calls().cloned().collect(), &tools))),
        };
        match outcomes {
            Ok(outcomes) => {
                for (step, outcome) in steps.iter().zip(outcomes) {
                    let runs = tools.runs(&step.call.id);
                    self.record_result(step, &outcome, runs, step.expect.as_ref(), None);
                }
            }
            Err(error) => self.report.add_case_failure(error.to_string()),
        }
    }

    fn run_reply(&mut self, reply: &ApprovalReply) {
        let Some(conversation) = &mut self.conversation else { return };
        let (case, clock) = (self.case, self.clock.clone());
        let tools = StubbedTools::new(case.calls(), &case.stubs, &clock);
        let session = &mut self.session;
        let replied = match clock.block_on(conversation.reply_and_resume(session, reply, &tools, &clock)) {
            Ok(replied) => replied,
            Err(error) => return self.report.failures.push(reply_failure(reply, &error)),
        };
        let report = ReplyReport {
            said: reply.action.key().to_owned(),
            by: reply.approver.as_ref().map(|by| by.principal.clone()),
            ignored: replied.ignored,
        };
        let meant = std::iter::once((&replied.outcome, reply.expect.as_ref()));
        for (outcome, expect) in meant.chain(replied.other_outcomes.iter().map(|outcome| (outcome, None))) {
            let Some(step) = case.calls().find(|step| step.call.id == outcome.id) else { continue };
            self.record_result(step, outcome, tools.runs(&outcome.id), expect, Some(&report));
        }
    }

    /// Records the result of a call and checks its expectation.
    fn record_result(
        &mut self,
        step: &CallStep,
        outcome: &Outcome,
        runs: usize,
        expect: Option<&Expectation>,
        reply: Option<&ReplyReport>,
    ) {
        self.report
            .calls
            .push(CallReport { reply: reply.cloned(), ..CallReport::from_outcome(outcome, runs) });
        let ignored = reply.and_then(|reply| reply.ignored.as_deref());
        let result = ActualResult { call: &step.call, outcome, session: self.session.state(), runs, ignored };
        let number = self.report.calls.len();
        self.report.failures.extend(expect.iter().flat_map(|expect| expect.failures(number, &result)));
    }
}

/// The failure of a reply that has no pending call, or can't be resumed.
fn reply_failure(reply: &ApprovalReply, error: &ReplyError) -> Failure {
    let actual = match error {
        ReplyError::NoRequest(Some(outcome)) => outcome.outcome.name().into(),
        _ => Value::Null,
    };
    Failure {
        place: reply.location.clone(),
        call: None,
        field: reply.action.key().to_owned(),
        expected: "a pending call".into(),
        actual,
        note: Some(format!("`{}: {}`: {error}", reply.action.key(), reply.target)),
        differences: Vec::new(),
    }
}

impl TestCase {
    /// The report of a case that has not run.
    fn empty_report(&self) -> CaseReport {
        CaseReport {
            name: self.name.clone(),
            row: self.row.as_ref().map(|row| row.number),
            row_name: self.row.as_ref().and_then(|row| row.name.clone()),
            place: self.location.clone(),
            passed: false,
            failures: Vec::new(),
            calls: Vec::new(),
        }
    }
}

impl CaseReport {
    fn add_case_failure(&mut self, note: String) {
        self.failures.push(Failure {
            place: self.place.clone(),
            call: None,
            field: "case".to_owned(),
            expected: "to end".into(),
            actual: Value::Null,
            note: Some(note),
            differences: Vec::new(),
        });
    }
}

impl CallReport {
    fn from_outcome(outcome: &Outcome, runs: usize) -> Self {
        Self {
            id: outcome.id.clone(),
            tool: outcome.tool.clone(),
            outcome: outcome.outcome,
            policy: outcome.reason.policy.clone(),
            code: outcome.reason.code.clone(),
            message: outcome.reason.message.clone(),
            policies: outcome.policies.iter().map(|policy| policy.id.clone()).collect(),
            runs,
            reply: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_texts;
    use callgate::engine;

    const CASES: &str = "cases: [ { name: a, call: { tool: t }, expect: executed } ]";

    /// The notes of a suite's only case, with `run` in place of the real runner.
    fn notes(run: RunCase, limit: Duration) -> Vec<String> {
        let policies = engine::load_text("policies: []").unwrap();
        let suite = load_texts([("a.test.yaml", CASES)]).suite;
        let file = &suite.files[0];
        let rules = CaseRules { policies, tools: Arc::default(), listener: None };
        let report = run_on_thread(rules, &file.cases[0], limit, run);
        assert!(!report.passed);
        report.failures.into_iter().filter_map(|failure| failure.note).collect()
    }

    #[test]
    fn reports_a_panic_as_a_failure_of_its_case() {
        let notes = notes(|_, _| panic!("a mistake in Callgate"), CASE_TIME_LIMIT);
        assert_eq!(notes, ["Callgate panicked: a mistake in Callgate"]);
    }

    #[test]
    fn reports_a_hang_as_a_failure_of_its_case() {
        let hangs: RunCase = |_, case| {
            ManualClock::new(case.clock).block_on(std::future::pending::<()>());
            case.empty_report()
        };
        let notes = notes(hangs, Duration::from_millis(20));
        assert_eq!(notes, ["it did not end within 0 s: a call waits forever"]);
    }
}
