//! `scope`: which calls share cached results and values that scripts store.

use crate::authoring::{Field, Reader, Shape};
use crate::call::CallView;
use crate::json::{Value, json};
use crate::principal::{Comparison, Named};
use crate::source::Node;

pub(super) const SCOPE: Field = Field::optional(
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
pub struct Scope {
    sharing: Sharing,
    principals: Comparison,
}

#[derive(Clone, Copy, Debug)]
enum Sharing {
    /// Calls with the same tenant and principal. Calls without one share with each other.
    Own,
    /// Calls with the same tenant.
    Tenant,
    /// Calls with the same tenant and the same principal.
    Principal,
    /// Calls of one session.
    Session,
    /// All calls.
    Shared,
}

impl Scope {
    /// Reads `scope`.
    pub(super) fn read(node: &Node, reader: &Reader<'_>) -> Self {
        let sharing = match node.get("scope").and_then(Node::as_str) {
            Some("tenant") => Sharing::Tenant,
            Some("principal") => Sharing::Principal,
            Some("session") => Sharing::Session,
            Some("shared") => Sharing::Shared,
            _ => Sharing::Own,
        };
        Self { sharing, principals: reader.principals }
    }

    /// The name of the scope. Values that were stored in a scope with another name are not found.
    pub(super) fn name(self) -> String {
        let word = match self.sharing {
            Sharing::Own => "own",
            Sharing::Tenant => "tenant",
            Sharing::Principal => "principal",
            Sharing::Session => "session",
            Sharing::Shared => "shared",
        };
        match self.principals {
            Comparison::Canonical => word.to_owned(),
            Comparison::Exact => format!("{word}/exact"),
        }
    }

    /// Returns the value that all calls of the scope share. Returns `None` if the call lacks a value that the scope needs, or if its
    /// principal is not a name.
    pub(super) fn of(self, view: &CallView<'_>, session: &str) -> Option<Value> {
        let context = &view.call.context;
        let tenant = context.get("tenant").filter(|value| !value.is_null());
        let principal = || match Named::from_context(context, self.principals) {
            Named::Principal(principal) => Some(Some(Value::from(principal.key()))),
            Named::Nobody => Some(None),
            Named::Invalid(_) => None,
        };
        match self.sharing {
            Sharing::Own => Some(json!([tenant, principal()?])),
            Sharing::Tenant => tenant.map(|tenant| json!([tenant])),
            // The name of a principal is unique only within its tenant.
            Sharing::Principal => Some(json!([tenant, principal()??])),
            Sharing::Session => Some(json!([session])),
            Sharing::Shared => Some(json!([])),
        }
    }
}
