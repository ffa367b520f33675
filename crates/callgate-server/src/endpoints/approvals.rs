//! Approval requests, answers to them, remembered approvals, and what happened lately.

use std::sync::Arc;

use callgate::approval::{InboxError, InboxItem, LedgerKey, RequestStatus};
use callgate::card::call_digest;
use callgate::json::{self, Map, Value, json};
use callgate::message::{RequestPart, ResponsePart};
use callgate::{EngineEventKind, RecordedAnswer};
use callgate_http::{Access, Caller};
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use schemars::SchemaGenerator;

use crate::api::{Api, sees_tenant};
use crate::approval_document::{approval_document, grant_document};
use crate::approver::approver;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint, Method, QueryKind, QueryParameter};
use crate::problem::Problem;
use crate::request_types::{AnswerBody, AnswerDecision, AnswersBody, NamedAnswer};
use crate::session_name::shown_name;

/// The most answers of one request.
const MAX_ANSWERS: usize = 100;
/// The number of entries of a page by default, and at most.
const PAGE: (usize, usize) = (100, 500);

/// The endpoints of approvals.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/approvals",
        access: Access::Approver,
        summary: "List approval requests: pending ones first, the oldest first.",
        body: None,
        query: &[
            QueryParameter::new(
                "status",
                QueryKind::Word(&["pending", "all"]),
                "`pending`, or `all`. Default: `pending`.",
            ),
            QueryParameter::new(
                "search",
                QueryKind::Text,
                "Only requests whose tool, session, requester, message or arguments contain this text.",
            ),
            QueryParameter::new("limit", QueryKind::Number, "How many to return. Default 100, at most 500."),
            QueryParameter::new("offset", QueryKind::Number, "How many to skip."),
        ],
        responses: &[(200, "The requests, and how many there are.")],
        handler: |api, request| Box::pin(list(api, request)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/approvals/{approval}",
        access: Access::Approver,
        summary: "Get an approval request with its answers and status.",
        body: None,
        query: &[],
        responses: &[(200, "The request.")],
        handler: |api, request| Box::pin(show(api, request)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/approvals/{approval}/answers",
        access: Access::Approver,
        summary: "Answer an approval request as the authenticated approver.",
        body: Some(SchemaGenerator::subschema_for::<AnswerBody>),
        query: &[],
        responses: &[(200, "The request with the answer.")],
        handler: |api, request| Box::pin(answer(api, request)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/answers",
        access: Access::Approver,
        summary: "Answer several approval requests as the authenticated approver.",
        body: Some(SchemaGenerator::subschema_for::<AnswersBody>),
        query: &[],
        responses: &[(200, "For each answer the request with it, or the problem that it was refused with.")],
        handler: |api, request| Box::pin(answer_several(api, request)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/grants",
        access: Access::Admin,
        summary: "List remembered approvals, which apply to later calls.",
        body: None,
        query: &[],
        responses: &[(200, "The remembered approvals.")],
        handler: |api, request| Box::pin(grants(api, request)),
    },
    Endpoint {
        method: Method::Delete,
        path: "/v1/grants/{grant}",
        access: Access::Admin,
        summary: "Revoke a remembered approval.",
        body: None,
        query: &[],
        responses: &[(200, "The revoked approval.")],
        handler: |api, request| Box::pin(revoke(api, request)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/activity",
        access: Access::Approver,
        summary: "List what happened lately, the newest first: completed calls, approval requests and answers.",
        body: None,
        query: &[
            QueryParameter::new(
                "session",
                QueryKind::Text,
                "Only events of this session, by its `conversation`.",
            ),
            QueryParameter::new("policy", QueryKind::Text, "Only calls in which this policy took part."),
            QueryParameter::new("limit", QueryKind::Number, "How many to return. Default 100, at most 500."),
        ],
        responses: &[(200, "The events.")],
        handler: |api, request| Box::pin(activity(api, request)),
    },
];

/// The id of a request in URLs.
fn url_id(key: &LedgerKey) -> String {
    let name = json::canonical_text(&json!([key.conversation, key.occurrence_id]));
    BASE64URL_NOPAD.encode(name.as_bytes())
}

fn key_from_url(id: &str) -> Option<LedgerKey> {
    let name = json::parse_bytes(&BASE64URL_NOPAD.decode(id.as_bytes()).ok()?).ok()?;
    let text = |index: usize| name.get(index).and_then(Value::as_str).map(str::to_owned);
    Some(LedgerKey { conversation: text(0)?, occurrence_id: text(1)? })
}

/// Whether a caller sees a request: those of its tenant. Of an invalid one the tenant is unknown.
pub(crate) fn sees(caller: &Caller, item: &InboxItem) -> bool {
    sees_tenant(caller, item.bound_request.as_ref().map(|bound| &bound.tenant))
}

/// The document of a request, with what URLs and people need.
pub(crate) fn document(item: &InboxItem) -> Value {
    let mut document = approval_document(item);
    if let Value::Object(members) = &mut document {
        members.insert("key", url_id(&item.key).into());
        members.insert("session", shown_name(&item.key.conversation).into());
    }
    document
}

async fn list(api: &Arc<Api>, request: ApiRequest) -> Result<ApiResponse, Problem> {
    let (limit, offset) =
        (request.number("limit", PAGE.0, PAGE.1)?, request.number("offset", 0, usize::MAX)?);
    let only_pending = match request.query.get("status").map(String::as_str) {
        None | Some("pending") => true,
        Some("all") => false,
        Some(_) => return Err(Problem::invalid("the query parameter `status` must be `pending` or `all`")),
    };
    let items = api.activity.approvals.items(&api.inbox).await.map_err(problem)?;
    let search = request.query.get("search").map(|text| text.to_lowercase()).filter(|text| !text.is_empty());
    let mut seen: Vec<&InboxItem> =
        items.iter().map(|item| &**item).filter(|item| sees(&request.caller, item)).collect();
    let pending = seen.iter().filter(|item| item.is_pending()).count();
    seen.retain(|item| {
        (!only_pending || item.is_pending()) && search.as_ref().is_none_or(|search| contains(item, search))
    });
    // Pending ones first, those that wait for longest first; then the newest.
    seen.sort_by_key(|item| {
        let asked_at = item.bound_request.as_ref().map_or(0, |bound| bound.asked_at.as_nanosecond());
        (!item.is_pending(), if item.is_pending() { asked_at } else { -asked_at })
    });
    let page: Vec<Value> = seen.iter().skip(offset).take(limit).map(|item| summary(document(item))).collect();
    Ok(ApiResponse::ok(&json!({ "approvals": page, "found": seen.len(), "pending": pending })))
}

/// A document for a list: without what only the request itself shows.
fn summary(mut document: Value) -> Value {
    if let Value::Object(members) = &mut document {
        members.remove("outcome");
    }
    document
}

fn contains(item: &InboxItem, search: &str) -> bool {
    let request = &item.request;
    let requester = item.bound_request.as_ref().and_then(|bound| bound.requester.as_deref());
    let texts = [
        Some(request.tool_name.as_str()),
        request.message.as_deref(),
        requester,
        Some(&item.key.conversation),
    ];
    texts.into_iter().flatten().any(|text| text.to_lowercase().contains(search))
        || request.input.to_string().to_lowercase().contains(search)
}

async fn find(api: &Api, caller: &Caller, key: &str) -> Result<InboxItem, Problem> {
    let unknown = || Problem::not_found("there is no such approval request");
    let key = key_from_url(key).ok_or_else(unknown)?;
    let item = api.inbox.get(&key).await.map_err(problem)?;
    if sees(caller, &item) { Ok(item) } else { Err(unknown()) }
}

async fn show(api: &Arc<Api>, request: ApiRequest) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::ok(&document(&find(api, &request.caller, request.parameter(0)).await?)))
}

async fn answer(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let body: AnswerBody = request.take_body()?;
    record_answer(api, &request, request.parameter(0), body).await.map(|body| ApiResponse::ok(&body))
}

async fn answer_several(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let AnswersBody { answers } = request.take_body()?;
    if answers.is_empty() || answers.len() > MAX_ANSWERS {
        return Err(Problem::invalid(format!("`answers` must have 1 to {MAX_ANSWERS} answers")));
    }
    let mut results = Vec::new();
    for NamedAnswer { key, decision, digest, reason } in answers {
        let body = AnswerBody { decision, digest, reason, input: None, output: None };
        results.push(match record_answer(api, &request, &key, body).await {
            Ok(document) => json!({ "key": key, "request": document }),
            Err(problem) => json!({ "key": key, "problem": problem.body() }),
        });
    }
    Ok(ApiResponse::ok(&json!({ "results": results })))
}

/// Records an answer, and returns the document of the request.
async fn record_answer(
    api: &Arc<Api>,
    request: &ApiRequest,
    key: &str,
    body: AnswerBody,
) -> Result<Value, Problem> {
    let item = find(api, &request.caller, key).await?;
    let via = if request.is_from_page { "page" } else { "api" };
    answer_item(api, &request.caller, &item, body, via).await.map(|after| document(&after))
}

/// Records an answer to a request, and returns the request with it. `via`: where it was given.
///
/// # Errors
/// It is not an answer to what was shown, or it would change nothing.
pub(crate) async fn answer_item(
    api: &Arc<Api>,
    caller: &Caller,
    item: &InboxItem,
    body: AnswerBody,
    via: &str,
) -> Result<InboxItem, Problem> {
    let shown = call_digest(&RequestPart::from(&item.request));
    if body.digest != shown {
        let detail = "the digest is not that of the request; read it again before you answer";
        return Err(Problem::new(409, "changed", detail));
    }
    let approves = body.decision == AnswerDecision::Approve;
    if !approves && (body.input.is_some() || body.output.is_some()) {
        return Err(Problem::invalid("`input` and `output` are only allowed with `decision: approve`"));
    }
    if body.input.is_some() && body.output.is_some() {
        return Err(Problem::invalid("only one of `input` and `output` is allowed"));
    }
    let response = ResponsePart {
        approved: approves,
        cancel: body.decision == AnswerDecision::Cancel,
        reason: body.reason.filter(|reason| !reason.trim().is_empty()),
        edited_input: body.input,
        output: body.output,
        ..ResponsePart::default()
    };
    let (approver, reason) = (approver(caller), response.reason.clone());
    let by = approver.as_ref().map(|by| by.principal.clone());
    let after = api.inbox.answer_shown(item, response, approver).await.map_err(problem)?;
    api.activity.approvals.note_change(item.key.clone());
    let decision = match body.decision {
        AnswerDecision::Approve => "approve",
        AnswerDecision::Deny => "deny",
        AnswerDecision::Cancel => "cancel",
    };
    let complete = !matches!(after.status, RequestStatus::Pending { .. });
    api.engine.report(EngineEventKind::AnswerRecorded(RecordedAnswer {
        approval_id: &item.request.approval_id,
        session: &item.key.conversation,
        call: &item.request.tool_call_id,
        tool: &item.request.tool_name,
        decision,
        by: by.as_deref(),
        via,
        complete,
    }));
    let members = json!({
        "id": item.request.tool_call_id,
        "tool": item.request.tool_name,
        "approval": item.request.approval_id,
        "decision": decision,
        "by": by,
        "comment": reason,
        "via": via,
        "complete": complete,
    });
    let tenant = after.bound_request.as_ref().map(|bound| bound.tenant.clone());
    if let Value::Object(members) = members {
        api.activity.add("answer_recorded", tenant, Some(&item.key.conversation), members);
    }
    Ok(after)
}

/// Grants name no tenant, so only administrators of all tenants see them.
fn check_all_tenants(caller: &Caller) -> Result<(), Problem> {
    let detail = "remembered approvals of all tenants need a credential without a tenant";
    match sees_tenant(caller, None) {
        true => Ok(()),
        false => Err(Problem::new(403, "access_denied", detail)),
    }
}

async fn grants(api: &Arc<Api>, request: ApiRequest) -> Result<ApiResponse, Problem> {
    check_all_tenants(&request.caller)?;
    let now = Timestamp::now();
    let grants = api.inbox.grants().await.map_err(problem)?;
    let grants: Vec<Value> = grants.iter().map(|(name, grant)| grant_document(name, grant, now)).collect();
    Ok(ApiResponse::ok(&json!({ "grants": grants })))
}

async fn revoke(api: &Arc<Api>, request: ApiRequest) -> Result<ApiResponse, Problem> {
    check_all_tenants(&request.caller)?;
    let (name, grant) = api.inbox.revoke(request.parameter(0)).await.map_err(problem)?;
    Ok(ApiResponse::ok(&grant_document(&name, &grant, Timestamp::now())))
}

async fn activity(api: &Arc<Api>, request: ApiRequest) -> Result<ApiResponse, Problem> {
    let limit = request.number("limit", PAGE.0, PAGE.1)?;
    let (session, policy) = (request.query.get("session"), request.query.get("policy"));
    let entries = api.activity.last(limit, |entry| {
        let is_of_policy = |policy: &String| {
            let policies = entry.document.get("policies").and_then(Value::as_array);
            policies.into_iter().flatten().any(|by| by.get("id").and_then(Value::as_str) == Some(policy))
        };
        sees_tenant(&request.caller, entry.tenant.as_ref())
            && session.is_none_or(|session| entry.session.as_ref() == Some(session))
            && policy.is_none_or(is_of_policy)
    });
    let events: Vec<&Value> = entries.iter().map(|entry| &entry.document).collect();
    let mut body = Map::new();
    body.insert("events", json!(events));
    Ok(ApiResponse::ok(&Value::Object(body)))
}

fn problem(error: InboxError) -> Problem {
    let text = error.to_string();
    match error {
        InboxError::NotFound { .. } | InboxError::GrantNotFound { .. } => Problem::not_found(text),
        InboxError::Ambiguous { .. } => Problem::new(409, "ambiguous", text),
        InboxError::Anonymous => Problem::new(403, "anonymous", text),
        InboxError::Rejected { code, why } => Problem::new(409, code, why),
        _ => Problem::unavailable("store_unavailable", text),
    }
}
