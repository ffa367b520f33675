//! The lifecycle of an agent run: model configuration, stream chunks, run context, and middleware at each stage.
#![doc = include_str!("../../docs/hooks.md")]

mod chunk;
mod config;
mod context;
mod hooks;
mod middleware;

pub use chunk::{Chunk, ChunkAction};
pub use config::{Config, ModelConfigPatch};
pub use context::{Deferred, Phase, RunContext};
pub use hooks::ToolHooks;
pub use middleware::{
    Before, Ending, ErrorAction, HookCall, Middleware, Next, NextStep, RequiredApproval, RunStats,
    ToolCallEnd, Usage,
};
