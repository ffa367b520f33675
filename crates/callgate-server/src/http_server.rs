//! HTTP: authenticates a request, reads its body, and has the API answer it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use callgate::call::RequestTrace;
use callgate::json::{self, Value};
use callgate_http::{
    Access, AuthenticationError, Caller, ClientCertificate, Credentials, JSON, OriginPolicy,
    ReloadableAuthenticator, empty, has_json_body, single_value, with_body,
};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::sync::watch;

use crate::api::Api;
use crate::browser_sessions::BrowserSessions;
use crate::endpoint::{ApiRequest, ApiResponse, RequestBody, parse_query};
use crate::event_stream::event_stream;
use crate::link_answers::LinkVisitor;
use crate::notifications::ChannelAnswers;
use crate::openapi::openapi_document;
use crate::page;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::request_types::{LinkAnswerBody, LinkBody, SignInBody};
use crate::router::UnroutedRequest;

/// The longest body, in bytes.
const MAX_BODY: usize = 16 << 20;
/// The longest body of a request that nobody is signed in for, in bytes.
const MAX_SIGN_IN: usize = 32 << 10;
/// The longest request of a chat product, in bytes.
const MAX_CLICK: usize = 256 << 10;
/// Timeout for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The header that only the page sends: a page of another origin can't set it.
static PAGE_HEADER: HeaderName = HeaderName::from_static("x-callgate-page");
/// The header of W3C Trace Context.
static TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// The header by which a request may be sent again without effect (draft-ietf-httpapi-idempotency-key-header).
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The headers of every response.
static SECURITY_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// The shared state of all request handlers.
pub(crate) struct HttpState {
    pub(crate) api: Arc<Api>,
    pub(crate) identity: Arc<ReloadableAuthenticator>,
    /// Whether callers without a credential are trusted as hosts: those of this machine, if there is no identity file.
    pub(crate) trusts_anonymous: bool,
    pub(crate) origin_policy: OriginPolicy,
    /// Whether clients use TLS.
    pub(crate) is_secure: bool,
    pub(crate) browser_sessions: BrowserSessions,
    /// The channels in which people can answer.
    pub(crate) channel_answers: Option<ChannelAnswers>,
    pub(crate) closing: watch::Receiver<bool>,
    pub(crate) log: Box<dyn Fn(&str) + Send + Sync>,
}

/// The entry point of every request.
pub(crate) async fn handle(state: Arc<HttpState>, request: Request<Incoming>) -> Response {
    let mut response = match state.origin_policy.check(request.headers()) {
        Ok(()) => state.serve(request).await.unwrap_or_else(|problem| api_response(problem.into())),
        Err(error) => api_response(Problem::new(403, "origin_rejected", error.to_string()).into()),
    };
    let headers = response.headers_mut();
    for (name, value) in &SECURITY_HEADERS {
        headers.insert(name.clone(), value.clone());
    }
    response
}

impl HttpState {
    async fn serve(self: &Arc<Self>, request: Request<Incoming>) -> Result<Response, Problem> {
        let (parts, body) = request.into_parts();
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        match (&method, path.as_str()) {
            (&Method::GET, "/openapi.json") => {
                return Ok(with_body(200, JSON, openapi_document().to_string()));
            }
            (&Method::GET, "/.well-known/authzen-configuration") => {
                return Ok(api_response(ApiResponse::ok(&authzen_configuration(
                    &parts.headers,
                    self.is_secure,
                ))));
            }
            (&Method::GET, path) => {
                if let Some(response) = page::file(path) {
                    return Ok(response);
                }
                if let Some(metadata) = self.identity.resource_metadata(path) {
                    return Ok(api_response(ApiResponse::ok(&metadata)));
                }
            }
            (&Method::POST, "/v1/browser-session") => {
                return Box::pin(self.sign_in(&parts.headers, body)).await;
            }
            (&Method::DELETE, "/v1/browser-session") => {
                check_page_request(&parts.headers)?;
                return cookie_response(self.browser_sessions.end(&parts.headers, self.is_secure));
            }
            (&Method::POST, "/v1/answer-links" | "/v1/answer-links/answers") => {
                return Box::pin(self.follow_link(parts, body)).await;
            }
            (&Method::POST, "/v1/channels/slack") => {
                return Box::pin(self.take_click(&parts.headers, body)).await;
            }
            _ => {}
        }
        let certificate = parts.extensions.get::<ClientCertificate>();
        let caller = self.authenticate(&method, &parts.headers, certificate).await?;
        if (&method, path.as_str()) == (&Method::GET, "/v1/events") {
            if !caller.access.allows(Access::Approver) {
                return Err(Problem::new(403, "access_denied", "this needs `approver` access"));
            }
            let revoked = self.identity.watch_revocation(&caller);
            return Ok(event_stream(&self.api.activity, caller, revoked, self.closing.clone()));
        }
        let header = |name: &HeaderName| single_value(&parts.headers, name).ok().flatten().map(str::to_owned);
        let trace = RequestTrace { parent: header(&TRACE_PARENT), state: header(&TRACE_STATE) };
        let idempotency_key = single_value(&parts.headers, &IDEMPOTENCY_KEY);
        let idempotency_key =
            idempotency_key.map_err(|error| Problem::invalid(error.to_string()))?.map(str::to_owned);
        let query = parse_query(parts.uri.query().unwrap_or_default());
        let is_from_page = parts.headers.contains_key(&PAGE_HEADER);
        let (method, path) = (method.as_str(), path.as_str());
        let unrouted = UnroutedRequest { caller, method, path, query, trace, is_from_page, idempotency_key };
        let routed = self.api.route(unrouted)?;
        let body = match routed.takes_body() {
            true => read_body(&parts.headers, body, MAX_BODY).await?,
            false => RequestBody::default(),
        };
        Ok(api_response(self.api.answer(routed, body).await))
    }

    /// Who sends a request: by its token, by the cookie of the page, or by its client certificate.
    async fn authenticate(
        &self,
        method: &Method,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Caller, Problem> {
        // Of two headers, parsers could choose different ones.
        let authorization = single_value(headers, &header::AUTHORIZATION);
        let authorization = authorization.map_err(|error| Problem::invalid(error.to_string()))?;
        if authorization.is_some() {
            return self.verify(Credentials { authorization, certificate }).await;
        }
        if let Some(caller) = self.browser_sessions.caller(headers, &self.identity) {
            if method != Method::GET {
                check_page_request(headers)?;
            }
            return Ok(caller);
        }
        if self.trusts_anonymous {
            return Ok(Caller::anonymous());
        }
        // Browsers send certificates with requests of any page, as they send cookies.
        if certificate.is_some() && method != Method::GET && headers.contains_key(header::ORIGIN) {
            check_page_request(headers)?;
        }
        self.verify(Credentials { authorization: None, certificate }).await
    }

    async fn verify(&self, credentials: Credentials<'_>) -> Result<Caller, Problem> {
        self.identity.authenticate(credentials).await.map_err(|error| {
            if let AuthenticationError::Rejected(why) = &error {
                let why = callgate::safe_text::escape_controls(why);
                (self.log)(&format!("authentication failed: {why}"));
            }
            Problem::new(401, "unauthenticated", "send a valid bearer token in the header `Authorization`")
                .with_header("www-authenticate", self.identity.challenge(&error))
        })
    }

    /// Shows the request of a link, or records its answer. The token is in the body, so that no URL has it.
    async fn follow_link(&self, parts: Parts, body: Incoming) -> Result<Response, Problem> {
        check_page_request(&parts.headers)?;
        let mut request = self.page_request(&parts.headers, body).await?;
        let certificate = parts.extensions.get::<ClientCertificate>();
        // Who has not signed in may have a link that proves who they are.
        let signed_in = self.authenticate(&parts.method, &parts.headers, certificate).await.ok();
        let signed_in = signed_in.filter(|caller| caller.access.allows(Access::Approver));
        let visitor = LinkVisitor { signed_in: signed_in.as_ref(), channels: self.channel_answers.as_ref() };
        let shown = match parts.uri.path() {
            "/v1/answer-links" => {
                let LinkBody { link } = request.take_body()?;
                self.api.show_link(&link, visitor).await?
            }
            _ => {
                let LinkAnswerBody { link, reason } = request.take_body()?;
                self.api.answer_link(&link, reason, visitor).await?
            }
        };
        Ok(api_response(ApiResponse::ok(&shown)))
    }

    /// Takes a click in Slack. Slack waits three seconds for the response, so the answer is recorded afterwards.
    async fn take_click(self: &Arc<Self>, headers: &HeaderMap, body: Incoming) -> Result<Response, Problem> {
        let bytes = read_bytes(body, MAX_CLICK).await?;
        let detail =
            "the request is not signed by a Slack app of `--notify`, or it is older than five minutes";
        let unsigned = || Problem::new(401, "unauthenticated", detail);
        let answers = self.channel_answers.as_ref().ok_or_else(unsigned)?;
        if let Some(signed) = answers.slack_click(headers, &bytes).ok_or_else(unsigned)? {
            let state = Arc::clone(self);
            let api = Arc::clone(&self.api);
            tokio::spawn(async move { api.answer_click(signed, |text| (state.log)(text)).await });
        }
        Ok(empty(200))
    }

    /// Signs a person in, who enters a token on the page.
    async fn sign_in(&self, headers: &HeaderMap, body: Incoming) -> Result<Response, Problem> {
        check_page_request(headers)?;
        let SignInBody { token } = self.page_request(headers, body).await?.take_body()?;
        let authorization = format!("Bearer {}", token.trim());
        let credentials = Credentials { authorization: Some(&authorization), certificate: None };
        let caller = self.verify(credentials).await?;
        if !caller.access.allows(Access::Approver) {
            return Err(Problem::new(403, "access_denied", "this token does not give `approver` access"));
        }
        cookie_response(self.browser_sessions.start(caller, self.is_secure)?)
    }

    /// A request of the page, whose caller is not known.
    async fn page_request(&self, headers: &HeaderMap, body: Incoming) -> Result<ApiRequest, Problem> {
        let RequestBody { value: body, bytes: body_bytes } = read_body(headers, body, MAX_SIGN_IN).await?;
        Ok(ApiRequest {
            caller: Caller::anonymous(),
            parameters: Vec::new(),
            query: Default::default(),
            body,
            body_bytes,
            trace: RequestTrace::default(),
            is_from_page: true,
            retry: None,
        })
    }
}

/// Cross-site request forgery: only the page itself sends this header, and only to the origin that it came from.
fn check_page_request(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &HeaderName| single_value(headers, name).ok().flatten();
    let refused = |detail: &str| Err(Problem::new(403, "not_from_page", detail));
    if text(&PAGE_HEADER).is_none() {
        return refused("requests with the cookie of the approvals page need the header `x-callgate-page`");
    }
    let host = text(&header::HOST).unwrap_or_default();
    let is_same =
        |origin: &str| origin.split_once("://").is_some_and(|(_, name)| name.eq_ignore_ascii_case(host));
    if text(&header::ORIGIN).is_some_and(|origin| !is_same(origin)) {
        return refused("the request comes from a page of another origin");
    }
    Ok(())
}

/// Reads the JSON body of a request, of at most `most` bytes.
async fn read_body(headers: &HeaderMap, body: Incoming, most: usize) -> Result<RequestBody, Problem> {
    if !has_json_body(headers) {
        return Err(Problem::new(
            415,
            "unsupported_media_type",
            "the content type must be `application/json`",
        ));
    }
    let bytes = read_bytes(body, most).await?;
    let value = json::parse_bytes(&bytes).map_err(|error| {
        let detail = format!(
            "the body is invalid JSON at line {}, column {}: {}",
            error.line, error.column, error.kind
        );
        Problem::new(400, "invalid_json", detail)
    })?;
    Ok(RequestBody { value, bytes: bytes.len() })
}

async fn read_bytes(body: Incoming, most: usize) -> Result<Bytes, Problem> {
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, most).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(_)) => {
            let detail = format!("the body is incomplete, or longer than {most} bytes");
            Err(Problem::new(413, "too_large", detail))
        }
        Err(_) => Err(Problem::new(408, "timeout", "the body took too long to arrive")),
    }
}

fn api_response(answer: ApiResponse) -> Response {
    let ApiResponse { status, headers, body } = answer;
    let content_type = if status >= 400 { MEDIA_TYPE } else { JSON };
    let mut response = with_body(status, content_type, body);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A response without a body that sets a cookie.
fn cookie_response(cookie: String) -> Result<Response, Problem> {
    let mut response = empty(204);
    let cookie = HeaderValue::from_str(&cookie)
        .map_err(|_| Problem::new(500, "internal_error", "the cookie is not valid text"))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// The discovery document of AuthZEN.
fn authzen_configuration(headers: &HeaderMap, is_secure: bool) -> Value {
    let host = single_value(headers, &header::HOST).ok().flatten().unwrap_or("localhost");
    let scheme = if is_secure { "https" } else { "http" };
    let base = format!("{scheme}://{host}");
    json::json!({
        "policy_decision_point": base,
        "access_evaluation_endpoint": format!("{base}/access/v1/evaluation"),
        "access_evaluations_endpoint": format!("{base}/access/v1/evaluations"),
    })
}
