//! The runtime for timers, stores, and operations that must not run on JavaScript's thread. All environments of a process share it.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();

/// How many threads run operations with large arguments or a store on disk; none is held while a tool runs.
const THREADS: usize = 2;

/// The runtime, which is started when it is first needed.
pub fn runtime() -> Result<&'static Runtime, Failure> {
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("callgate").enable_time().build().ok()
    };
    RUNTIME
        .get_or_init(start)
        .as_ref()
        .ok_or_else(|| Failure::new("internal_error", "the threads of Callgate can't be started"))
}
