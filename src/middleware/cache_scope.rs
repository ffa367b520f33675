//! `scope`: which calls share cached results and values that scripts store.

use crate::call::CallView;
use crate::json::{Value, json};
use crate::principal::{PrincipalComparison, PrincipalValue};
use crate::rules_schema::{FieldShape, PolicyReader, Shape};
use crate::source::YamlNode;

pub(super) const SCOPE: FieldShape = FieldShape::optional(
    "scope",
    Shape::Word(&[
        ("tenant", "calls with the same `context.tenant`"),
        (
            "principal",
            "calls with the same `context.tenant` and the same `context.principal`, which must be present",
        ),
        ("session", "calls of the same session"),
        ("shared", "all calls, of all principals and tenants"),
    ]),
    "The calls that share stored values. A call that lacks a value the scope needs bypasses the cache. Default: calls with the same \
     `context.tenant` and the same `context.principal`; calls without one share with each other.",
);

/// The calls that share stored values.
#[derive(Clone, Copy, Debug)]
pub struct CacheScope {
    sharing: CacheSharing,
    principals: PrincipalComparison,
}

#[derive(Clone, Copy, Debug)]
enum CacheSharing {
    /// Calls with the same tenant and principal. Calls without one share with each other.
    TenantAndPrincipal,
    /// Calls with the same tenant.
    Tenant,
    /// Calls with the same tenant and the same principal.
    Principal,
    /// Calls of one session.
    Session,
    /// All calls.
    Shared,
}

impl CacheScope {
    /// Reads `scope`.
    pub(super) fn read(node: &YamlNode, reader: &PolicyReader<'_>) -> Self {
        let sharing = match node.get("scope").and_then(YamlNode::as_str) {
            Some("tenant") => CacheSharing::Tenant,
            Some("principal") => CacheSharing::Principal,
            Some("session") => CacheSharing::Session,
            Some("shared") => CacheSharing::Shared,
            _ => CacheSharing::TenantAndPrincipal,
        };
        Self { sharing, principals: reader.principals }
    }

    /// The name of the scope. Values that were stored in a scope with another name are not found.
    pub(super) fn name(self) -> String {
        let word = match self.sharing {
            CacheSharing::TenantAndPrincipal => "own",
            CacheSharing::Tenant => "tenant",
            CacheSharing::Principal => "principal",
            CacheSharing::Session => "session",
            CacheSharing::Shared => "shared",
        };
        match self.principals {
            PrincipalComparison::Canonical => word.to_owned(),
            PrincipalComparison::Exact => format!("{word}/exact"),
        }
    }

    /// Returns the value that all calls of the scope share. Returns `None` if the call lacks a value that the scope needs, or if its
    /// principal is not a name.
    pub(super) fn shared_key(self, view: &CallView<'_>, session: &str) -> Option<Value> {
        let context = &view.call.context;
        let tenant = context.get("tenant").filter(|value| !value.is_null());
        let principal = || match PrincipalValue::from_context(context, self.principals) {
            PrincipalValue::Principal(principal) => Some(Some(Value::from(principal.key()))),
            PrincipalValue::Missing => Some(None),
            PrincipalValue::Invalid(_) => None,
        };
        match self.sharing {
            CacheSharing::TenantAndPrincipal => Some(json!([tenant, principal()?])),
            CacheSharing::Tenant => tenant.map(|tenant| json!([tenant])),
            // The name of a principal is unique only within its tenant.
            CacheSharing::Principal => Some(json!([tenant, principal()??])),
            CacheSharing::Session => Some(json!([session])),
            CacheSharing::Shared => Some(json!([])),
        }
    }
}
