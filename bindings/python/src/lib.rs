//! The extension module `callgate._callgate`: the engine for Python. The package around it is in `callgate/`.
//!
//! Rust never runs while the GIL is held, and starts no thread for a call: an `Operation` is a future
//! that Python drives, and that returns to Python whenever a tool has to run or something has to be waited for.

mod answers;
mod around_turns;
mod clock;
mod decision;
mod detached;
mod engine;
mod engine_options;
mod errors;
mod fork_guard;
mod history;
mod host_request;
mod host_stores;
mod hooks;
mod json_conversion;
mod method_requests;
mod observers;
mod operation;
mod outcome;
mod reload;
mod session;
mod session_parts;
mod session_run;
mod state_store;
mod tool_call;
mod tool_requests;
mod wake_signal;

/// The engine of the package `callgate`.
#[pyo3::pymodule]
mod _callgate {
    #[pymodule_export]
    use crate::around_turns::AroundTurn;
    #[pymodule_export]
    use crate::decision::Decision;
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::fork_guard::mark_forked;
    #[pymodule_export]
    use crate::history::History;
    #[pymodule_export]
    use crate::json_conversion::normalize_json;
    #[pymodule_export]
    use crate::method_requests::MethodRequest;
    #[pymodule_export]
    use crate::operation::Operation;
    #[pymodule_export]
    use crate::outcome::Outcome;
    #[pymodule_export]
    use crate::reload::Watcher;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::tool_call::ToolCall;
    #[pymodule_export]
    use crate::tool_requests::ToolRequest;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
