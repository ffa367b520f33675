//! People who are signed in on the approvals page: a random cookie → the caller whose token they entered.
//!
//! The token itself is not stored in the browser. It is verified again for every request, so that a revoked or expired one ends the
//! session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use callgate_http::{Caller, ReloadableAuthenticator};
use tokio::time::Instant;

use crate::problem::Problem;
use crate::random_id;

/// The name of the cookie.
const COOKIE: &str = "callgate_session";
/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// The most sessions; the oldest is removed first.
const MAX_SESSIONS: usize = 1_000;

/// The sessions.
#[derive(Default)]
pub(crate) struct BrowserSessions {
    sessions: Mutex<HashMap<String, BrowserSession>>,
}

struct BrowserSession {
    caller: Caller,
    started: Instant,
}

impl BrowserSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, BrowserSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a session of an authenticated caller, and returns the cookie of the response. `is_secure`: the browser must send it over TLS only.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(crate) fn start(&self, caller: Caller, is_secure: bool) -> Result<String, Problem> {
        let id = random_id::new("")?;
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.started.elapsed() < LIFETIME);
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) =
                sessions.iter().min_by_key(|(_, session)| session.started).map(|(id, _)| id.clone())
        {
            sessions.remove(&oldest);
        }
        let cookie = cookie(&id, LIFETIME.as_secs(), is_secure);
        sessions.insert(id, BrowserSession { caller, started: Instant::now() });
        Ok(cookie)
    }

    /// Ends the session of a request, and returns the cookie that removes it.
    pub(crate) fn end(&self, headers: &HeaderMap, is_secure: bool) -> String {
        if let Some(id) = session_id(headers) {
            self.lock().remove(&id);
        }
        cookie("", 0, is_secure)
    }

    /// The caller of a request's session, if its token is still valid.
    pub(crate) fn caller(&self, headers: &HeaderMap, identity: &ReloadableAuthenticator) -> Option<Caller> {
        let id = session_id(headers)?;
        let known = {
            let sessions = self.lock();
            let session = sessions.get(&id).filter(|session| session.started.elapsed() < LIFETIME)?;
            session.caller.clone()
        };
        let caller = identity.authenticate_again(&known);
        if caller.is_none() {
            self.lock().remove(&id);
        }
        caller
    }
}

fn cookie(id: &str, seconds: u64, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// The id of the session in the cookies of a request. Of several cookies of the name none counts.
fn session_id(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut found = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter_map(|(name, value)| (name == COOKIE).then_some(value));
    match (found.next(), found.next()) {
        (Some(id), None) if !id.is_empty() => Some(id.to_owned()),
        _ => None,
    }
}
