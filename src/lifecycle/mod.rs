//! An agent run around its tool calls: the configuration of the model, what it streams, how a run ends, and the host's own code
//! at each of these points.
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
