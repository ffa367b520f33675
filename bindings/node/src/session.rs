//! `NativeSession`: one agent run, whose calls and rounds run one after the other.

use std::sync::{Arc, Mutex, PoisonError};

use callgate::json::{self, Value, json};
use callgate::lifecycle::RunContext;
use callgate::message::Dialect;
use callgate::{Outcome, ResumeError, Round, Session, Task, ToolCall};
use napi_derive::napi;
use tokio::sync::OwnedMutexGuard;

use crate::concurrent_session::NativeConcurrentSession;
use crate::engine::{SessionEngine, read_call};
use crate::exchange::OperationResult;
use crate::failure::Failure;
use crate::flat_json::outcome_text;
use crate::history::NativeHistory;
use crate::host::Host;
use crate::json_text::flagged;
use crate::operation::OperationThread;
use crate::tool_executor::JavaScriptTools;

/// A session.
#[napi]
pub struct NativeSession {
    /// `None` once it has become a concurrent session.
    session: Mutex<Option<Arc<tokio::sync::Mutex<Session>>>>,
    run: RunContext,
    shared: SessionEngine,
    requester: Option<String>,
}

impl NativeSession {
    /// The class of a session.
    pub fn new(session: Session, shared: SessionEngine, requester: Option<String>) -> Self {
        let run = session.run().clone();
        let session = Mutex::new(Some(Arc::new(tokio::sync::Mutex::new(session))));
        Self { session, run, shared, requester }
    }

    /// The session, unless something else uses it.
    pub fn lock(&self) -> Result<OwnedMutexGuard<Session>, Failure> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let session = session.ok_or_else(|| {
            Failure::new("session_busy", "the session is concurrent now: use what `concurrent()` returned")
        })?;
        session.try_lock_owned().map_err(|_| {
            Failure::new(
                "session_busy",
                "the session is running a call or a round: wait for it, or use `concurrent()` for calls that run at the same time",
            )
        })
    }

    /// A call in the session's context, unless it has its own.
    fn read_call(&self, text: &str) -> Result<ToolCall, Failure> {
        with_context(read_call(text)?, &self.shared.context)
    }
}

/// The call in this context, unless it has its own.
pub fn with_context(call: ToolCall, context: &Value) -> Result<ToolCall, Failure> {
    Ok(if call.context.is_null() { call.with_context(context.clone()) } else { call })
}

#[napi]
impl NativeSession {
    /// Evaluates one call, and runs it if the policies allow it.
    #[napi]
    pub fn call(&self, host: &Host, call: String) -> napi::Result<String> {
        let thread = self.shared.thread.or(OperationThread::for_text(&call));
        let call = self.read_call(&call)?;
        let mut session = self.lock()?;
        host.start(thread, move |exchange| {
            Box::pin(async move {
                let outcome = session.execute(call, &JavaScriptTools::new(exchange)).await;
                outcome_text(outcome)
            })
        })
    }

    /// Evaluates the calls of one round, and runs those that the policies allow.
    #[napi]
    pub fn call_round(&self, host: &Host, calls: String) -> napi::Result<String> {
        let thread = self.shared.thread.or(OperationThread::for_text(&calls));
        let calls = self.read_calls(&calls)?;
        let mut session = self.lock()?;
        host.start(thread, move |exchange| {
            Box::pin(async move {
                let outcomes = session.execute_round(calls, &JavaScriptTools::new(exchange)).await;
                outcomes_json(&outcomes).map(|outcomes| outcomes.to_string())
            })
        })
    }

    /// Decides the calls of one round without running any.
    #[napi]
    pub fn evaluate_round(&self, host: &Host, calls: String) -> napi::Result<String> {
        let thread = self.shared.thread.or(OperationThread::for_text(&calls));
        let calls = self.read_calls(&calls)?;
        let mut session = self.lock()?;
        host.start(thread, move |_| {
            Box::pin(async move {
                let evaluated = session.evaluate_round(&calls).await;
                let evaluated =
                    evaluated.map_err(|error| Failure::new("state_unavailable", error.to_string()))?;
                json::to_string(&evaluated).map_err(Failure::invalid_argument)
            })
        })
    }

    /// Runs the calls of the last messages of a history.
    #[napi]
    pub fn run_round(&self, host: &Host, history: &NativeHistory) -> napi::Result<String> {
        self.with_history(host, history, false)
    }

    /// Settles the calls of a history that have an answer.
    #[napi]
    pub fn resume(&self, host: &Host, history: &NativeHistory) -> napi::Result<String> {
        self.with_history(host, history, true)
    }

    fn with_history(&self, host: &Host, history: &NativeHistory, resumes: bool) -> napi::Result<String> {
        let shared = history.shared();
        let mut session = self.lock()?;
        let mut history = shared.get();
        // A history grows with its conversation, so its length is unknown before it is written.
        let text_length = history.write(Dialect::AiSdk).to_string();
        let thread = self.shared.thread.or(OperationThread::for_text(&text_length));
        host.start(thread, move |exchange| {
            Box::pin(async move {
                let tools = JavaScriptTools::new(exchange);
                let round = match resumes {
                    true => session.resume(&mut history, &tools).await,
                    false => session.run_round(&mut history, &tools).await,
                };
                let round = round.map_err(resume_failure)?;
                shared.set(history);
                round_text(&round)
            })
        })
    }

    fn read_calls(&self, text: &str) -> Result<Vec<ToolCall>, Failure> {
        let calls: Vec<ToolCall> =
            json::from_str(text).map_err(|error| Failure::new("invalid_call", error.to_string()))?;
        calls.into_iter().map(|call| with_context(call, &self.shared.context)).collect()
    }

    /// The same session for calls that run at the same time.
    #[napi]
    pub fn concurrent(&self) -> napi::Result<NativeConcurrentSession> {
        // Nothing else uses the session, and nothing can from here on.
        drop(self.lock()?);
        let taken = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        let session = taken.and_then(Arc::into_inner).map(tokio::sync::Mutex::into_inner);
        let session = session
            .ok_or_else(|| Failure::new("session_busy", "the session is running a call or a round"))?;
        let session = match &self.requester {
            Some(requester) => session.concurrent_for(requester.clone(), |_| None),
            None => session.concurrent(),
        };
        Ok(NativeConcurrentSession::new(session, self.shared.clone()))
    }

    /// Sets what the user asked for.
    #[napi]
    pub fn set_task(&self, task: String) -> napi::Result<()> {
        let task = json::parse(&task).map_err(Failure::invalid_argument)?;
        let task = Task::from_json(&task).map_err(Failure::invalid_argument)?;
        self.lock()?.set_task(task);
        Ok(())
    }

    /// The labels, facts and counts of the session.
    #[napi]
    pub fn state(&self) -> napi::Result<String> {
        Ok(flagged(&self.lock()?.state().document().to_string()))
    }

    /// Aborts the run: running tools are cancelled, and nothing new starts.
    #[napi]
    pub fn abort(&self, reason: String) {
        self.run.abort(reason);
    }
}

fn outcomes_json(outcomes: &[Outcome]) -> Result<Value, Failure> {
    json::to_value(outcomes).map_err(Failure::invalid_argument)
}

fn round_text(round: &Round) -> OperationResult {
    let ignored: Vec<Value> = round
        .ignored
        .iter()
        .map(|answer| json!({ "approvalId": answer.approval_id.as_str(), "code": answer.code, "why": answer.why.as_str() }))
        .collect();
    let outcomes = outcomes_json(&round.outcomes)?;
    Ok(json!({ "outcomes": outcomes, "ignored": ignored, "isSuspended": round.is_suspended() }).to_string())
}

fn resume_failure(error: ResumeError) -> Failure {
    match error {
        ResumeError::Store(_) => Failure::new("state_unavailable", error.to_string()),
        other => Failure::new("invalid_history", other.to_string()),
    }
}
