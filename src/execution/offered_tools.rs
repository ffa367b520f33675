//! The tools that the model was offered.

use std::collections::HashMap;

use crate::call::ToolCall;
use crate::tools::ToolDescriptor;

/// The tools that the model was offered last, by name, with the servers that have them.
#[derive(Debug)]
pub(crate) struct OfferedTools(HashMap<String, Vec<Option<String>>>);

impl OfferedTools {
    pub(crate) fn new(tools: &[ToolDescriptor]) -> Self {
        let mut offered: HashMap<String, Vec<Option<String>>> = HashMap::new();
        for tool in tools {
            offered.entry(tool.name.clone()).or_default().push(tool.server.clone());
        }
        Self(offered)
    }

    /// Whether a call is of one of them. A tool without a server is offered for calls of every server.
    pub(crate) fn has(&self, call: &ToolCall) -> bool {
        let servers = self.0.get(&call.tool);
        servers.is_some_and(|servers| servers.iter().any(|server| server.is_none() || *server == call.server))
    }
}
