//! The tools that stand behind the calls: their schemas and what their servers say of them.

mod provider;
mod sanitised;

pub use provider::{ProviderTools, for_provider};

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::json::{self, Value};
use crate::schema::{ArgumentSchema, SchemaError};

/// A tool as a host or an MCP server describes it: an entry of `--tools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDescriptor {
    /// The tool's own name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(default, alias = "inputSchema")]
    pub input_schema: Option<Value>,
    /// MCP hints (`readOnlyHint`, …). Untrusted: the tool's server says so.
    #[serde(default)]
    pub annotations: Option<Value>,
    /// The MCP server that has it; a tool without one is found for calls of every server.
    #[serde(default)]
    pub server: Option<String>,
    /// The host's word that a call must run at most once: the store says that it began before it begins, and where nobody knows
    /// how it ended it is not run again.
    #[serde(default)]
    pub once: bool,
    /// The host's word that a call may run twice without harm.
    #[serde(default)]
    pub idempotent: bool,
}

/// Why a text is no list of tools.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// Not JSON, a doubled key, or a member of the wrong type; the error has the place.
    #[error("{0}")]
    Json(#[from] json::Error),
    /// JSON of another form.
    #[error(
        "no list of tools; write `[{{\"name\": \"…\", \"input_schema\": {{…}}}}]`, or save the result of an MCP server's \
         `tools/list`"
    )]
    NotAList,
}

/// Reads a JSON list of tools, or the result of an MCP `tools/list`.
pub fn read_list(text: &str) -> Result<Vec<ToolDescriptor>, ToolsError> {
    #[derive(Deserialize)]
    struct ToolsList {
        tools: Vec<ToolDescriptor>,
    }
    // Types are checked on the text itself, so that the error can name the place.
    match json::parse(text).map_err(json::Error::from)? {
        Value::Object(members) if members.contains_key("tools") => {
            Ok(json::from_str(text).map(|list: ToolsList| list.tools)?)
        }
        Value::Array(_) => Ok(json::from_str(text)?),
        _ => Err(ToolsError::NotAList),
    }
}

/// One known tool.
#[derive(Debug)]
pub struct Tool {
    /// The tool as the host or its MCP server describes it.
    pub descriptor: ToolDescriptor,
    /// The schema of its arguments, compiled; an error where it is no usable schema, `None` where it has none.
    pub schema: Option<Result<ArgumentSchema, SchemaError>>,
    /// The types that the schema declares; `None` where it declares none that can be used.
    pub types: Option<ArgumentSchema>,
}

/// Tools as models are shown them, and as calls are checked against them.
#[derive(Debug, Default)]
pub struct Tools {
    descriptors: Vec<ToolDescriptor>,
    set: ToolSet,
}

impl Tools {
    /// These tools. Of two of one name and server the last stands.
    pub fn new(descriptors: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        Self::default().with(descriptors)
    }

    /// These tools and more, which shadow those of the same name and server.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        let mut descriptors = self.descriptors.clone();
        for tool in more {
            match descriptors.iter_mut().find(|known| known.name == tool.name && known.server == tool.server)
            {
                Some(known) => *known = tool,
                None => descriptors.push(tool),
            }
        }
        let set = ToolSet::new(descriptors.clone());
        Self { descriptors, set }
    }

    /// As models are shown them.
    pub fn descriptors(&self) -> &[ToolDescriptor] {
        &self.descriptors
    }

    /// As calls are checked against them.
    pub fn set(&self) -> &ToolSet {
        &self.set
    }
}

/// The known tools.
#[derive(Debug, Default)]
pub struct ToolSet {
    tools: HashMap<String, HashMap<Option<String>, Tool>>,
}

impl ToolSet {
    /// Compiles the schemas of these tools. Of two of one name and server the last counts.
    pub fn new(descriptors: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        let mut tools: HashMap<String, HashMap<Option<String>, Tool>> = HashMap::new();
        for descriptor in descriptors {
            let schema = descriptor.input_schema.as_ref().map(ArgumentSchema::compile);
            let types = descriptor.input_schema.as_ref().map(ArgumentSchema::compile_types);
            let types = types.and_then(Result::ok);
            let (name, server) = (descriptor.name.clone(), descriptor.server.clone());
            tools.entry(name).or_default().insert(server, Tool { descriptor, schema, types });
        }
        Self { tools }
    }

    /// The tool that a call names, on its server or without one.
    pub fn get(&self, call: &ToolCall) -> Option<&Tool> {
        let of_name = self.tools.get(&call.tool)?;
        of_name.get(&call.server).or_else(|| of_name.get(&None))
    }

    /// Whether no tools are known.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}
