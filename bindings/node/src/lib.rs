//! The native part of the npm package `callgate`: the engine and its sessions as classes whose arguments and results are JSON texts.
//! The TypeScript in `lib/` is their only caller.
//!
//! Whatever takes time is an operation (`operation.rs`): a future that asks JavaScript for what only JavaScript has, such as the result of a tool.

/// Faster than that of glibc for the many short strings of calls, and much faster than that of musl.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod approvals;
mod concurrent_session;
mod engine;
mod engine_loading;
mod engine_options;
mod event_queue;
mod exchange;
mod failure;
mod flat_json;
mod history;
mod hooks;
mod host;
mod host_stores;
mod json_text;
mod notifier;
mod operation;
mod runtime;
mod session;
mod session_run;
mod state_store;
mod tool_executor;
