//! The binding of an approval to its context: the agent's identity and the context members that policies read → [`BoundContext`].

use serde::{Deserialize, Serialize};

use crate::call::ContextReads;
use crate::json::{self, Digest, Value, json};
use crate::principal::{PrincipalComparison, PrincipalValue};

/// The identity and the context members that an approval is bound to. It does not apply to a call with another context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundContext {
    /// The members that policies read, besides the identity; `None` for the whole context.
    members: Option<Vec<String>>,
    /// The digest of the identity and of these members.
    digest: Digest,
}

impl BoundContext {
    /// Binds the identity and the members in `reads` of a context.
    pub fn new(reads: &ContextReads, context: &Value, comparison: PrincipalComparison) -> Self {
        let members = reads.members().map(|names| names.map(str::to_owned).collect());
        Self { members, digest: digest(reads, context, comparison) }
    }

    /// Whether a context has the same identity, and the same values in these members.
    pub fn matches(&self, context: &Value, comparison: PrincipalComparison) -> bool {
        digest(&self.reads(), context, comparison) == self.digest
    }

    /// The members and the identity, for messages: `context.plan, context.region`.
    pub fn describe(&self) -> String {
        match &self.members {
            None => "context".to_owned(),
            Some(members) => {
                let identity = IDENTITY_MEMBERS.iter().map(|name| (*name).to_owned());
                let mut names: Vec<String> = identity.chain(members.iter().cloned()).collect();
                names.sort();
                names.dedup();
                names.iter().map(|name| format!("context.{name}")).collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn reads(&self) -> ContextReads {
        match &self.members {
            Some(members) => members.iter().map(String::as_str).collect(),
            None => {
                let mut reads = ContextReads::default();
                reads.add_everything();
                reads
            }
        }
    }
}

/// The members that make up an identity.
const IDENTITY_MEMBERS: [&str; 3] = ["principal", "roles", "tenant"];

fn digest(reads: &ContextReads, context: &Value, comparison: PrincipalComparison) -> Digest {
    json::digest(&json!([identity(context, comparison), reads.select(context)]))
}

/// The principal in its compared form, the roles in any order, and the tenant.
fn identity(context: &Value, comparison: PrincipalComparison) -> Value {
    let member = |name: &str| context.get(name).unwrap_or(&Value::Null);
    let principal = match PrincipalValue::from_context(context, comparison) {
        PrincipalValue::Principal(principal) => json!(["named", principal.key()]),
        PrincipalValue::Missing => Value::Null,
        PrincipalValue::Invalid(_) => json!(["invalid", context.get("principal").unwrap_or(context)]),
    };
    let names =
        member("roles").as_array().map(|roles| roles.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let roles = match names {
        Some(Some(mut names)) => {
            names.sort_unstable();
            names.dedup();
            json!(names)
        }
        _ => member("roles").clone(),
    };
    json!([principal, roles, member("tenant")])
}
