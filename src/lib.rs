#![doc = include_str!("../README.md")]

// The modules stand in the order in which a policy and then a call meet them. A module uses only modules listed
// above it; tests/layering.rs keeps that law.

// Words, which every room speaks.
mod files;
mod unicode;
mod regexes;
pub mod meter;
pub mod json;
pub mod diagnostic;
pub mod seal;
pub mod principal;
pub mod call;
pub mod host;
pub mod state;
pub mod message;

// Reading: rules files → trees with places.
pub mod source;
pub mod text;
pub mod spans;
pub mod card;

// What a policy is made of.
pub mod path;
pub mod template;
pub mod script;
pub mod detect;
pub mod schema;
pub mod tools;
pub mod approval;
pub mod lifecycle;
pub mod authoring;
pub mod matcher;
pub mod middleware;

// Building: trees → bundle → plan → chains.
pub mod policy;

// Running: one call, one agent run, and the whole for those who embed it.
pub mod kernel;
pub mod explain;
mod execution;
pub mod session;
pub mod engine;

// Trying: policy tests.
pub mod suite;

// Advising: what is probably not meant.
pub mod lint;

// Changing: rules taken in anew.
pub mod reload;

// The door for MCP clients.
#[cfg(feature = "mcp")]
pub mod mcp;

// The command line.
#[cfg(feature = "cli")]
pub mod cli;

pub use call::{Outcome, OutcomeKind, SessionState, ToolCall};
pub use engine::{Engine, EngineBuilder, LoadError};
pub use host::{Clock, Observer, StateStore, ToolAnswer, ToolError, ToolExecutor};
pub use kernel::{Decision, Effect};
pub use session::Session;
pub use tools::ToolDescriptor;
