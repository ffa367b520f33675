//! The verified token of a caller, for servers behind a gateway.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callgate::json::{Map, Value};

/// A verified JSON Web Token of a caller.
#[derive(Clone, PartialEq, Eq)]
pub struct CallerToken {
    token: String,
    audiences: Vec<String>,
    /// When it expires, as time since 1970.
    expires: Duration,
}

// Leaves out the token, which must not be logged.
impl std::fmt::Debug for CallerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallerToken").field("audiences", &self.audiences).finish_non_exhaustive()
    }
}

impl CallerToken {
    /// A token whose signature and claims were verified.
    pub(super) fn new(token: &str, claims: &Map, expires: Duration) -> Self {
        let audiences = match claims.get("aud") {
            Some(Value::String(audience)) => vec![audience.clone()],
            Some(Value::Array(audiences)) => {
                audiences.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        Self { token: token.to_owned(), audiences, expires }
    }

    /// The token itself.
    pub fn as_str(&self) -> &str {
        &self.token
    }

    /// Whether its `aud` contains an audience.
    pub fn is_for(&self, audience: &str) -> bool {
        self.audiences.iter().any(|own| own == audience)
    }

    /// Whether it has expired.
    pub fn is_expired(&self) -> bool {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() >= self.expires
    }
}
