//! Authentication of HTTP clients: by bearer tokens that the operator configured, or by JWTs of trusted issuers. Unverified claims of
//! clients are never used.

mod access;
mod caller_token;
mod certificates;
mod claims;
mod remote_keys;
mod resource;
mod reload;
mod issuer;
mod config;
mod config_schema;
mod signature_verification;
mod verification_key;
mod jwt;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::{digest, hmac as keyed, rand};
use thiserror::Error;

use callgate::json::{self, Map, Value, json};
use callgate::principal::{PrincipalComparison, PrincipalValue};

use self::certificates::{CertificateEntry, CertificateName};
use self::issuer::{Issuer, IssuerKeys};
use self::remote_keys::RemoteKeys;
use self::resource::Resource;
use crate::tls::ClientCertificate;

pub use access::{Access, AccessSet};
pub use caller_token::CallerToken;
pub use config::IdentityError;
pub use config_schema::identity_record;
pub use reload::{IdentityFile, ReloadableAuthenticator, WatchedFile};

/// The maximum length of a token, in bytes.
const MAX_TOKEN_LENGTH: usize = 16 << 10;

/// The configured tokens, certificates and trusted issuers.
pub struct Authenticator {
    tokens: Vec<BearerToken>,
    certificates: Vec<CertificateEntry>,
    issuers: Vec<Issuer>,
    /// The URL that clients use, if it is known.
    resource: Option<Resource>,
    /// A random key for constant-time comparison of token digests.
    comparison_key: keyed::Key,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

/// A configured token, as a tag of its digest.
struct BearerToken {
    tag: keyed::Tag,
    caller: Caller,
}

/// What a request authenticates its caller by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'r> {
    /// The `Authorization` header. If there is one, it counts.
    pub authorization: Option<&'r str>,
    /// The client certificate of the connection.
    pub certificate: Option<&'r ClientCertificate>,
}

/// What a caller was authenticated by.
enum Credential {
    /// The `Authorization` header.
    Header(String),
    Certificate(ClientCertificate),
}

impl Credential {
    fn as_credentials(&self) -> Credentials<'_> {
        match self {
            Self::Header(header) => Credentials { authorization: Some(header), certificate: None },
            Self::Certificate(certificate) => {
                Credentials { authorization: None, certificate: Some(certificate) }
            }
        }
    }
}

/// An authenticated client.
#[derive(Clone)]
pub struct Caller {
    /// Who authenticated it: an issuer, or the identity file.
    issuer: String,
    /// The verified context of its calls.
    pub context: Map,
    /// What it may do at a decision server. A gateway serves every caller.
    pub access: AccessSet,
    /// When its credential expires, as time since 1970.
    expires: Option<Duration>,
    /// What it was authenticated by, which is verified again after a reload.
    credential: Option<Arc<Credential>>,
    /// Its token, if an issuer signed it.
    token: Option<Arc<CallerToken>>,
}

// Leaves out the credential, which must not be logged.
impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Caller {
    /// The caller if no identities are configured: on this machine only, so it is trusted as the host is.
    pub fn anonymous() -> Self {
        Self::new("", Map::new()).with_access(AccessSet::from_iter([Access::Host]))
    }

    /// A caller that `issuer` authenticated.
    fn new(issuer: &str, context: Map) -> Self {
        Self {
            issuer: issuer.to_owned(),
            context,
            access: AccessSet::CALLER,
            expires: None,
            credential: None,
            token: None,
        }
    }

    /// An approver whom something else than an identity file has verified, such as a chat product.
    pub fn approver(issuer: &str, context: Map) -> Self {
        Self::new(issuer, context).with_access(AccessSet::from_iter([Access::Approver]))
    }

    fn with_access(mut self, access: AccessSet) -> Self {
        self.access = access;
        self
    }

    /// Its token, if an issuer signed it.
    pub fn token(&self) -> Option<&Arc<CallerToken>> {
        self.token.as_ref()
    }

    /// The unique name of the caller: issuer, tenant and principal, the latter in the form in which principals are compared. It identifies
    /// the caller's conversations, whatever else its credential contains.
    pub fn name(&self, comparison: PrincipalComparison) -> String {
        let principal = self.context.get("principal");
        let principal = match PrincipalValue::from_value(principal, comparison) {
            PrincipalValue::Principal(principal) => Value::from(principal.key()),
            PrincipalValue::Missing | PrincipalValue::Invalid(_) => json!([principal]),
        };
        json::digest(&json!([self.issuer, self.context.get("tenant"), principal, comparison])).to_string()
    }

    /// The digest of issuer, context and access. A connection serves calls of one digest only, so that a withdrawn role is not used any
    /// more.
    pub fn context_digest(&self) -> String {
        let access: Vec<&str> = self.access.names().collect();
        json::digest(&json!([self.issuer, self.context, access])).to_string()
    }

    /// The remaining validity of its credential. `None` if it does not expire.
    pub fn remaining_validity(&self) -> Option<Duration> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.expires.map(|expires| expires.saturating_sub(now))
    }
}

/// The reason why a token is rejected, for the operator's log. It does not contain the token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
struct TokenError(String);

impl TokenError {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// The reason why authentication failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthenticationError {
    /// The token is missing.
    MissingToken,
    /// The token is rejected, with a reason for the operator's log that does not contain the token.
    Rejected(String),
}

impl Authenticator {
    fn new() -> Result<Self, String> {
        let comparison_key = keyed::Key::generate(keyed::HMAC_SHA256, &rand::SystemRandom::new())
            .map_err(|_| "the system provides no random bytes".to_owned())?;
        Ok(Self {
            tokens: Vec::new(),
            certificates: Vec::new(),
            issuers: Vec::new(),
            resource: None,
            comparison_key,
        })
    }

    /// An authenticator of one token, whose caller has this context and access.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn from_token(token: &str, context: Map, access: AccessSet) -> Result<Self, String> {
        let mut identity = Self::new()?;
        identity.add_token(digest::digest(&digest::SHA256, token.as_bytes()).as_ref(), context, access);
        Ok(identity)
    }

    fn add_token(&mut self, digest: &[u8], context: Map, access: AccessSet) {
        let tag = keyed::sign(&self.comparison_key, digest);
        self.tokens.push(BearerToken { tag, caller: Caller::new("token", context).with_access(access) });
    }

    fn add_certificate(&mut self, name: CertificateName, context: Map, access: AccessSet) {
        let caller = Caller::new("certificate", context).with_access(access);
        self.certificates.push(CertificateEntry { name, caller });
    }

    /// Authenticates the caller of a request.
    ///
    /// # Errors
    /// The token is missing, unknown, expired or not signed by a trusted issuer, or the certificate is nobody's.
    pub fn authenticate(&self, credentials: Credentials<'_>) -> Result<Caller, AuthenticationError> {
        match (credentials.authorization, credentials.certificate) {
            (Some(authorization), _) => self.authenticate_token(authorization),
            (None, Some(certificate)) if !self.certificates.is_empty() => {
                let found = certificates::find_caller(&self.certificates, certificate);
                let why =
                    || format!("the client certificate with the digest {} is unknown", certificate.digest);
                let mut caller = found.cloned().ok_or_else(|| AuthenticationError::Rejected(why()))?;
                caller.credential = Some(Arc::new(Credential::Certificate(certificate.clone())));
                Ok(caller)
            }
            (None, _) => Err(AuthenticationError::MissingToken),
        }
    }

    fn authenticate_token(&self, authorization: &str) -> Result<Caller, AuthenticationError> {
        let refused = |why: &str| Err(AuthenticationError::Rejected(why.to_owned()));
        let (scheme, token) = authorization.split_once(' ').unwrap_or((authorization, ""));
        let token = token.trim();
        if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
            return refused("the `Authorization` header is not a bearer token");
        }
        if token.len() > MAX_TOKEN_LENGTH {
            return refused("the token is too long");
        }
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        // All are compared, so that the time does not reveal which one matched.
        let mut found = None;
        for known in &self.tokens {
            if keyed::verify(&self.comparison_key, digest.as_ref(), known.tag.as_ref()).is_ok() {
                found = Some(&known.caller);
            }
        }
        let mut caller = match found {
            Some(caller) => caller.clone(),
            None if self.issuers.is_empty() => return refused("the token is unknown"),
            None => issuer::authenticate(&self.issuers, token)
                .map_err(|TokenError(why)| AuthenticationError::Rejected(why))?,
        };
        caller.credential = Some(Arc::new(Credential::Header(authorization.to_owned())));
        Ok(caller)
    }

    /// The keys that should be fetched again because of a rejected credential.
    fn keys_to_refresh(&self, credentials: Credentials<'_>) -> Option<Arc<RemoteKeys>> {
        let (_, token) = credentials.authorization?.split_once(' ')?;
        let token = token.trim();
        (token.len() <= MAX_TOKEN_LENGTH).then(|| issuer::keys_to_refresh(&self.issuers, token)).flatten()
    }

    /// The keys at URLs.
    fn remote_keys(&self) -> impl Iterator<Item = &Arc<RemoteKeys>> {
        self.issuers.iter().filter_map(Issuer::remote_keys)
    }

    /// How often the keys at URLs have changed, all of them together.
    fn key_changes(&self) -> u64 {
        self.remote_keys().map(|keys| keys.changes()).fold(0, u64::wrapping_add)
    }

    /// Takes over keys that were fetched before a reload, so that tokens stay valid meanwhile.
    fn adopt_remote_keys(&mut self, before: &Self) {
        for issuer in &mut self.issuers {
            if let IssuerKeys::Remote(keys) = &mut issuer.keys
                && let Some(known) = before.remote_keys().find(|known| known.url() == keys.url())
            {
                *keys = Arc::clone(known);
            }
        }
    }

    /// The metadata of the protected resource (RFC 9728), if this path is the one for it and the identity file names the resource.
    fn resource_metadata(&self, path: &str) -> Option<Value> {
        let issuers: Vec<&str> = self.issuers.iter().map(|issuer| issuer.name.as_str()).collect();
        self.resource.as_ref()?.metadata(path, &issuers)
    }

    /// Whether a caller's credential still authenticates the same caller with the same context.
    fn still_authenticates(&self, caller: &Caller) -> bool {
        let credentials = caller.credential.as_deref().map(Credential::as_credentials).unwrap_or_default();
        self.authenticate(credentials).is_ok_and(|now| now.context_digest() == caller.context_digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(context: &Value, comparison: PrincipalComparison) -> String {
        Caller::new("token", context.as_object().unwrap().clone()).name(comparison)
    }

    #[test]
    fn names_a_caller_by_its_canonical_principal() {
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
            let found = (is_same(PrincipalComparison::Canonical), is_same(PrincipalComparison::Exact));
            assert_eq!(found, (canonical, exact), "{other}");
        }
        // No conversation passes to another caller when the rules switch to exact comparison.
        assert_ne!(names(&ann, PrincipalComparison::Canonical), names(&ann, PrincipalComparison::Exact));
    }

    #[test]
    fn other_roles_change_the_digest_of_the_context() {
        let caller = |roles: Value| Caller::new("token", Map::from_iter([("roles".to_owned(), roles)]));
        assert_ne!(caller(json!(["a"])).context_digest(), caller(json!(["b"])).context_digest());
    }
}
