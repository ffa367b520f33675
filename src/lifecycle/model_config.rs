//! The configuration of a model call, and patches of it.

use crate::json::Map;
use crate::message::History;
use crate::tools::ToolDescriptor;

/// The configuration of a model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelConfig {
    /// The conversation so far.
    pub messages: History,
    /// The system prompts, in order.
    pub system_prompts: Vec<String>,
    /// The tools that the model is offered.
    pub tools: Vec<ToolDescriptor>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold.
    pub top_p: Option<f64>,
    /// The maximum number of tokens to generate.
    pub max_tokens: Option<u64>,
    /// Metadata of the request, for logs and traces.
    pub metadata: Map,
    /// Options that only the provider interprets.
    pub provider_options: Map,
}

/// A partial configuration: each member that is present replaces the whole member of a [`ModelConfig`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelConfigPatch {
    /// The conversation so far.
    pub messages: Option<History>,
    /// The system prompts.
    pub system_prompts: Option<Vec<String>>,
    /// The tools.
    pub tools: Option<Vec<ToolDescriptor>>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold.
    pub top_p: Option<f64>,
    /// The maximum number of tokens to generate.
    pub max_tokens: Option<u64>,
    /// Metadata of the request.
    pub metadata: Option<Map>,
    /// Options that only the provider interprets.
    pub provider_options: Option<Map>,
}

impl ModelConfig {
    /// Applies a patch.
    #[must_use]
    pub fn with_patch(self, patch: ModelConfigPatch) -> Self {
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
