//! DNS rebinding protection and CORS: checks `Origin` and `Host`, so that web pages can't use a gateway merely because it runs on the
//! same machine as the browser.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use thiserror::Error;

use crate::headers::{HeaderError, single_value};
use crate::responses;

/// The reason why the origin or the host of a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OriginError {
    /// A header is invalid.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The page of this origin may not send requests.
    #[error("this origin is not allowed")]
    Origin,
    /// The host name is not one of this server.
    #[error("this host name is not allowed")]
    Host,
}

/// The allowed origins and host names.
#[derive(Clone, Debug)]
pub struct OriginPolicy {
    /// The server listens on a loopback address.
    is_local: bool,
    origins: Vec<String>,
}

impl OriginPolicy {
    /// A policy for a server that listens on a loopback address (`is_local`) or not, and allows pages of these origins.
    pub fn new(is_local: bool, origins: Vec<String>) -> Self {
        let origins =
            origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self { is_local, origins }
    }

    /// Checks the origin and the host of a request.
    ///
    /// # Errors
    /// The origin or the host is not allowed, or its header is invalid.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), OriginError> {
        if let Some(origin) = single_value(headers, &header::ORIGIN)? {
            let origin = origin.to_ascii_lowercase();
            let host = origin.parse::<Uri>().ok().and_then(|uri| uri.host().map(is_loopback_name));
            let is_allowed_origin = self.origins.contains(&origin) || (self.is_local && host == Some(true));
            if !is_allowed_origin {
                return Err(OriginError::Origin);
            }
        }
        if !self.is_local {
            return Ok(());
        }
        // DNS rebinding: a page whose name was made to resolve to this machine sends that name.
        let host = single_value(headers, &header::HOST)?.unwrap_or_default();
        let is_allowed = |name: &str| {
            let is_same = |uri: Uri| uri.host().is_some_and(|host| host.eq_ignore_ascii_case(name));
            let of_origin = |origin: &String| origin.parse::<Uri>().is_ok_and(is_same);
            is_loopback_name(name) || self.origins.iter().any(of_origin)
        };
        match host.parse::<Authority>() {
            Ok(host) if is_allowed(host.host()) => Ok(()),
            _ => Err(OriginError::Host),
        }
    }
}

fn is_loopback_name(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// The response to a CORS preflight request.
pub fn preflight(headers: &HeaderMap) -> Response {
    let mut response = responses::empty(204);
    let requested_headers = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let allowed = response.headers_mut();
    allowed
        .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE, OPTIONS"));
    if let Some(requested_headers) = requested_headers {
        allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested_headers);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lets_in(policy: &OriginPolicy, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        policy.check(&headers).is_ok()
    }

    #[test]
    fn allows_local_and_configured_origins_only() {
        let local = OriginPolicy::new(true, vec!["https://app.example.com/".into()]);
        for (host, origin, lets) in [
            ("127.0.0.1:80", None, true),
            ("localhost:8080", Some("http://localhost:3000"), true),
            ("[::1]:8080", Some("http://[::1]"), true),
            ("LocalHost:8080", None, true),
            ("APP.example.com", None, true),
            ("localhost", Some("https://app.example.com"), true),
            ("app.example.com", None, true),
            ("localhost", Some("https://evil.example.com"), false),
            ("localhost", Some("http://localhost.evil.example.com"), false),
            ("localhost", Some("http://localhost@evil.example.com"), false),
            ("localhost", Some("null"), false),
            ("localhost", Some("https://app.example.com:8443"), false),
            ("evil.example.com", None, false),
            ("localhost.evil.example.com", None, false),
            ("10.0.0.1", None, false),
            ("localhost/evil.example.com", None, false),
            ("localhost@evil.example.com", None, false),
            ("", None, false),
        ] {
            assert_eq!(lets_in(&local, host, origin), lets, "{host} {origin:?}");
        }
        let open = OriginPolicy::new(false, vec!["https://app.example.com".into()]);
        assert!(lets_in(&open, "mcp.example.com", None));
        assert!(lets_in(&open, "mcp.example.com", Some("https://app.example.com")));
        // A page on the user's own machine is not local to this one.
        assert!(!lets_in(&open, "mcp.example.com", Some("http://localhost:3000")));
    }
}
