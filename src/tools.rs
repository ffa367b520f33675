//! Tool descriptors, and the set of known tools with their compiled argument schemas.

mod provider_tools;
mod provider_schema;
mod result_schema;

pub use provider_tools::{ProviderTools, for_provider};
pub use result_schema::ResultSchema;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::argument_schema::{ArgumentSchema, SchemaError};
use crate::call::ToolCall;
use crate::json::{self, Value};

/// A tool, as a host or an MCP server describes it: an element of `--tools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDescriptor {
    /// The name of the tool.
    pub name: String,
    /// What the tool does.
    #[serde(default)]
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    #[serde(default, alias = "inputSchema")]
    pub input_schema: Option<Value>,
    /// The JSON Schema of the structured results. `$.result` of a result that does not fit it is undecided.
    #[serde(default, alias = "outputSchema", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// MCP hints (`readOnlyHint`, …). Untrusted, because the tool's server sets them.
    #[serde(default)]
    pub annotations: Option<Value>,
    /// The MCP server that provides the tool. A tool without a server matches calls of every server.
    #[serde(default)]
    pub server: Option<String>,
    /// Set by the host: a call must run at most once. The store records the start before the call runs; if its outcome is
    /// then unknown, the call is not run again.
    #[serde(default)]
    pub once: bool,
    /// Set by the host: the tool is idempotent, so a call may run twice.
    #[serde(default)]
    pub idempotent: bool,
}

/// Why a text is not an array of tools.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolListError {
    /// Not JSON, a duplicate key, or a member of the wrong type; the error has the position.
    #[error("{0}")]
    Json(#[from] json::Error),
    /// JSON of another form.
    #[error(
        "not an array of tools; write `[{{\"name\": \"…\", \"input_schema\": {{…}}}}]`, or save the result of an MCP server's \
         `tools/list`"
    )]
    NotAList,
    /// A tool has a JSON Schema, and Callgate was built without the feature `json-schema`.
    #[error("the tool `{tool}` has an `input_schema`, but {error}")]
    UnsupportedSchema {
        /// The name of the tool.
        tool: String,
        /// The fix.
        error: SchemaError,
    },
}

/// Reads a JSON array of tools, or the result of an MCP `tools/list`.
///
/// # Errors
/// Not JSON, JSON of another form, or a tool has a schema and Callgate was built without the feature `json-schema`. Whether the schemas
/// are valid is not checked.
pub fn parse_list(text: &str) -> Result<Vec<ToolDescriptor>, ToolListError> {
    #[derive(Deserialize)]
    struct ToolsList {
        tools: Vec<ToolDescriptor>,
    }
    // Types are checked on the text itself, so that the error has the position.
    let tools: Vec<ToolDescriptor> = match json::parse(text).map_err(json::Error::from)? {
        Value::Object(members) if members.contains_key("tools") => {
            json::from_str(text).map(|list: ToolsList| list.tools)?
        }
        Value::Array(_) => json::from_str(text)?,
        _ => return Err(ToolListError::NotAList),
    };
    if let Some(tool) = tools.iter().find(|tool| tool.input_schema.is_some()) {
        ArgumentSchema::check_support()
            .map_err(|error| ToolListError::UnsupportedSchema { tool: tool.name.clone(), error })?;
    }
    Ok(tools)
}

/// A known tool.
#[derive(Debug)]
pub struct KnownTool {
    /// The tool as the host or its MCP server describes it.
    pub descriptor: ToolDescriptor,
    /// The compiled schema of the arguments: an error if the schema is invalid, `None` if there is none.
    pub schema: Option<Result<ArgumentSchema, SchemaError>>,
    /// The compiled schema of the results. `None` if there is none, and without the feature `json-schema`.
    pub results: Option<ResultSchema>,
    /// The declared types of the arguments; `None` if there are none that can be used.
    pub types: Option<ArgumentSchema>,
}

/// Tools: the descriptors that models are offered, and the set that calls are checked against.
#[derive(Debug, Default)]
pub struct ToolCatalog {
    descriptors: Vec<ToolDescriptor>,
    set: ToolSet,
}

impl ToolCatalog {
    /// These tools. Of two with the same name and server, the last one is used.
    pub fn new(descriptors: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        Self::default().with_tools(descriptors)
    }

    /// Adds tools; they shadow those of the same name and server.
    #[must_use]
    pub fn with_tools(&self, more: impl IntoIterator<Item = ToolDescriptor>) -> Self {
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

    /// The descriptors that models are offered.
    pub fn descriptors(&self) -> &[ToolDescriptor] {
        &self.descriptors
    }

    /// The set that calls are checked against.
    pub fn set(&self) -> &ToolSet {
        &self.set
    }
}

/// Completes the tools that a server describes by those that the rules declare for it: a schema that the server does not give is the declared
/// one, and a tool that it does not describe is known as declared.
pub fn add_declared(tools: &mut Vec<ToolDescriptor>, declared: &[ToolDescriptor], server: &str) {
    let of_server = |tool: &&ToolDescriptor| tool.server.as_deref().is_none_or(|name| name == server);
    for declared in declared.iter().filter(of_server) {
        match tools.iter_mut().find(|tool| tool.name == declared.name) {
            Some(known) => {
                let ToolDescriptor { input_schema, output_schema, .. } = declared;
                known.input_schema = known.input_schema.take().or_else(|| input_schema.clone());
                known.output_schema = known.output_schema.take().or_else(|| output_schema.clone());
            }
            None => tools.push(declared.clone()),
        }
    }
}

/// The known tools, by name and server.
#[derive(Debug, Default)]
pub struct ToolSet {
    tools: HashMap<String, HashMap<Option<String>, KnownTool>>,
}

impl ToolSet {
    /// Compiles the schemas of these tools. Of two with the same name and server, the last one is used.
    pub fn new(descriptors: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        let mut tools: HashMap<String, HashMap<Option<String>, KnownTool>> = HashMap::new();
        for descriptor in descriptors {
            let schema = descriptor.input_schema.as_ref().map(ArgumentSchema::compile);
            let types = descriptor.input_schema.as_ref().map(ArgumentSchema::compile_types);
            let types = types.and_then(Result::ok);
            let results = descriptor.output_schema.as_ref().and_then(ResultSchema::compile);
            let (name, server) = (descriptor.name.clone(), descriptor.server.clone());
            tools.entry(name).or_default().insert(server, KnownTool { descriptor, schema, results, types });
        }
        Self { tools }
    }

    /// The tool that a call names: on its server, or one without a server.
    pub fn get(&self, call: &ToolCall) -> Option<&KnownTool> {
        let same_name = self.tools.get(&call.tool)?;
        same_name.get(&call.server).or_else(|| same_name.get(&None))
    }

    /// Whether the set has no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

// Schemas are compared.
#[cfg(test)]
#[cfg(feature = "json-schema")]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn declared_tools_complete_those_of_a_server() {
        let parse = |text: Value| parse_list(&text.to_string()).unwrap();
        let (own, declared) = (json!({ "type": "object" }), json!({ "type": "object", "title": "declared" }));
        let mut tools = parse(json!([{ "name": "get", "inputSchema": own }, { "name": "put" }]));
        let of_rules = parse(json!([
            { "name": "get", "inputSchema": declared, "outputSchema": declared },
            { "name": "put", "server": "other", "inputSchema": declared },
            { "name": "list", "inputSchema": declared },
        ]));
        add_declared(&mut tools, &of_rules, "files");
        let described: Vec<_> = tools
            .iter()
            .map(|tool| (tool.name.as_str(), tool.input_schema.as_ref(), tool.output_schema.as_ref()))
            .collect();
        let [own, declared] = [Some(&own), Some(&declared)];
        assert_eq!(described, [("get", own, declared), ("put", None, None), ("list", declared, None)]);
    }
}
