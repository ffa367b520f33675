//! The approver that a caller is.

use callgate::json::Value;
use callgate::message::Approver;
use callgate_http::Caller;

/// The approver whom the credential names. `None` if it names nobody.
pub(crate) fn approver(caller: &Caller) -> Option<Approver> {
    let principal = caller.context.get("principal")?.as_str()?.to_owned();
    let roles = caller.context.get("roles").and_then(Value::as_array).into_iter().flatten();
    let roles = roles.filter_map(Value::as_str).map(str::to_owned).collect();
    Some(Approver { principal, roles })
}
