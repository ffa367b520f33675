//! Who shares what is cached.

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
            "calls with the same `context.tenant` and the same `context.principal`, which must be there",
        ),
        ("session", "calls of one session"),
        ("shared", "all calls, whoever makes them"),
    ]),
    "Who shares what is kept. A call that lacks what the scope is made of goes past the cache. Without it: calls with the same \
     `context.tenant` and the same `context.principal`, or without one.",
);

/// Who shares what is cached.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    sharing: Sharing,
    principals: Comparison,
}

#[derive(Clone, Copy, Debug)]
enum Sharing {
    /// Calls with the same tenant and principal; to have none is to share it with others that have none.
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
    /// Reads `scope` of a policy's own part.
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

    /// What tells this scope from others: what was kept under another one is not found.
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

    /// What all calls that share have in common. Returns `None` where a call lacks what the scope is made of, or has a principal
    /// that is not a name.
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
            // A principal's name is its own only within its tenant.
            Sharing::Principal => Some(json!([tenant, principal()??])),
            Sharing::Session => Some(json!([session])),
            Sharing::Shared => Some(json!([])),
        }
    }
}
