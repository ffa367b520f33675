//! The lifecycle of an agent run: model configuration, stream chunks, run context, and middleware at each stage.
#![doc = include_str!("../../docs/hooks.md")]

mod chunk;
mod config;
mod context;
mod hooks;
mod middleware;

pub use chunk::{Chunk, ChunkFate};
pub use config::{Config, ConfigPatch};
pub use context::{Deferred, Phase, RunContext};
pub use hooks::ToolHooks;
pub use middleware::{
    Before, Ending, HookCall, Middleware, Next, NextStep, OnError, RequiredApproval, RunStats, ToolEnd, Usage,
};
