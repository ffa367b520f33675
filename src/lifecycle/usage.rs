//! The tokens and the cost of a model call.

use serde::{Deserialize, Serialize};

/// The usage of one model call.
///
/// Its JSON has `promptTokens`, `completionTokens`, `totalTokens` and `cost`. Another member is an error: a misspelt one would count as
/// nothing, and no budget would ever be used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the response.
    pub completion_tokens: u64,
    /// All tokens, if the provider counts more than those two.
    pub total_tokens: Option<u64>,
    /// The cost, in the host's currency.
    pub cost: Option<f64>,
}

impl Usage {
    /// The total number of tokens.
    pub fn tokens(&self) -> u64 {
        self.total_tokens.unwrap_or_else(|| self.prompt_tokens.saturating_add(self.completion_tokens))
    }
}
