//! What a model is called with.

use crate::json::Map;
use crate::message::History;
use crate::tools::ToolDescriptor;

/// What a model is called with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The conversation so far.
    pub messages: History,
    /// The system prompts, in order.
    pub system_prompts: Vec<String>,
    /// The tools that the model is shown.
    pub tools: Vec<ToolDescriptor>,
    /// Sampling.
    pub temperature: Option<f64>,
    /// Sampling.
    pub top_p: Option<f64>,
    /// How much it may write.
    pub max_tokens: Option<u64>,
    /// Of the request, for whoever watches.
    pub metadata: Map,
    /// What only its provider knows.
    pub provider_options: Map,
}

/// A part of a configuration: what is there takes the place of what was there, as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigPatch {
    /// The conversation so far.
    pub messages: Option<History>,
    /// The system prompts.
    pub system_prompts: Option<Vec<String>>,
    /// The tools.
    pub tools: Option<Vec<ToolDescriptor>>,
    /// Sampling.
    pub temperature: Option<f64>,
    /// Sampling.
    pub top_p: Option<f64>,
    /// How much it may write.
    pub max_tokens: Option<u64>,
    /// Metadata.
    pub metadata: Option<Map>,
    /// What only its provider knows.
    pub provider_options: Option<Map>,
}

impl Config {
    /// The configuration with what the patch has.
    #[must_use]
    pub fn patched(self, patch: ConfigPatch) -> Self {
        Self {
            messages: patch.messages.unwrap_or(self.messages),
            system_prompts: patch.system_prompts.unwrap_or(self.system_prompts),
            tools: patch.tools.unwrap_or(self.tools),
            temperature: patch.temperature.or(self.temperature),
            top_p: patch.top_p.or(self.top_p),
            max_tokens: patch.max_tokens.or(self.max_tokens),
            metadata: patch.metadata.unwrap_or(self.metadata),
            provider_options: patch.provider_options.unwrap_or(self.provider_options),
        }
    }
}
