//! What all endpoints use: the engine, its store, and the operations in progress.

use std::sync::Arc;
use std::time::Duration;

use callgate::approval::Inbox;
use callgate::engine::Engine;
use callgate::host::{StateStore, SystemClock};
use callgate::json::{Map, Value};
use callgate_bundle::FollowedBundle;
use callgate_http::Caller;
use callgate_mcp::ToolServers;
use tokio::sync::watch;

use crate::activity::Activity;
use crate::operation_table::OperationTable;

/// How long a host may take to report the result of a call, by default.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What all endpoints use.
pub(crate) struct Api {
    pub(crate) engine: Engine,
    pub(crate) inbox: Inbox,
    pub(crate) activity: Arc<Activity>,
    pub(crate) operations: OperationTable,
    /// The operator's context of every call.
    pub(crate) context: Map,
    /// The servers whose tools are run here rather than by hosts.
    pub(crate) tool_servers: Option<Arc<ToolServers>>,
    /// The published bundle that the rules come from.
    pub(crate) followed: Option<FollowedBundle>,
    /// Becomes true at shutdown: no operation is started any more.
    pub(crate) closing: watch::Receiver<bool>,
}

impl Api {
    pub(crate) fn new(
        engine: Engine,
        store: Arc<dyn StateStore>,
        activity: Arc<Activity>,
        settings: ApiSettings,
    ) -> Self {
        let ApiSettings { context, report_timeout, tool_servers, followed, closing } = settings;
        let inbox = Inbox::new(store, engine.keys().clone(), SystemClock);
        let operations = OperationTable::new(report_timeout);
        Self { engine, inbox, activity, operations, context, tool_servers, followed, closing }
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
    /// The servers whose tools are run here rather than by hosts.
    pub(crate) tool_servers: Option<Arc<ToolServers>>,
    /// The published bundle that the rules come from.
    pub(crate) followed: Option<FollowedBundle>,
    /// Becomes true at shutdown.
    pub(crate) closing: watch::Receiver<bool>,
}

/// Whether a caller sees what belongs to a tenant: its own tenant's, or everything if its credential names no tenant.
pub(crate) fn sees_tenant(caller: &Caller, tenant: Option<&Value>) -> bool {
    let none = Value::Null;
    match caller.context.get("tenant") {
        None | Some(Value::Null) => true,
        Some(own) => tenant.unwrap_or(&none) == own,
    }
}
