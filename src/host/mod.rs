//! The interfaces that the embedding program implements: tool executor, clock, state store and observers.

mod account;
mod announcements;
mod cache_store;
mod clock;
mod closure_tools;
mod engine_event;
mod limit_store;
mod observer;
mod panic_guard;
mod record_store;
mod state_store;
mod store_operation;

pub use account::Account;
pub use announcements::{Announcement, Announcements, Announcer};
pub use cache_store::{CacheEntry, CacheLookup, CacheSpace, CacheStore};
pub(crate) use clock::boxed;
pub use clock::{BoxFuture, Clock, ManualClock, SystemClock};
pub use closure_tools::ClosureTools;
pub use engine_event::{
    CacheHit, CallDecided, CallIdentity, CandidateDecided, CandidateDifference, ComparedDecision,
    EngineEvent, EngineEventKind, HookFailure, LimitRefused, NotificationReport, RecordedAnswer, RulesEvent,
    RunIdentity, ToolCallSpan, ToolCallStart,
};
pub use limit_store::{Allowance, LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, RealCost};
pub use observer::{Observer, ObserverError};
pub use panic_guard::{catch_panic, with_deadline};
pub use record_store::{
    ConditionalWrite, MAX_RECORD_BYTES, OnQuotaExceeded, Record, RecordBatch, RecordKey, RecordPage,
    RecordStore, space,
};
pub use state_store::{CombinedStore, StateStore};
pub use store_operation::{StoreError, StoreFuture, with_store_timeout};

use std::future::Future;

pub use crate::call::Amount;
use crate::call::ToolCall;
use crate::json::Value;

/// The error of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The message for the model.
    pub message: String,
    /// A machine-readable kind that policies can match, such as `timeout`.
    pub kind: Option<String>,
}

impl ToolError {
    /// An error with a message and no kind.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: None }
    }

    /// Sets the kind, which policies can match.
    #[must_use]
    pub fn with_kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }
}

/// The successful response of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResponse {
    /// The result.
    pub output: Value,
    /// No tool was called: the output is a placeholder without meaning.
    pub dry: bool,
    /// The call is not complete: the output asks for more input, or says where the result will be. It is never cached.
    pub interim: bool,
    /// The output is complete only for this call, because parts of it are elsewhere. It is never cached.
    pub single_use: bool,
}

impl From<Value> for ToolResponse {
    fn from(output: Value) -> Self {
        Self { output, dry: false, interim: false, single_use: false }
    }
}

/// Runs tools. Only calls that passed every policy are executed, with their final arguments.
///
/// One executor serves many calls at once. If its future is dropped, the call was abandoned, after a timeout for example;
/// the executor must stop any work that continues in the background.
pub trait ToolExecutor: Sync {
    /// Runs one call to completion.
    fn execute(&self, call: &ToolCall) -> impl Future<Output = Result<ToolResponse, ToolError>> + Send;

    /// The final result of a call that is evaluated again and that the policies stop now, for executors that have recorded results.
    #[doc(hidden)]
    fn recorded_result(
        &self,
        call: &ToolCall,
    ) -> impl Future<Output = Result<ToolResponse, ToolError>> + Send {
        self.execute(call)
    }
}
