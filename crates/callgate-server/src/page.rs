//! The approvals page, and the page of links that answer: files that are part of the program, without data. The pages load data through
//! the API.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use callgate_http::with_body;

/// Nothing from elsewhere, no inline code, no frames, no other targets of forms.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/assets/approvals.css", "text/css; charset=utf-8", include_str!("../page/approvals.css")),
    ("/assets/api_client.js", "text/javascript; charset=utf-8", include_str!("../page/api_client.js")),
    ("/assets/elements.js", "text/javascript; charset=utf-8", include_str!("../page/elements.js")),
    ("/assets/card_fields.js", "text/javascript; charset=utf-8", include_str!("../page/card_fields.js")),
    ("/assets/selection.js", "text/javascript; charset=utf-8", include_str!("../page/selection.js")),
    ("/assets/request_view.js", "text/javascript; charset=utf-8", include_str!("../page/request_view.js")),
    ("/answer", "text/html; charset=utf-8", include_str!("../page/answer.html")),
    ("/assets/answer.js", "text/javascript; charset=utf-8", include_str!("../page/answer.js")),
    ("/assets/approvals.js", "text/javascript; charset=utf-8", include_str!("../page/approvals.js")),
];

/// A file of the page. `None` if there is none of this path.
pub(crate) fn file(path: &str) -> Option<Response> {
    let (_, content_type, text) = FILES.iter().find(|(known, ..)| *known == path)?;
    let mut response = with_body(200, content_type, *text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Some(response)
}
