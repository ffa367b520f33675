//! The OpenAPI document, from the table of endpoints and the types of their bodies.

use callgate::message::Dialect;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::endpoint::{Endpoint, Method};
use crate::endpoints;

/// The OpenAPI 3.1 document of the API.
pub fn openapi_document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints::all() {
        let body = endpoint.body.map(|schema| {
            json!({ "required": true, "content": { "application/json": { "schema": schema(&mut generator) } } })
        });
        let operation = operation(endpoint, body);
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Value::Object(path) = path {
            path.insert(endpoint.method.name().to_lowercase(), operation);
        }
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Callgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Decisions on tool calls of AI agents, approvals, and the rules in effect.",
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
        // Without an identity file, callers on the same machine need no credential.
        "security": [{ "bearer": [] }, {}],
    })
}

fn operation(endpoint: &Endpoint, body: Option<Value>) -> Value {
    let in_path = endpoint.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": path_schema(name) }))
        .collect();
    parameters.extend(endpoint.query.iter().map(|parameter| {
        json!({ "name": parameter.name, "in": "query", "description": parameter.doc, "schema": parameter.schema() })
    }));
    let mut responses: Map<String, Value> = Map::new();
    for (status, description) in endpoint.responses {
        let content = json!({ "application/json": { "schema": { "type": "object" } } });
        responses.insert(status.to_string(), json!({ "description": description, "content": content }));
    }
    let problem =
        json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } });
    responses.insert(
        "default".to_owned(),
        json!({ "description": "Why the request fails (RFC 9457).", "content": problem }),
    );
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "summary": endpoint.summary,
        "description": format!("Needs `{}` access.", endpoint.access.name()),
        "parameters": parameters,
        "responses": responses,
    });
    if let (Value::Object(members), Some(body)) = (&mut operation, body) {
        members.insert("requestBody".to_owned(), body);
    }
    operation
}

/// The JSON schema of a parameter of a path.
fn path_schema(name: &str) -> Value {
    match name {
        "dialect" => {
            let names: Vec<&str> = Dialect::ALL.into_iter().map(Dialect::name).collect();
            json!({ "type": "string", "enum": names })
        }
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

/// A unique name of an endpoint, such as `post_v1_decide`.
fn operation_id(endpoint: &Endpoint) -> String {
    let method = match endpoint.method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Delete => "delete",
    };
    let path: String = endpoint.path.chars().filter(|c| !matches!(c, '{' | '}')).collect();
    format!("{method}{}", path.replace('/', "_"))
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "description": "Why a request fails (RFC 9457).",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "code": { "type": "string", "description": "A stable code for programs." },
            "detail": { "type": "string", "description": "What is wrong, and what to do." },
        },
    })
}
