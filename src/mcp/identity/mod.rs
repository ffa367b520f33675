//! Who an HTTP client is: tokens that an operator has given out, and tokens (JWT) of those whom the operator trusts to say it. What
//! clients say of themselves is never used.

mod claims;
mod issuer;
mod read;
mod shapes;
mod signatures;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::{digest, hmac as keyed, rand};

use self::issuer::Issuer;

pub use read::IdentityError;
pub use shapes::identity_record;

use crate::json::{self, Map, json};

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

/// A client that has said who it is.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// What tells it from every other: all that it was found to be. Somebody with other roles is another one.
    pub(super) key: String,
    /// What is vouched for of its calls.
    pub(super) context: Map,
    /// When what it said is no longer true, since 1970.
    expires: Option<Duration>,
}

impl Caller {
    /// Where nobody is asked who they are.
    pub(super) fn anyone() -> Self {
        Self::of("", Map::new())
    }

    fn of(vouched_by: &str, context: Map) -> Self {
        let key = json::digest(&json!([vouched_by, context])).to_string();
        Self { key, context, expires: None }
    }

    /// How long it stays who it is.
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
        self.tokens.push(KnownToken { tag, caller: Caller::of("token", context) });
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
        match found {
            Some(caller) => Ok(caller.clone()),
            None if self.issuers.is_empty() => refused("its token is none that was given out"),
            None => issuer::caller(&self.issuers, token).map_err(Unknown::Refused),
        }
    }
}
