#![doc = include_str!("../README.md")]

// The modules are listed in the order in which a policy, and then a call, passes through them. A module uses only modules listed
// above it; tests/layering.rs enforces this.

// Base types that every module uses.
#[doc(hidden)]
pub mod file_access;
mod unicode;
mod regex_compiler;
pub mod work_limit;
pub mod json;
pub mod diagnostic;
pub mod seal;
pub mod principal;
pub mod call;
pub mod host;
pub mod state;
pub mod message;

// Reading: rules files → document trees with positions.
pub mod source;
pub mod safe_text;
pub mod durations;
pub mod card;

// The parts of a policy.
pub mod path;
pub mod template;
pub mod script;
pub mod redaction;
pub mod argument_schema;
pub mod tools;
pub mod approval;
pub mod lifecycle;
pub mod rules_schema;
pub mod matcher;
pub mod middleware;

// Compiling: document trees → bundle → plan → compiled policies.
pub mod policy;

// Running: one call, one agent run, and the engine for programs that embed Callgate.
pub mod kernel;
pub mod explain;
mod execution;
pub mod session;
pub mod engine;

// Hot reload of rules.
pub mod reload;

pub use call::{Outcome, OutcomeKind, SessionState, ToolCall};
pub use engine::{Engine, EngineBuilder, LoadError};
pub use host::{Clock, Observer, StateStore, ToolError, ToolExecutor, ToolResponse};
pub use kernel::{Decision, Effect};
pub use session::Session;
pub use tools::ToolDescriptor;
