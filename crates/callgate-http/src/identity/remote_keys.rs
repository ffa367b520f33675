//! The public keys of an issuer at a URL: fetched, refreshed, and kept for a while if the issuer can't be reached.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use reqwest::{Client, Url, header};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::verification_key::VerificationKey;
use crate::https_client::{error_chain, https_client, parse_secret_url};

/// How often the keys are refreshed.
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// The least time between two requests, so that tokens with invented keys cause no load at the issuer.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// How long keys are used if they can't be refreshed: a key that the issuer has revoked is not trusted for longer.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest key set, in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// The keys of an issuer.
pub(super) struct RemoteKeys {
    url: Url,
    client: Client,
    keys: ArcSwap<FetchedKeys>,
    /// When keys were requested last.
    attempt: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct FetchedKeys {
    keys: Vec<VerificationKey>,
    /// The text that they were read from.
    text: String,
    /// How often the keys have changed.
    changes: u64,
    /// When they were fetched; `None` if they never were.
    fetched: Option<Instant>,
}

impl RemoteKeys {
    /// The keys at a URL, none of which are fetched yet.
    ///
    /// # Errors
    /// The URL is not allowed: a text for the operator.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        // Whoever can replace the keys on their way can be anybody.
        let url = parse_secret_url(url)?;
        let client = https_client(&url).timeout(TIMEOUT).build().map_err(error_chain)?;
        Ok(Self { url, client, keys: ArcSwap::default(), attempt: Mutex::default() })
    }

    pub(super) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Whether one of the present keys meets a condition, or verifies something.
    pub(super) fn with_keys<T>(&self, use_keys: impl FnOnce(&[VerificationKey]) -> T) -> T {
        let fetched = self.keys.load();
        let is_fresh = fetched.fetched.is_some_and(|fetched| fetched.elapsed() < MAX_AGE);
        use_keys(if is_fresh { &fetched.keys } else { &[] })
    }

    /// How often the keys have changed.
    pub(super) fn changes(&self) -> u64 {
        self.keys.load().changes
    }

    /// Whether the keys should be refreshed.
    fn is_due(&self) -> bool {
        self.keys.load().fetched.is_none_or(|fetched| fetched.elapsed() >= REFRESH)
    }

    /// Refreshes the keys if they are due.
    ///
    /// # Errors
    /// They can't be fetched: a text for the operator.
    pub(super) async fn refresh_if_due(&self) -> Result<bool, String> {
        if self.is_due() { self.refresh().await } else { Ok(false) }
    }

    /// Fetches the keys, unless they were requested just now; returns whether this changed them. Requests that need the keys at the same
    /// time wait for one fetch.
    ///
    /// # Errors
    /// They can't be fetched: a text for the operator. Then the present ones stay.
    pub(super) async fn refresh(&self) -> Result<bool, String> {
        let mut attempt = self.attempt.lock().await;
        if attempt.is_some_and(|last| last.elapsed() < MIN_INTERVAL) {
            return Ok(false);
        }
        *attempt = Some(Instant::now());
        let text = self.fetch().await?;
        let keys = VerificationKey::from_jwks(&text)
            .map_err(|why| format!("`{}` is not a JSON Web Key Set: {why}", self.url))?;
        if keys.is_empty() {
            return Err(format!("`{}` has no signature key", self.url));
        }
        let before = self.keys.load();
        let is_changed = before.text != text;
        let changes = before.changes + u64::from(is_changed);
        self.keys.store(Arc::new(FetchedKeys { keys, text, changes, fetched: Some(Instant::now()) }));
        Ok(is_changed)
    }

    async fn fetch(&self) -> Result<String, String> {
        let failed = |why: String| format!("`{}` can't be fetched: {why}", self.url);
        let request = self.client.get(self.url.clone()).header(header::ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|error| failed(error_chain(error)))?;
        if response.status() != 200 {
            return Err(failed(format!("status {}", response.status().as_u16())));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(error_chain(error)))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_LENGTH {
                return Err(failed(format!("it is longer than {MAX_LENGTH} bytes")));
            }
        }
        String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        for url in ["https://login.example.com/keys", "http://127.0.0.1:8080/keys", "http://[::1]/keys"] {
            assert!(RemoteKeys::new(url).is_ok(), "{url}");
        }
        for url in [
            "http://login.example.com/keys",
            "http://127.0.0.1.example.com/keys",
            "file:///keys.json",
            "https://user:word@login.example.com/keys",
            "keys.json",
        ] {
            assert!(RemoteKeys::new(url).is_err(), "{url}");
        }
    }
}
