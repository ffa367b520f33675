//! Tool descriptors, and the set of known tools with their compiled argument schemas.

mod provider_tools;
mod provider_schema;
mod result_schema;

pub use provider_tools::{ProviderTools, for_provider};
pub use result_schema::ResultSchema;

use std::collections::HashMap;
use std::sync::Arc;

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

impl KnownTool {
    fn compile(descriptor: ToolDescriptor) -> Self {
        let schema = descriptor.input_schema.as_ref().map(ArgumentSchema::compile);
        let types = descriptor.input_schema.as_ref().map(ArgumentSchema::compile_types);
        let types = types.and_then(Result::ok);
        let results = descriptor.output_schema.as_ref().and_then(ResultSchema::compile);
        Self { descriptor, schema, results, types }
    }
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

    /// These tools in place of all. A tool that is described as before keeps its compiled schemas: compiling them takes longer than many
    /// calls.
    #[must_use]
    pub fn replaced_by(&self, descriptors: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        self.with_set_of(merge(Vec::new(), descriptors))
    }

    /// Adds tools; they shadow those of the same name and server.
    #[must_use]
    pub fn with_tools(&self, more: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        self.with_set_of(merge(self.descriptors.clone(), more))
    }

    fn with_set_of(&self, descriptors: Vec<ToolDescriptor>) -> Self {
        let set = self.set.replaced_by(descriptors.iter().cloned());
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

/// Adds tools to others; they shadow those of the same name and server.
fn merge(
    mut descriptors: Vec<ToolDescriptor>,
    more: impl IntoIterator<Item = ToolDescriptor>,
) -> Vec<ToolDescriptor> {
    for tool in more {
        match descriptors.iter_mut().find(|known| known.name == tool.name && known.server == tool.server) {
            Some(known) => *known = tool,
            None => descriptors.push(tool),
        }
    }
    descriptors
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
    tools: HashMap<String, HashMap<Option<String>, Arc<KnownTool>>>,
}

impl ToolSet {
    /// Compiles the schemas of these tools. Of two with the same name and server, the last one is used.
    pub fn new(descriptors: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        Self::default().replaced_by(descriptors)
    }

    /// These tools, with the compiled schemas of those that are described as before.
    fn replaced_by(&self, descriptors: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        let mut tools: HashMap<String, HashMap<Option<String>, Arc<KnownTool>>> = HashMap::new();
        for descriptor in descriptors {
            let before = self.tools.get(&descriptor.name).and_then(|known| known.get(&descriptor.server));
            let known = match before.filter(|before| before.descriptor == descriptor) {
                Some(before) => Arc::clone(before),
                None => Arc::new(KnownTool::compile(descriptor)),
            };
            let (name, server) = (known.descriptor.name.clone(), known.descriptor.server.clone());
            tools.entry(name).or_default().insert(server, known);
        }
        Self { tools }
    }

    /// The tool that a call names: on its server, or one without a server.
    pub fn get(&self, call: &ToolCall) -> Option<&KnownTool> {
        let same_name = self.tools.get(&call.tool)?;
        same_name.get(&call.server).or_else(|| same_name.get(&None)).map(Arc::as_ref)
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

    #[test]
    fn only_changed_tools_are_compiled_again() {
        let tool = |name: &str, server: Option<&str>, required: &str| {
            let schema = json!({ "type": "object", "required": [required] });
            let described = json!([{ "name": name, "server": server, "input_schema": schema }]);
            parse_list(&described.to_string()).unwrap().remove(0)
        };
        let before =
            ToolCatalog::new([tool("get", None, "a"), tool("put", None, "a"), tool("put", Some("s"), "a")]);
        let after = before.replaced_by([
            tool("get", None, "a"),
            tool("put", None, "b"),
            tool("put", Some("s"), "b"),
            tool("put", Some("s"), "a"),
        ]);
        let known = |catalog: &ToolCatalog, name: &str, server: Option<&str>| {
            Arc::clone(&catalog.set.tools[name][&server.map(str::to_owned)])
        };
        let is_kept = |name: &str, server: Option<&str>| {
            Arc::ptr_eq(&known(&before, name, server), &known(&after, name, server))
        };
        assert!(is_kept("get", None) && is_kept("put", Some("s")));
        assert!(!is_kept("put", None));
        assert_eq!(known(&after, "put", None).descriptor, tool("put", None, "b"));
        assert_eq!(after.descriptors().len(), 3);
        // A tool that is gone is unknown.
        assert!(before.replaced_by([]).set.is_empty());
        let more = before.with_tools([tool("get", None, "b")]);
        assert_eq!(known(&more, "get", None).descriptor, tool("get", None, "b"));
        assert!(Arc::ptr_eq(&known(&more, "put", None), &known(&before, "put", None)));
    }
}
