//! The floor: the HTTP server of Callgate without Callgate. It reads each request, and answers with the same bytes each time.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use callgate::host::BoxFuture;
use callgate_http::{JSON, RequestHandler, serve_connections, with_body};
use hyper::body::Incoming;

/// The argument by which the benchmark serves the floor.
pub const ARGUMENT: &str = "--floor";

/// Reads requests, and answers each with the same bytes.
#[derive(Clone)]
struct Floor(Bytes);

impl RequestHandler for Floor {
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'static, Response> {
        let response = self.0.clone();
        Box::pin(async {
            let body = to_bytes(Body::new(request.into_body()), usize::MAX).await;
            with_body(if body.is_ok() { 200 } else { 400 }, JSON, response)
        })
    }
}

/// Serves until the process ends, and prints the address on stderr.
pub fn serve(response: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let floor = Floor(Bytes::copy_from_slice(response.as_bytes()));
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        eprintln!("listening on http://{}", listener.local_addr().expect("an address"));
        serve_connections(listener, None, floor, 1_000, std::future::pending()).await;
    });
}
