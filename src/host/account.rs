//! Quota accounts: the context of a call or session → [`Account`].
//!
//! Stores give each account a share of their capacity, so that a caller who invents keys, sessions or approval requests
//! exhausts its own share only.

use crate::json::{self, Value, json};
use crate::principal::{PrincipalComparison, PrincipalValue};

/// Length in bytes of the digest that identifies a tenant or a caller.
const ID_LENGTH: usize = 16;

/// The caller that stored state is charged to, and the tenant of this caller.
///
/// The issuer, the tenant and the principal of the context together identify a caller. A caller without a tenant forms a
/// tenant of its own. Calls whose context has neither a tenant nor a principal share one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    tenant: [u8; ID_LENGTH],
    caller: [u8; ID_LENGTH],
}

impl Account {
    /// The account for state that no caller caused, and for calls whose context names no principal and no tenant.
    pub const NOBODY: Self = Self { tenant: [0; ID_LENGTH], caller: [1; ID_LENGTH] };

    /// Reads the account from a context: its `issuer`, `tenant` and `principal`.
    ///
    /// ```
    /// use callgate::state::Account;
    /// use callgate::json::json;
    ///
    /// let ann = Account::from_context(&json!({ "tenant": "red", "principal": "ann" }));
    /// assert_eq!(ann, Account::from_context(&json!({ "tenant": "red", "principal": "Ann", "roles": ["admin"] })));
    /// assert_ne!(ann, Account::from_context(&json!({ "tenant": "blue", "principal": "ann" })));
    /// ```
    pub fn from_context(context: &Value) -> Self {
        let member = |name: &str| context.get(name).filter(|value| !value.is_null());
        let (issuer, tenant) = (member("issuer"), member("tenant"));
        let principal = match PrincipalValue::from_context(context, PrincipalComparison::Canonical) {
            PrincipalValue::Principal(principal) => Some(Value::from(principal.key())),
            PrincipalValue::Missing => None,
            PrincipalValue::Invalid(_) => member("principal").cloned(),
        };
        if tenant.is_none() && principal.is_none() {
            return Self::NOBODY;
        }
        let caller = holder_id(&json!(["caller", issuer, tenant, principal]));
        match tenant {
            Some(tenant) => Self { tenant: holder_id(&json!(["tenant", issuer, tenant])), caller },
            None => Self { tenant: holder_id(&json!(["tenant of", issuer, principal])), caller },
        }
    }

    /// The bytes that identify the tenant; they differ from those of every caller.
    pub fn tenant(&self) -> &[u8] {
        &self.tenant
    }

    /// The bytes that identify the caller; they differ from those of every tenant.
    pub fn caller(&self) -> &[u8] {
        &self.caller
    }

    /// Restores an account from [`tenant`](Self::tenant) and [`caller`](Self::caller). Returns `None` if the lengths are
    /// wrong.
    pub fn from_bytes(tenant: &[u8], caller: &[u8]) -> Option<Self> {
        Some(Self { tenant: tenant.try_into().ok()?, caller: caller.try_into().ok()? })
    }
}

fn holder_id(identity: &Value) -> [u8; ID_LENGTH] {
    let mut bytes = [0; ID_LENGTH];
    for (byte, digest) in bytes.iter_mut().zip(json::digest(identity).as_bytes()) {
        *byte = *digest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_tenant_and_principal_together_identify_a_caller() {
        let account = |context: Value| Account::from_context(&context);
        let ann = account(json!({ "issuer": "i", "tenant": "t", "principal": "ann" }));
        for (other, same_tenant) in [
            (json!({ "issuer": "i", "tenant": "t", "principal": "bob" }), true),
            (json!({ "issuer": "i", "tenant": "t" }), true),
            (json!({ "issuer": "i", "tenant": "u", "principal": "ann" }), false),
            (json!({ "issuer": "j", "tenant": "t", "principal": "ann" }), false),
            (json!({ "tenant": "t", "principal": "ann" }), false),
            (json!({ "issuer": "i", "principal": "ann" }), false),
            (json!({ "principal": ["ann"] }), false),
            (json!({ "issuer": "i" }), false),
            (json!(null), false),
        ] {
            let other = account(other);
            assert_ne!(ann.caller(), other.caller());
            assert_eq!(ann.tenant() == other.tenant(), same_tenant);
        }
        assert_eq!(ann, account(json!({ "issuer": "i", "tenant": "t", "principal": "ANN", "roles": [] })));
    }

    #[test]
    fn callers_without_a_tenant_form_their_own_tenant_and_ids_never_collide() {
        let alone = |name: &str| Account::from_context(&json!({ "principal": name }));
        assert_ne!(alone("ann").tenant(), alone("bob").tenant());
        let accounts = [alone("ann"), Account::from_context(&json!({ "tenant": "ann" })), Account::NOBODY];
        let holders: std::collections::BTreeSet<&[u8]> =
            accounts.iter().flat_map(|account| [account.tenant(), account.caller()]).collect();
        assert_eq!(holders.len(), 6);
        for account in accounts {
            assert_eq!(Account::from_bytes(account.tenant(), account.caller()), Some(account));
        }
        assert_eq!(Account::from_bytes(&[1], &[2]), None);
    }
}
