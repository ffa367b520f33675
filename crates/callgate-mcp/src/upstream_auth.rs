//! Authorization of requests to a server by the token of the caller: message → `Authorization` header.
//!
//! A token reaches a server only as the operator configured it, and the token of one caller is never used for another one: each connection
//! belongs to one caller, and each message brings the token that its own request was authenticated by.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_http::{CallerToken, TokenExchange, TokenExchangeSettings};
use tokio::sync::Mutex;

use super::upstream_event::UpstreamError;

/// The most exchanged tokens that a connection keeps: those of a caller that renews its own.
const MAX_TOKENS: usize = 4;
/// The longest time for which an exchanged token is used, so that the authorization server can refuse a new one.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// An exchanged token is replaced this long before it expires, but no earlier than after three quarters of its lifetime.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);

/// How requests to a server are authorized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAuth {
    /// By the caller's own token, if its audience contains this one.
    PassThrough {
        /// The audience of the server.
        audience: String,
    },
    /// By a token that an authorization server issues in exchange for the caller's.
    TokenExchange(TokenExchangeSettings),
}

/// Authorizes the requests of one connection to a server.
pub(super) enum Authorizer {
    /// The caller's token is not used.
    None,
    PassThrough(String),
    Exchange(Box<ExchangedTokens>),
}

/// Exchanged tokens of one connection.
pub(super) struct ExchangedTokens {
    exchange: TokenExchange,
    /// Held during an exchange, so that concurrent requests share it.
    tokens: Mutex<Vec<CachedToken>>,
}

struct CachedToken {
    of: Arc<CallerToken>,
    token: String,
    until: Instant,
}

impl Authorizer {
    pub(super) fn new(auth: Option<&UpstreamAuth>) -> Result<Self, UpstreamError> {
        Ok(match auth {
            None => Self::None,
            Some(UpstreamAuth::PassThrough { audience }) => Self::PassThrough(audience.clone()),
            Some(UpstreamAuth::TokenExchange(settings)) => {
                let exchange = TokenExchange::new(settings.clone());
                let exchange = exchange.map_err(|error| UpstreamError(error.to_string()))?;
                Self::Exchange(Box::new(ExchangedTokens { exchange, tokens: Mutex::default() }))
            }
        })
    }

    /// The token for a request of this caller. `None`: the request has no token.
    ///
    /// # Errors
    /// The caller has no token that may be used. The message names none.
    pub(super) async fn token(
        &self,
        caller: Option<&Arc<CallerToken>>,
    ) -> Result<Option<String>, UpstreamError> {
        if let Self::None = self {
            return Ok(None);
        }
        let refused = |why: &str| Err(UpstreamError(why.to_owned()));
        let Some(caller) = caller else {
            return refused("it needs the caller's own token, and the caller has none of an issuer");
        };
        if caller.is_expired() {
            return refused("the caller's token has expired");
        }
        match self {
            Self::None => Ok(None),
            Self::PassThrough(audience) if caller.is_for(audience) => Ok(Some(caller.as_str().to_owned())),
            Self::PassThrough(_) => refused("the caller's token is not for it: its audience is another one"),
            Self::Exchange(tokens) => tokens.get_or_exchange(caller).await.map(Some),
        }
    }

    /// Forgets a token that the server has rejected.
    pub(super) async fn forget(&self, rejected: &str) {
        if let Self::Exchange(tokens) = self {
            tokens.tokens.lock().await.retain(|known| known.token != rejected);
        }
    }
}

impl CachedToken {
    fn is_of(&self, caller: &CallerToken) -> bool {
        self.of.as_str() == caller.as_str()
    }
}

impl ExchangedTokens {
    async fn get_or_exchange(&self, caller: &Arc<CallerToken>) -> Result<String, UpstreamError> {
        let mut tokens = self.tokens.lock().await;
        tokens.retain(|known| known.until > Instant::now());
        if let Some(known) = tokens.iter().find(|known| known.is_of(caller)) {
            return Ok(known.token.clone());
        }
        let requested = Instant::now();
        let issued = self.exchange.exchange(caller.as_str()).await;
        let issued = issued.map_err(|error| UpstreamError(error.to_string()))?;
        if tokens.len() >= MAX_TOKENS {
            tokens.remove(0);
        }
        let usable = usable_for(issued.lifetime);
        tokens.push(CachedToken {
            of: Arc::clone(caller),
            token: issued.token.clone(),
            until: requested + usable,
        });
        Ok(issued.token)
    }
}

/// How long a token of this lifetime is used.
fn usable_for(lifetime: Duration) -> Duration {
    let lifetime = lifetime.min(MAX_AGE);
    lifetime.saturating_sub(EXPIRY_MARGIN).max(lifetime * 3 / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_replaced_before_they_expire() {
        for (lifetime, used) in [(3600, 3570), (120, 90), (60, 45), (4, 3), (0, 0), (86_400, 3570)] {
            let used_for = usable_for(Duration::from_secs(lifetime));
            assert_eq!(used_for, Duration::from_secs(used), "{lifetime}");
        }
        assert_eq!(usable_for(Duration::MAX), Duration::from_secs(3570));
    }
}
