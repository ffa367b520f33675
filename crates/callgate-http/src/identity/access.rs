//! What a caller may do at a decision server.

use callgate::json::Value;

/// A kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// Evaluate and run its own calls, in the context of its credential.
    Caller,
    /// The same for the users that it serves: it also sets the context and the task of calls, which policies trust.
    Host,
    /// See and answer the approval requests of its tenant.
    Approver,
    /// See the rules and what they do, and confirm new ones.
    Admin,
}

impl Access {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Caller, Self::Host, Self::Approver, Self::Admin];

    /// Its name in identity files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Host => "host",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|access| access.name() == name)
    }
}

/// The kinds of access of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessSet(u8);

impl AccessSet {
    /// Only [`Access::Caller`].
    pub const CALLER: Self = Self(1 << Access::Caller as u8);

    /// Whether it contains this kind. A host is also a caller.
    pub fn allows(self, access: Access) -> bool {
        let has = |access: Access| self.0 & (1 << access as u8) != 0;
        has(access) || (access == Access::Caller && has(Access::Host))
    }

    /// The names of its kinds.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Access::ALL.into_iter().filter(move |access| self.allows(*access)).map(Access::name)
    }
}

impl FromIterator<Access> for AccessSet {
    fn from_iter<I: IntoIterator<Item = Access>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |all, access| all | 1 << access as u8))
    }
}

/// Which roles of an issuer's callers have which access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AccessRules {
    /// The access, and the roles that have it. Without an entry for `caller`, every caller has that.
    pub(super) roles: Vec<(Access, Vec<String>)>,
}

impl AccessRules {
    /// The access of a caller with this context.
    pub(super) fn access(&self, roles: Option<&Value>) -> AccessSet {
        let roles: Vec<&str> =
            roles.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let named = self
            .roles
            .iter()
            .filter(|(_, holders)| holders.iter().any(|role| roles.contains(&role.as_str())));
        let mut kinds: Vec<Access> = named.map(|(access, _)| *access).collect();
        if !self.roles.iter().any(|(access, _)| *access == Access::Caller) {
            kinds.push(Access::Caller);
        }
        kinds.into_iter().collect()
    }
}

/// Reads the list of a token.
pub(super) fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> AccessSet {
    names.into_iter().filter_map(Access::from_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    #[test]
    fn a_host_is_a_caller_and_nothing_else() {
        let host = AccessSet::from_iter([Access::Host]);
        assert_eq!(host.names().collect::<Vec<_>>(), ["caller", "host"]);
        assert_eq!(AccessSet::CALLER.names().collect::<Vec<_>>(), ["caller"]);
        assert!(!AccessSet::default().allows(Access::Caller));
    }

    #[test]
    fn roles_of_an_issuer_give_access() {
        let rules = AccessRules { roles: vec![(Access::Approver, vec!["security".into()])] };
        let access = |roles: &Value| rules.access(Some(roles)).names().collect::<Vec<_>>();
        assert_eq!(access(&json!(["security", "x"])), ["caller", "approver"]);
        assert_eq!(access(&json!(["x"])), ["caller"]);
        assert_eq!(access(&json!("security")), ["caller"], "a string is not a list of roles");
        let closed = AccessRules { roles: vec![(Access::Caller, vec!["agents".into()])] };
        assert_eq!(closed.access(None), AccessSet::default());
    }
}
