//! The lifecycle of an agent run: model configuration, stream chunks, run context, and middleware at each stage.
#![doc = include_str!("../../docs/hooks.md")]

mod chunk;
mod model_config;
mod run_context;
mod tool_hooks;
mod hook_error;
mod middleware;
mod usage;

pub use chunk::{Chunk, ChunkAction};
pub use hook_error::HookError;
pub use middleware::{
    BeforeAction, ErrorAction, HookCall, Middleware, Next, NextHandler, RequiredApproval, RunEnd, RunStats,
    ToolCallEnd,
};
pub use model_config::{ModelConfig, ModelConfigPatch};
pub use run_context::{DeferredWork, RunContext, RunPhase};
pub use tool_hooks::ToolHooks;
pub use usage::Usage;
