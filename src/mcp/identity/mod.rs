//! Who an HTTP client is: tokens that an operator has given out, and tokens (JWT) of those whom the operator trusts to say it. What
//! clients say of themselves is never used.

mod claims;
mod current;
mod issuer;
mod read;
mod shapes;
mod signatures;
mod token;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::{digest, hmac as keyed, rand};

use crate::json::{self, Map, Value, json};
use crate::principal::{Comparison, Named};

use self::issuer::Issuer;

pub use current::IdentityFile;
pub(super) use current::{CurrentIdentity, Followed};
pub use read::IdentityError;
pub use shapes::identity_record;

/// The longest token that is looked at, in bytes.
const LONGEST_TOKEN: usize = 16 << 10;

/// Whom the operator knows, and whom the operator believes about others.
pub struct Identity {
    tokens: Vec<KnownToken>,
    issuers: Vec<Issuer>,
    /// Digests are compared under a key that nobody knows, so that how long it takes tells nothing.
    comparing: keyed::Key,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// A token that was given out, by its digest.
struct KnownToken {
    tag: keyed::Tag,
    caller: Caller,
}

/// An authenticated client.
#[derive(Clone)]
pub(super) struct Caller {
    /// Who vouches for it: an issuer, or the identity file.
    issuer: String,
    /// What is vouched for of its calls.
    pub(super) context: Map,
    /// When its credential expires, since 1970.
    expires: Option<Duration>,
    /// The `Authorization` header, to be checked again when identities change.
    credential: Option<Arc<str>>,
}

// Without the credential, which must not be logged.
impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Caller {
    /// The caller where no identities are configured.
    pub(super) fn anonymous() -> Self {
        Self::new("", Map::new())
    }

    /// A caller that `issuer` vouches for.
    fn new(issuer: &str, context: Map) -> Self {
        Self { issuer: issuer.to_owned(), context, expires: None, credential: None }
    }

    /// Names the caller among all callers: issuer, tenant and subject together, the subject in the form in which principals are
    /// compared. What the caller's conversations have seen is found by it, whatever else its credential says.
    pub(super) fn name(&self, comparison: Comparison) -> String {
        let principal = self.context.get("principal");
        let principal = match Named::from_value(principal, comparison) {
            Named::Principal(principal) => Value::from(principal.key()),
            Named::Nobody | Named::Invalid(_) => json!([principal]),
        };
        json::digest(&json!([self.issuer, self.context.get("tenant"), principal, comparison])).to_string()
    }

    /// The digest of everything that is vouched for. A connection serves calls of one such digest, so that a role which was withdrawn is
    /// not used any more.
    pub(super) fn vouched(&self) -> String {
        json::digest(&json!([self.issuer, self.context])).to_string()
    }

    /// How long its credential is still valid. `None`: it does not expire.
    pub(super) fn lasts(&self) -> Option<Duration> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.expires.map(|expires| expires.saturating_sub(now))
    }
}

/// Why nobody is believed to be calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// There is no token.
    Silent,
    /// The token is not believed, and why: for the operator's log, without the token.
    Refused(String),
}

impl Identity {
    fn new() -> Result<Self, String> {
        let comparing = keyed::Key::generate(keyed::HMAC_SHA256, &rand::SystemRandom::new())
            .map_err(|_| "the system gives no random bytes".to_owned())?;
        Ok(Self { tokens: Vec::new(), issuers: Vec::new(), comparing })
    }

    fn add_token(&mut self, digest: &[u8], context: Map) {
        let tag = keyed::sign(&self.comparing, digest);
        self.tokens.push(KnownToken { tag, caller: Caller::new("token", context) });
    }

    /// Who calls, by the `Authorization` header of the request.
    pub(super) fn caller(&self, authorization: Option<&str>) -> Result<Caller, Unknown> {
        let refused = |why: &str| Err(Unknown::Refused(why.to_owned()));
        let Some(authorization) = authorization else { return Err(Unknown::Silent) };
        let (scheme, token) = authorization.split_once(' ').unwrap_or((authorization, ""));
        let token = token.trim();
        if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
            return refused("its `Authorization` is no bearer token");
        }
        if token.len() > LONGEST_TOKEN {
            return refused("its token is too long");
        }
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        // All are compared, so that it does not tell which was close.
        let mut found = None;
        for known in &self.tokens {
            if keyed::verify(&self.comparing, digest.as_ref(), known.tag.as_ref()).is_ok() {
                found = Some(&known.caller);
            }
        }
        let mut caller = match found {
            Some(caller) => caller.clone(),
            None if self.issuers.is_empty() => return refused("its token is none that was given out"),
            None => issuer::caller(&self.issuers, token).map_err(Unknown::Refused)?,
        };
        caller.credential = Some(authorization.into());
        Ok(caller)
    }

    /// Whether a caller's credential still names the same caller with the same context.
    fn still_vouches_for(&self, caller: &Caller) -> bool {
        self.caller(caller.credential.as_deref()).is_ok_and(|now| now.vouched() == caller.vouched())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(context: &Value, comparison: Comparison) -> String {
        Caller::new("token", context.as_object().unwrap().clone()).name(comparison)
    }

    #[test]
    fn a_caller_is_its_principal_in_every_spelling_and_nobody_else() {
        let ann = json!({ "principal": "ann", "roles": ["a"] });
        for (other, canonical, exact) in [
            (json!({ "principal": "Ann\u{a0}", "roles": ["a"] }), true, false),
            (json!({ "principal": "\u{430}nn", "roles": ["a"] }), false, false),
            (json!({ "principal": "ann", "roles": ["b"] }), true, true),
            (json!({ "principal": "ann", "roles": ["a"], "tenant": "t" }), false, false),
            (json!({ "principal": 42, "roles": ["a"] }), false, false),
            (json!({ "roles": ["a"] }), false, false),
        ] {
            let is_same = |comparison| names(&ann, comparison) == names(&other, comparison);
            let found = (is_same(Comparison::Canonical), is_same(Comparison::Exact));
            assert_eq!(found, (canonical, exact), "{other}");
        }
        // Nor does a conversation change hands when the rules begin to compare exactly.
        assert_ne!(names(&ann, Comparison::Canonical), names(&ann, Comparison::Exact));
    }

    #[test]
    fn a_connection_serves_one_set_of_roles() {
        let caller = |roles: Value| Caller::new("token", Map::from_iter([("roles".to_owned(), roles)]));
        assert_ne!(caller(json!(["a"])).vouched(), caller(json!(["b"])).vouched());
    }
}
