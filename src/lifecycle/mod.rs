//! The lifecycle of an agent run: model configuration, stream chunks, run context, and middleware at each stage.
#![doc = include_str!("../../docs/hooks.md")]

mod chunk;
mod model_config;
mod run_context;
mod tool_hooks;
mod middleware;

pub use chunk::{Chunk, ChunkAction};
pub use middleware::{
    Before, Ending, ErrorAction, HookCall, Middleware, Next, NextStep, RequiredApproval, RunStats,
    ToolCallEnd, Usage,
};
pub use model_config::{Config, ModelConfigPatch};
pub use run_context::{DeferredWork, Phase, RunContext};
pub use tool_hooks::ToolHooks;
