//! The API without HTTP: a request with its caller → a response. The HTTP server and the line protocol serve it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callgate::approval::Inbox;
use callgate::engine::Engine;
use callgate::host::{StateStore, SystemClock};
use callgate::json::{Map, Value};
use callgate_http::Caller;
use tokio::sync::watch;

use crate::activity::Activity;
use crate::approval_list::ApprovalList;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint};
use crate::endpoints;
use crate::operation_table::OperationTable;
use crate::problem::Problem;

/// How long a host may take to report the result of a call, by default.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What all endpoints use.
pub(crate) struct Api {
    pub(crate) engine: Engine,
    pub(crate) inbox: Inbox,
    pub(crate) approvals: ApprovalList,
    pub(crate) activity: Arc<Activity>,
    pub(crate) operations: OperationTable,
    /// The operator's context of every call.
    pub(crate) context: Map,
    /// Becomes true at shutdown: no operation is started any more.
    pub(crate) closing: watch::Receiver<bool>,
}

/// A request before it is routed.
pub(crate) struct UnroutedRequest<'r> {
    pub(crate) caller: Caller,
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) trace_parent: Option<String>,
}

/// The endpoint of a request, which its caller may use.
pub(crate) struct RoutedRequest {
    pub(crate) endpoint: &'static Endpoint,
    request: ApiRequest,
}

impl Api {
    pub(crate) fn new(
        engine: Engine,
        store: Arc<dyn StateStore>,
        activity: Arc<Activity>,
        settings: ApiSettings,
    ) -> Self {
        let ApiSettings { context, report_timeout, closing } = settings;
        let inbox = Inbox::new(store, engine.keys().clone(), SystemClock);
        let operations = OperationTable::new(report_timeout);
        Self { engine, inbox, approvals: ApprovalList::default(), activity, operations, context, closing }
    }

    /// Finds the endpoint of a request.
    ///
    /// # Errors
    /// There is none, or the caller may not use it.
    pub(crate) fn route(&self, unrouted: UnroutedRequest<'_>) -> Result<RoutedRequest, Problem> {
        let UnroutedRequest { caller, method, path, query, trace_parent } = unrouted;
        let on_path = || endpoints::all().filter_map(|endpoint| Some((endpoint, endpoint.matches(path)?)));
        let Some((endpoint, parameters)) = on_path().find(|(endpoint, _)| endpoint.method.name() == method) else {
            let allowed: Vec<&str> = on_path().map(|(endpoint, _)| endpoint.method.name()).collect();
            return Err(match allowed.is_empty() {
                true => Problem::not_found("there is no such endpoint; see /openapi.json"),
                false => {
                    Problem::new(405, "method_not_allowed", format!("use {} for this path", allowed.join(" or ")))
                }
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
        let request = ApiRequest { caller, parameters, query, body: Value::Null, trace_parent };
        Ok(RoutedRequest { endpoint, request })
    }

    /// Answers a request with this body (null for none).
    pub(crate) async fn answer(self: &Arc<Self>, routed: RoutedRequest, body: Value) -> ApiResponse {
        let RoutedRequest { endpoint, mut request } = routed;
        request.body = body;
        (endpoint.handler)(self, request).await.unwrap_or_else(|problem| problem.into())
    }

    /// The unique name of a caller.
    pub(crate) fn caller_name(&self, caller: &Caller) -> String {
        caller.name(self.engine.rules().defaults().principals)
    }
}

/// The settings of an API.
pub(crate) struct ApiSettings {
    /// The operator's context of every call.
    pub(crate) context: Map,
    /// How long a host may take to report the result of a call.
    pub(crate) report_timeout: Duration,
    /// Becomes true at shutdown.
    pub(crate) closing: watch::Receiver<bool>,
}

impl RoutedRequest {
    /// Whether it takes a body.
    pub(crate) fn takes_body(&self) -> bool {
        self.endpoint.body.is_some()
    }
}

impl From<Problem> for ApiResponse {
    fn from(problem: Problem) -> Self {
        Self { status: problem.status, body: problem.body() }
    }
}

/// Whether a caller sees what belongs to a tenant: its own tenant's, or everything if its credential names no tenant.
pub(crate) fn sees_tenant(caller: &Caller, tenant: Option<&Value>) -> bool {
    let none = Value::Null;
    match caller.context.get("tenant") {
        None | Some(Value::Null) => true,
        Some(own) => tenant.unwrap_or(&none) == own,
    }
}
