//! The HTTP client for one server. No other module depends on the HTTP library.

use std::time::Duration;

use callgate_http::{error_chain, https_client};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};

use crate::upstream_auth::UpstreamAuth;
use crate::upstream_event::UpstreamError;

/// Timeout for connecting. Requests have no timeout, as tools may run for any time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The TCP keep-alive interval; a vanished peer is detected after a few of them.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// The endpoint of an HTTP server.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpSpec {
    /// Its URL, such as `https://example.com/mcp`.
    pub url: String,
    /// Headers of every request to it, such as `Authorization`. Headers from the gateway's clients are not forwarded.
    pub headers: Vec<(String, String)>,
    /// How requests to it are authorized by the caller's token, if they are.
    pub auth: Option<UpstreamAuth>,
}

/// Leaves out the values of headers, which are secrets.
impl std::fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpSpec")
            .field("url", &self.url)
            .field("headers", &names)
            .field("auth", &self.auth)
            .finish()
    }
}

impl HttpSpec {
    /// Validates it.
    ///
    /// # Errors
    /// The URL is invalid or not HTTP, or a header is invalid.
    pub fn validate(&self) -> Result<(), String> {
        self.url().and(self.headers()).map(drop)
    }

    fn url(&self) -> Result<Url, String> {
        let url =
            Url::parse(&self.url).map_err(|error| format!("`{}` is not a valid URL: {error}", self.url))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(url),
            _ => {
                Err(format!("`{}` is not an HTTP URL; it must begin with `https://` or `http://`", self.url))
            }
        }
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let header =
                HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a valid header name"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| format!("the value of the header `{name}` is not a valid header value"))?;
            value.set_sensitive(true);
            headers.append(header, value);
        }
        Ok(headers)
    }
}

/// An HTTP client for one server.
pub(super) struct HttpClient {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

/// The HTTP methods in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpMethod {
    Post,
    Get,
    Delete,
}

/// An HTTP response: its status and headers, and its body as a stream.
pub(super) struct HttpResponse(Response);

impl HttpClient {
    pub(super) fn new(spec: &HttpSpec) -> Result<Self, UpstreamError> {
        let url = spec.url().map_err(UpstreamError)?;
        let client = https_client(&url).connect_timeout(CONNECT_TIMEOUT).tcp_keepalive(KEEPALIVE_INTERVAL);
        let client = client.build().map_err(|error| {
            UpstreamError(format!("the HTTP client can't be created: {}", error_chain(error)))
        })?;
        Ok(Self { client, url, headers: spec.headers().map_err(UpstreamError)? })
    }

    /// Sends one request; returns when its status and headers have arrived.
    pub(super) async fn send(
        &self,
        verb: HttpMethod,
        headers: &[(&str, String)],
        (token, body): (Option<String>, Option<String>),
    ) -> Result<HttpResponse, UpstreamError> {
        let mut request = match verb {
            HttpMethod::Post => self.client.post(self.url.clone()),
            HttpMethod::Get => self.client.get(self.url.clone()),
            HttpMethod::Delete => self.client.delete(self.url.clone()),
        };
        request = request.headers(self.headers.clone());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(token) = token {
            // Sensitive: no log shows it.
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await;
        response
            .map(HttpResponse)
            .map_err(|error| UpstreamError(format!("it can't be reached: {}", error_chain(error))))
    }
}

impl HttpResponse {
    pub(super) fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// The status as people know it: `404 Not Found`.
    pub(super) fn status_text(&self) -> String {
        self.0.status().to_string()
    }

    pub(super) fn is_success(&self) -> bool {
        self.0.status().is_success()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    /// Whether its body has this content type.
    pub(super) fn has_content_type(&self, content_type: &str) -> bool {
        let media_type = self.header("content-type").unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case(content_type)
    }

    /// The next bytes of its body; `None` at its end.
    pub(super) async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, UpstreamError> {
        match self.0.chunk().await {
            Ok(bytes) => Ok(bytes.map(Vec::from)),
            Err(error) => {
                let error = error_chain(error);
                Err(UpstreamError(format!("its response broke off: {error}")))
            }
        }
    }
}
