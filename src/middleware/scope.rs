//! Who shares what is cached.

use crate::authoring::{Field, Shape};
use crate::call::CallView;
use crate::json::{Value, json};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
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
    pub(super) fn read(node: &Node) -> Self {
        match node.get("scope").and_then(Node::as_str) {
            Some("tenant") => Self::Tenant,
            Some("principal") => Self::Principal,
            Some("session") => Self::Session,
            Some("shared") => Self::Shared,
            _ => Self::Own,
        }
    }

    /// The word in a rules file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Tenant => "tenant",
            Self::Principal => "principal",
            Self::Session => "session",
            Self::Shared => "shared",
        }
    }

    /// What all calls that share have in common. Nothing where a call lacks what the scope is made of.
    pub(super) fn of(self, view: &CallView<'_>, session: &str) -> Option<Value> {
        let member = |name: &str| view.call.context.get(name).filter(|value| !value.is_null());
        match self {
            Self::Own => Some(json!([member("tenant"), member("principal")])),
            Self::Tenant => member("tenant").map(|tenant| json!([tenant])),
            // A principal's name is its own only within its tenant.
            Self::Principal => member("principal").map(|principal| json!([member("tenant"), principal])),
            Self::Session => Some(json!([session])),
            Self::Shared => Some(json!([])),
        }
    }
}
