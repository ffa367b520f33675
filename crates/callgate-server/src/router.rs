//! The API without HTTP: a request with its caller → a response. The HTTP server and the line protocol serve it.

use std::collections::BTreeMap;
use std::sync::Arc;

use callgate::call::RequestTrace;
use callgate::json::{self, json};
use callgate_http::Caller;

use crate::api::Api;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint, RequestBody};
use crate::endpoints;
use crate::operation::RetryKey;
use crate::problem::Problem;

/// The longest `Idempotency-Key`, in bytes.
const MAX_IDEMPOTENCY_KEY: usize = 256;

/// A request before it is routed.
pub(crate) struct UnroutedRequest<'r> {
    pub(crate) caller: Caller,
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
    pub(crate) query: BTreeMap<String, String>,
    /// The trace that the request names.
    pub(crate) trace: RequestTrace,
    /// Whether the approvals page sends it.
    pub(crate) is_from_page: bool,
    /// The header `Idempotency-Key`.
    pub(crate) idempotency_key: Option<String>,
}

/// The endpoint of a request, which its caller may use.
pub(crate) struct RoutedRequest {
    pub(crate) endpoint: &'static Endpoint,
    request: ApiRequest,
    idempotency_key: Option<String>,
}

impl Api {
    /// Finds the endpoint of a request.
    ///
    /// # Errors
    /// There is none, or the caller may not use it.
    pub(crate) fn route(&self, unrouted: UnroutedRequest<'_>) -> Result<RoutedRequest, Problem> {
        let UnroutedRequest { caller, method, path, query, trace, is_from_page, idempotency_key } = unrouted;
        let on_path = || endpoints::all().filter_map(|endpoint| Some((endpoint, endpoint.matches(path)?)));
        let Some((endpoint, parameters)) = on_path().find(|(endpoint, _)| endpoint.method.name() == method)
        else {
            let allowed: Vec<&str> = on_path().map(|(endpoint, _)| endpoint.method.name()).collect();
            return Err(match allowed.is_empty() {
                true => Problem::not_found("there is no such endpoint; see /openapi.json"),
                false => Problem::new(
                    405,
                    "method_not_allowed",
                    format!("use {} for this path", allowed.join(" or ")),
                )
                .with_header("allow", allowed.join(", ")),
            });
        };
        if !caller.access.allows(endpoint.access) {
            let needed = endpoint.access.name();
            let detail = format!(
                "this needs `{needed}` access: sign in with the token that the server printed, or with one whose entry in the identity file \
                 has `access: [{needed}]`"
            );
            return Err(Problem::new(403, "access_denied", detail));
        }
        let RequestBody { value: body, bytes: body_bytes } = RequestBody::default();
        let request =
            ApiRequest { caller, parameters, query, body, body_bytes, trace, is_from_page, retry: None };
        if idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY) {
            let detail = format!("`Idempotency-Key` must have 1 to {MAX_IDEMPOTENCY_KEY} bytes");
            return Err(Problem::invalid(detail));
        }
        Ok(RoutedRequest { endpoint, request, idempotency_key })
    }

    /// Answers a request with this body.
    pub(crate) async fn answer(self: &Arc<Self>, routed: RoutedRequest, body: RequestBody) -> ApiResponse {
        let RoutedRequest { endpoint, mut request, idempotency_key } = routed;
        request.retry = idempotency_key.map(|key| {
            let content = json!([endpoint.path, request.parameters, body.value]);
            RetryKey { key, content: json::digest(&content).to_string() }
        });
        (request.body, request.body_bytes) = (body.value, body.bytes);
        (endpoint.handler)(self, request).await.unwrap_or_else(|problem| problem.into())
    }
}

impl RoutedRequest {
    /// Whether it takes a body.
    pub(crate) fn takes_body(&self) -> bool {
        self.endpoint.body.is_some()
    }
}
