//! The rules in effect, and the confirmation of rules that may allow more.

use std::sync::Arc;

use callgate::engine::ConfirmError;
use callgate::json::{Value, json};
use callgate_bundle::FollowedBundle;
use callgate_http::Access;
use schemars::SchemaGenerator;

use crate::api::Api;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint, Method};
use crate::problem::Problem;
use crate::request_types::ConfirmBody;

/// The endpoints of rules.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/caller",
        access: Access::Caller,
        summary: "Get who the caller is, and what it may do.",
        body: None,
        query: &[],
        responses: &[(200, "The verified context of the caller, and its kinds of access.")],
        handler: |api, request| Box::pin(caller(api, request)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/rules",
        access: Access::Approver,
        summary: "Get the revision of the rules, their policies, and newer rules that are pending or were rejected.",
        body: None,
        query: &[],
        responses: &[(200, "The rules.")],
        handler: |api, request| Box::pin(rules(api, request)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/rules/confirm",
        access: Access::Admin,
        summary: "Confirm pending rules, which may allow more than the active ones.",
        body: Some(SchemaGenerator::subschema_for::<ConfirmBody>),
        query: &[],
        responses: &[(200, "The rules, now in effect.")],
        handler: |api, request| Box::pin(confirm(api, request)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/rules/instances",
        access: Access::Approver,
        summary: "Get which version of a published bundle each instance has that shares the state store, and why it has not a newer one.",
        body: None,
        query: &[],
        responses: &[(200, "The instances.")],
        handler: |api, request| Box::pin(instances(api, request)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/rules/check",
        access: Access::Admin,
        summary: "Check now whether a newer version of the bundle is published. Instances that share the state store follow.",
        body: None,
        query: &[],
        responses: &[(202, "The check begins.")],
        handler: |api, request| Box::pin(check(api, request)),
    },
];

async fn caller(_: &Arc<Api>, request: ApiRequest) -> Result<ApiResponse, Problem> {
    let access: Vec<&str> = request.caller.access.names().collect();
    Ok(ApiResponse::ok(&json!({ "context": request.caller.context, "access": access })))
}

async fn rules(api: &Arc<Api>, _: ApiRequest) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::ok(&document(api)))
}

async fn confirm(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let ConfirmBody { revision } = request.take_body()?;
    match api.engine.confirm(&revision) {
        Ok(()) => Ok(ApiResponse::ok(&document(api))),
        Err(error @ ConfirmError::OtherRevision { .. }) => {
            Err(Problem::new(409, "other_revision", error.to_string()))
        }
        Err(error) => Err(Problem::new(409, "nothing_pending", error.to_string())),
    }
}

async fn instances(api: &Arc<Api>, _: ApiRequest) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::ok(&json!({ "instances": followed(api)?.instances().await? })))
}

async fn check(api: &Arc<Api>, _: ApiRequest) -> Result<ApiResponse, Problem> {
    followed(api)?.check_now();
    Ok(ApiResponse::new(202, &json!({ "status": "checking" })))
}

fn followed(api: &Api) -> Result<&FollowedBundle, Problem> {
    api.followed.as_ref().ok_or_else(|| {
        let detail = "the rules of this server are files, and not a published bundle";
        Problem::new(409, "not_published", detail)
    })
}

fn document(api: &Api) -> Value {
    let status = api.engine.status();
    let policies: Vec<Value> = api
        .engine
        .rules()
        .policies()
        .iter()
        .map(|policy| {
            json!({
                "id": policy.id,
                "kind": policy.kind.definition().name,
                "mode": policy.mode.name(),
                "description": policy.description,
                "priority": policy.priority,
            })
        })
        .collect();
    json!({
        "revision": status.revision,
        "loaded_at": status.loaded_at.to_string(),
        "policies": policies,
        "pending": status.pending.map(|pending| json!({
            "revision": pending.revision,
            "since": pending.pending_since.to_string(),
            "relaxations": pending.relaxations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })),
        "rejected": status.last_rejected.map(|rejected| json!({
            "revision": rejected.revision,
            "at": rejected.rejected_at.to_string(),
            "summary": rejected.reason.summary(),
        })),
        "bundle": api.followed.as_ref().map(|followed| followed.status().report),
    })
}
