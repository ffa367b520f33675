//! `script` of `deny`, `halt` and `approval`: decides whether the policy applies where its `match` holds.

use super::PolicyKind;
use crate::rules_schema::{FieldShape, PolicyReader, Shape};
use crate::script::PolicyScript;
use crate::source::YamlNode;

/// The key of a script.
const KEY: &str = "script";

pub(super) const SCRIPT: FieldShape = FieldShape::optional(
    KEY,
    Shape::String("a script in Rhai"),
    "A script that decides whether the policy applies, where `match` holds: `false` or nothing does not apply, `true` applies with the \
     policy's own code and message, and `#{ code: \"…\", message: \"…\" }` with these. Whatever else happens, such as an error or a missing \
     value, the policy applies as undecided. It reads the call and the names of the bundle and has no effects.",
);

/// Reads the script of a policy. Returns `None` after reporting a problem.
pub(super) fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Option<Box<PolicyScript>>> {
    match node.get(KEY) {
        None => Some(None),
        Some(script) => reader.read_policy_script(script).map(|script| Some(Box::new(script))),
    }
}

impl PolicyKind {
    /// The script that decides whether the policy applies.
    pub fn script(&self) -> Option<&PolicyScript> {
        match self {
            Self::Deny(deny) => deny.script.as_deref(),
            Self::Halt(halt) => halt.script.as_deref(),
            Self::Approval(approval) => approval.script.as_deref(),
            _ => None,
        }
    }
}
