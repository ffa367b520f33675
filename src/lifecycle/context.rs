//! What every hook knows of its run, and what it may ask of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::host::BoxFuture;
use crate::json::Value;

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// It begins.
    #[default]
    Init,
    /// The model is about to be called.
    BeforeModel,
    /// The model streams.
    ModelStream,
    /// Tools are about to run.
    BeforeTools,
    /// All tools of a round have run.
    AfterTools,
}

impl Phase {
    /// The word in rules: `$.session.phase`.
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

/// Work that is done after a run has ended.
pub type Deferred = BoxFuture<'static, Result<(), String>>;

/// What a hook knows of its run. Rules read the same as `$.session`.
#[derive(Clone)]
pub struct RunContext {
    /// The run's own name.
    pub request_id: String,
    /// The stream's own name.
    pub stream_id: String,
    /// The conversation, where the host named one.
    pub conversation_id: Option<String>,
    /// Where the run stands.
    pub phase: Phase,
    /// How often the model was called before, from 0.
    pub iteration: u64,
    /// How many chunks have been passed on.
    pub chunk_index: u64,
    /// What the host vouches for.
    pub context: Value,
    asked: Arc<Mutex<Asked>>,
    ended: Arc<Notify>,
}

/// What hooks have asked of their run.
#[derive(Default)]
struct Asked {
    abort: Option<String>,
    deferred: Vec<Deferred>,
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
    /// A run that has not begun.
    pub fn new(request_id: String, stream_id: String, context: Value) -> Self {
        Self {
            request_id,
            stream_id,
            conversation_id: None,
            phase: Phase::Init,
            iteration: 0,
            chunk_index: 0,
            context,
            asked: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// The same run under other names.
    #[must_use]
    pub fn renamed(&self, request_id: String, stream_id: String) -> Self {
        Self { request_id, stream_id, ..self.clone() }
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run: a tool that runs is given up, and nothing begins any more. The first reason stands. From anywhere: a clone is
    /// the same run.
    pub fn abort(&self, reason: impl Into<String>) {
        self.asked().abort.get_or_insert_with(|| reason.into());
        self.ended.notify_waiters();
    }

    /// Waits until the run is to end.
    pub async fn until_aborted(&self) -> String {
        loop {
            // Made before looking, so that no end is missed.
            let ended = self.ended.notified();
            if let Some(reason) = self.aborted() {
                return reason;
            }
            ended.await;
        }
    }

    /// Why the run is to end, if it is.
    pub fn aborted(&self) -> Option<String> {
        self.asked().abort.clone()
    }

    /// Has something done after the run has ended. It delays nothing, and what goes wrong in it fails nothing.
    pub fn defer(&self, work: Deferred) {
        self.asked().deferred.push(work);
    }

    /// Takes the work that was deferred so far.
    pub fn take_deferred(&self) -> Vec<Deferred> {
        std::mem::take(&mut self.asked().deferred)
    }
}
