//! The options of an engine, as the TypeScript passes them.

use callgate::ToolDescriptor;
use callgate::json::{self, Value};
use callgate_log::Content;
use serde::Deserialize;

use crate::failure::Failure;
use crate::hooks::HookOptions;
use crate::host_stores::JavaScriptStores;

/// Where the rules of an engine are, and what it has beside them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineOptions {
    /// Files and directories with rules.
    pub paths: Option<Vec<String>>,
    /// One rules file, in place of paths.
    pub text: Option<String>,
    /// Keys that seal approvals and stored state.
    pub keys: Option<String>,
    /// The URL of the state store.
    pub state: Option<String>,
    /// What JavaScript stores.
    #[serde(default)]
    pub stores: JavaScriptStores,
    /// Descriptors of tools.
    #[serde(default)]
    pub tools: Vec<ToolDescriptor>,
    /// The seed of the random number generator.
    pub seed: Option<u64>,
    /// The time at which the clock stands, for tests.
    pub time: Option<String>,
    /// The hooks of all sessions.
    #[serde(default)]
    pub hooks: Vec<HookOptions>,
    /// What events contain of arguments and results; no events are sent if absent.
    pub events: Option<EventContent>,
}

/// What events contain of arguments and results.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventContent {
    Digests,
    Redacted,
}

impl From<EventContent> for Content {
    fn from(content: EventContent) -> Self {
        match content {
            EventContent::Digests => Self::Digests,
            EventContent::Redacted => Self::Redacted,
        }
    }
}

impl EngineOptions {
    /// Reads the options.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        json::from_str(text).map_err(Failure::invalid_argument)
    }
}

/// The options of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionOptions {
    /// Its name, under which stores know it.
    pub name: Option<String>,
    /// What the host vouches for.
    #[serde(default)]
    pub context: Value,
    /// Rules that can only tighten those of the engine: of the prompt, then of the call.
    #[serde(default)]
    pub layers: Vec<String>,
    /// Descriptors of tools.
    #[serde(default)]
    pub tools: Vec<ToolDescriptor>,
    /// Further hooks.
    #[serde(default)]
    pub hooks: Vec<HookOptions>,
    /// Every call is recorded in the store.
    #[serde(default)]
    pub record_calls: bool,
    /// Earlier calls of the session are not known here.
    #[serde(default)]
    pub has_unknown_past: bool,
    /// Approvals are found again for equal calls of this requester.
    pub requester: Option<String>,
}

impl SessionOptions {
    /// Reads the options.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        json::from_str(text).map_err(Failure::invalid_argument)
    }
}
