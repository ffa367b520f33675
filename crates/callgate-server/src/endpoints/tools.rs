//! The tools that callers can offer to a model.

use std::sync::Arc;

use callgate::json::{Value, json};
use callgate::tools::ToolDescriptor;
use callgate_http::Access;

use crate::api::Api;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint, Method};
use crate::problem::Problem;

/// The endpoints of tools.
pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Get,
    path: "/v1/tools",
    access: Access::Caller,
    summary: "List the tools: those of the servers that Callgate runs, and those that hosts execute. Tools that no policy allows are left out.",
    body: None,
    query: &[],
    responses: &[(200, "The tools with their schemas. `executed_by` is `server` or `host`.")],
    handler: |api, request| Box::pin(list(api, request)),
}];

async fn list(api: &Arc<Api>, _: ApiRequest) -> Result<ApiResponse, Problem> {
    let of_servers = match &api.tool_servers {
        Some(servers) => servers.list_tools().await,
        None => Vec::new(),
    };
    let session = api.engine.session();
    let is_of_server = |tool: &&ToolDescriptor| {
        let servers = api.tool_servers.as_deref();
        servers.is_some_and(|servers| tool.server.as_deref().is_some_and(|name| servers.has_server(name)))
    };
    let of_hosts = session.tools().iter().filter(|tool| !is_of_server(tool) && !session.never_runs(tool));
    let tools: Vec<Value> = of_servers
        .iter()
        .map(|tool| document(&tool.name, &tool.descriptor, "server"))
        .chain(of_hosts.map(|tool| document(&tool.name, tool, "host")))
        .collect();
    Ok(ApiResponse::ok(&json!({ "tools": tools })))
}

fn document(name: &str, tool: &ToolDescriptor, executed_by: &str) -> Value {
    json!({
        "name": name,
        "server": tool.server,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
        "executed_by": executed_by,
    })
}
