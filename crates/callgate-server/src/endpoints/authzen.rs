//! The OpenID AuthZEN Authorization API 1.0: evaluation and evaluations. The action is the tool, the subject the principal, and the
//! resource, with the action's properties, the arguments.

use std::sync::Arc;

use callgate::call::{Effect, ToolCall};
use callgate::json::{Map, Value, json};
use callgate::session::Evaluation;
use callgate_http::Access;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;

use crate::api::Api;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint, Method};
use crate::problem::Problem;
use crate::request_types::MAX_CALLS;
use crate::session_factory::{CallerSession, SessionRequest};

/// The endpoints of AuthZEN.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Post,
        path: "/access/v1/evaluation",
        access: Access::Host,
        summary: "Evaluate one access request (OpenID AuthZEN).",
        body: Some(SchemaGenerator::subschema_for::<EvaluationBody>),
        query: &[],
        responses: &[(200, "The decision: true only if the call may run without an approval.")],
        handler: |api, request| Box::pin(evaluation(api, request)),
    },
    Endpoint {
        method: Method::Post,
        path: "/access/v1/evaluations",
        access: Access::Host,
        summary: "Evaluate several access requests (OpenID AuthZEN).",
        body: Some(SchemaGenerator::subschema_for::<EvaluationsBody>),
        query: &[],
        responses: &[(200, "The decisions, in the order of the requests.")],
        handler: |api, request| Box::pin(evaluations(api, request)),
    },
];

/// A subject or a resource. Unknown members are ignored, as the specification allows more.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Entity {
    /// Its type.
    r#type: String,
    /// Its id, unique for its type.
    id: String,
    /// What else is known of it.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    properties: Option<Map>,
}

/// An action.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Action {
    /// Its name: the tool.
    name: String,
    /// Its arguments.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    properties: Option<Map>,
}

/// An access request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct EvaluationBody {
    /// Who acts.
    subject: Entity,
    /// What they do.
    action: Action,
    /// What they do it to.
    resource: Entity,
    /// More that policies read as `$.context`.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    context: Option<Map>,
}

/// Access requests; members that an item lacks are those of the whole.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = serde_json::json!([is_complete("subject"), is_complete("action"), is_complete("resource")])))]
struct EvaluationsBody {
    /// Who acts.
    subject: Option<Entity>,
    /// What they do.
    action: Option<Action>,
    /// What they do it to.
    resource: Option<Entity>,
    /// More that policies read as `$.context`.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    context: Option<Map>,
    /// The requests. Without any, the whole is one request.
    #[serde(default)]
    evaluations: Vec<EvaluationItem>,
    /// How they are evaluated.
    options: Option<EvaluationOptions>,
}

/// One of several access requests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct EvaluationItem {
    subject: Option<Entity>,
    action: Option<Action>,
    resource: Option<Entity>,
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    context: Option<Map>,
}

/// How several access requests are evaluated.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct EvaluationOptions {
    /// Which requests are evaluated.
    #[serde(default)]
    evaluations_semantic: EvaluationsSemantic,
}

/// Which of several access requests are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EvaluationsSemantic {
    /// All.
    #[default]
    ExecuteAll,
    /// Up to the first that is denied.
    DenyOnFirstDeny,
    /// Up to the first that is permitted.
    PermitOnFirstPermit,
}

/// The JSON schema of requests of which each has a member, of its own or of the whole.
fn is_complete(member: &str) -> serde_json::Value {
    let has = serde_json::json!({ "required": [member], "properties": { member: { "type": "object" } } });
    serde_json::json!({ "anyOf": [
        has,
        { "required": ["evaluations"], "properties": {
            "evaluations": { "type": "array", "minItems": 1, "items": has } } },
    ] })
}

impl EvaluationBody {
    /// The call of a request, and its context.
    fn into_call(self) -> (ToolCall, Map) {
        let Self { subject, action, resource, context } = self;
        let mut input = action.properties.unwrap_or_default();
        input.insert("resource", entity_document(resource));
        let mut all = context.unwrap_or_default();
        all.insert("principal", subject.id.clone().into());
        if let Some(roles) = subject.properties.as_ref().and_then(|members| members.get("roles")) {
            all.insert("roles", roles.clone());
        }
        all.insert("subject", entity_document(subject));
        (ToolCall::new("", action.name, Value::Object(input)), all)
    }
}

fn entity_document(entity: Entity) -> Value {
    json!({ "type": entity.r#type, "id": entity.id, "properties": entity.properties.unwrap_or_default() })
}

/// A decision of AuthZEN. It permits a call only if nothing else is needed: no approval, no answer of a policy in the tool's place.
struct AuthzenDecision {
    permits: bool,
    document: Value,
}

impl From<&Evaluation<'_>> for AuthzenDecision {
    fn from(evaluation: &Evaluation<'_>) -> Self {
        let Evaluation { effect, reason, revision, .. } = evaluation;
        let permits = *effect == Effect::Run;
        let policy =
            reason.policy.as_ref().map_or("no policy".to_owned(), |policy| format!("policy {policy}"));
        let document = json!({
            "decision": permits,
            "context": {
                "id": reason.code,
                "reason_user": { "en": reason.message },
                "reason_admin": { "en": format!("{policy}, revision {revision}") },
                "effect": effect,
            },
        });
        Self { permits, document }
    }
}

async fn decide(api: &Api, request: &ApiRequest, body: EvaluationBody) -> Result<AuthzenDecision, Problem> {
    let (mut call, context) = body.into_call();
    let session = SessionRequest { name: None, context: Some(context), task: None };
    let CallerSession { mut session, context, .. } = api.open_session(&request.caller, session)?;
    call.context = context;
    api.tool_servers.iter().for_each(|servers| servers.resolve(&mut call));
    let evaluations = session.evaluate_round(std::slice::from_ref(&call)).await?;
    let evaluation = evaluations
        .first()
        .ok_or_else(|| Problem::new(500, "internal_error", "Callgate failed to decide this call"))?;
    Ok(evaluation.into())
}

async fn evaluation(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let body = request.take_body()?;
    Ok(ApiResponse::ok(&decide(api, &request, body).await?.document))
}

async fn evaluations(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let body: EvaluationsBody = request.take_body()?;
    if body.evaluations.len() > MAX_CALLS {
        return Err(Problem::invalid(format!("`evaluations` has more than {MAX_CALLS} requests")));
    }
    let semantic = body.options.clone().unwrap_or_default().evaluations_semantic;
    if body.evaluations.is_empty() {
        let alone = EvaluationItem { subject: None, action: None, resource: None, context: None };
        let whole = complete(&body, alone)?;
        return Ok(ApiResponse::ok(&decide(api, &request, whole).await?.document));
    }
    let mut decisions = Vec::new();
    for item in body.evaluations.clone() {
        let AuthzenDecision { permits, document } = decide(api, &request, complete(&body, item)?).await?;
        decisions.push(document);
        let is_last = match semantic {
            EvaluationsSemantic::ExecuteAll => false,
            EvaluationsSemantic::DenyOnFirstDeny => !permits,
            EvaluationsSemantic::PermitOnFirstPermit => permits,
        };
        if is_last {
            break;
        }
    }
    Ok(ApiResponse::ok(&json!({ "evaluations": decisions })))
}

/// A request with the members of the whole that it lacks.
fn complete(whole: &EvaluationsBody, item: EvaluationItem) -> Result<EvaluationBody, Problem> {
    let missing =
        |member: &str| Problem::invalid(format!("`{member}` is missing in a request, and in the whole"));
    Ok(EvaluationBody {
        subject: item.subject.or_else(|| whole.subject.clone()).ok_or_else(|| missing("subject"))?,
        action: item.action.or_else(|| whole.action.clone()).ok_or_else(|| missing("action"))?,
        resource: item.resource.or_else(|| whole.resource.clone()).ok_or_else(|| missing("resource"))?,
        context: item.context.or_else(|| whole.context.clone()),
    })
}
