//! The run context: what a hook can read about its run, and how it aborts the run or defers work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::HookError;
use crate::host::BoxFuture;
use crate::json::Value;

/// The phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RunPhase {
    /// The run starts.
    #[default]
    Init,
    /// The model is about to be called.
    BeforeModel,
    /// The model streams its response.
    ModelStream,
    /// Tools are about to run.
    BeforeTools,
    /// All tools of a round have run.
    AfterTools,
}

impl RunPhase {
    /// The name in rules: `$.session.phase`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::BeforeModel => "beforeModel",
            Self::ModelStream => "modelStream",
            Self::BeforeTools => "beforeTools",
            Self::AfterTools => "afterTools",
        }
    }
}

/// Work to do after a run has ended.
pub type DeferredWork = BoxFuture<'static, Result<(), HookError>>;

/// The run of a hook. Rules read the same data as `$.session`.
#[derive(Clone)]
pub struct RunContext {
    /// The id of the run.
    pub request_id: String,
    /// The id of the stream.
    pub stream_id: String,
    /// The id of the conversation, if the host gave one.
    pub conversation_id: Option<String>,
    /// The current phase.
    pub phase: RunPhase,
    /// The number of earlier model calls in the run, from 0.
    pub iteration: u64,
    /// The number of chunks that were passed on.
    pub chunk_index: u64,
    /// The context that the host provides; trusted.
    pub context: Value,
    requests: Arc<Mutex<HookRequests>>,
    abort_notify: Arc<Notify>,
}

/// The requests of hooks to their run.
#[derive(Default)]
struct HookRequests {
    abort: Option<String>,
    deferred: Vec<DeferredWork>,
}

impl std::fmt::Debug for RunContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("request_id", &self.request_id)
            .field("phase", &self.phase)
            .field("iteration", &self.iteration)
            .finish_non_exhaustive()
    }
}

impl RunContext {
    /// A run that has not started.
    pub fn new(request_id: String, stream_id: String, context: Value) -> Self {
        Self {
            request_id,
            stream_id,
            conversation_id: None,
            phase: RunPhase::Init,
            iteration: 0,
            chunk_index: 0,
            context,
            requests: Arc::default(),
            abort_notify: Arc::default(),
        }
    }

    /// The same run with other ids.
    #[must_use]
    pub fn with_ids(&self, request_id: String, stream_id: String) -> Self {
        Self { request_id, stream_id, ..self.clone() }
    }

    fn requests(&self) -> MutexGuard<'_, HookRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts the run: running tools are cancelled, and nothing new starts. The first reason is kept. Can be called from
    /// any clone, because all clones share the run.
    pub fn abort(&self, reason: impl Into<String>) {
        self.requests().abort.get_or_insert_with(|| reason.into());
        self.abort_notify.notify_waiters();
    }

    /// Waits until the run is aborted, and returns the reason.
    pub async fn wait_for_abort(&self) -> String {
        loop {
            // Created before the check, so that no abort is missed.
            let ended = self.abort_notify.notified();
            if let Some(reason) = self.abort_reason() {
                return reason;
            }
            ended.await;
        }
    }

    /// The reason for aborting the run. Returns `None` if it was not aborted.
    pub fn abort_reason(&self) -> Option<String> {
        self.requests().abort.clone()
    }

    /// Schedules work for after the end of the run. It delays nothing, and its errors fail nothing.
    pub fn defer(&self, work: DeferredWork) {
        self.requests().deferred.push(work);
    }

    /// Takes the work that was deferred so far.
    pub fn take_deferred(&self) -> Vec<DeferredWork> {
        std::mem::take(&mut self.requests().deferred)
    }
}
