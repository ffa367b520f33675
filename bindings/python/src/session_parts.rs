//! What a session needs for its operations. It is used either for single calls or for rounds of a history.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate::json::Value;
use callgate::lifecycle::RunContext;
use callgate::{ConcurrentSession, Engine as InnerEngine, Session as EngineSession};
use pyo3::prelude::*;

use crate::errors;
use crate::outcome::OutcomeFormatter;
use crate::tool_call::read_call;

/// What a session is used for: its first call decides.
pub(crate) enum Mode {
    New(Box<EngineSession>),
    Calls(ConcurrentSession),
    Rounds(Arc<tokio::sync::Mutex<EngineSession>>),
    /// While it changes from one to another.
    Changing,
}

/// What a session needs for its operations.
pub(crate) struct SessionParts {
    pub(crate) engine: InnerEngine,
    pub(crate) formatter: Arc<OutcomeFormatter>,
    pub(crate) mode: Mutex<Mode>,
    pub(crate) requester: Option<String>,
    pub(crate) run: RunContext,
    /// The context of calls that have none of their own.
    pub(crate) context: Value,
}

impl SessionParts {
    /// Reads a call, and gives it the context of the session if it has none.
    pub(crate) fn read_call(&self, call: &Bound<'_, PyAny>) -> PyResult<callgate::ToolCall> {
        let mut call = read_call(call)?.into_owned();
        if call.context.is_null() {
            call.context.clone_from(&self.context);
        }
        Ok(call)
    }

    pub(crate) fn mode(&self) -> MutexGuard<'_, Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session for single calls.
    pub(crate) fn calls(&self) -> PyResult<ConcurrentSession> {
        let mut mode = self.mode();
        if let Mode::New(_) = *mode
            && let Mode::New(session) = std::mem::replace(&mut *mode, Mode::Changing)
        {
            *mode = Mode::Calls(match &self.requester {
                Some(requester) => session.concurrent_for(requester.clone(), |_| None),
                None => session.concurrent(),
            });
        }
        match &*mode {
            Mode::Calls(session) => Ok(session.clone()),
            _ => {
                Err(errors::state("this session runs rounds of a history; open another one for single calls"))
            }
        }
    }

    /// The session for rounds.
    pub(crate) fn rounds(&self) -> PyResult<Arc<tokio::sync::Mutex<EngineSession>>> {
        let mut mode = self.mode();
        if self.requester.is_some() {
            return Err(errors::state(
                "a session with a `requester` runs single calls, and no rounds of a history",
            ));
        }
        if let Mode::New(_) = *mode
            && let Mode::New(session) = std::mem::replace(&mut *mode, Mode::Changing)
        {
            *mode = Mode::Rounds(Arc::new(tokio::sync::Mutex::new(*session)));
        }
        match &*mode {
            Mode::Rounds(session) => Ok(Arc::clone(session)),
            _ => {
                Err(errors::state("this session runs single calls; open another one for rounds of a history"))
            }
        }
    }

    /// The session for rounds, while none runs.
    pub(crate) fn idle_rounds(&self) -> PyResult<tokio::sync::OwnedMutexGuard<EngineSession>> {
        self.rounds()?.try_lock_owned().map_err(|_| errors::state("the session runs a round"))
    }
}
