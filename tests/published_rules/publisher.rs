//! A publisher: an HTTP server that answers as a test says, and records the requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// What a publisher answers.
#[derive(Clone)]
pub enum Answer {
    /// These bytes, with an ETag.
    Bundle(Vec<u8>),
    /// This status, and a `location`.
    Status(u16, String),
    /// No answer.
    Silence,
}

/// A running publisher, which is stopped when it is dropped.
pub struct Publisher {
    pub address: SocketAddr,
    answer: Arc<Mutex<Answer>>,
    /// The headers of all requests.
    requests: Arc<Mutex<Vec<HeaderMap>>>,
    runtime: Option<Runtime>,
}

type Shared = (Arc<Mutex<Answer>>, Arc<Mutex<Vec<HeaderMap>>>);

impl Publisher {
    pub fn start(answer: Answer) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (answer, requests) = (Arc::new(Mutex::new(answer)), Arc::default());
        let shared: Shared = (Arc::clone(&answer), Arc::clone(&requests));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(respond).with_state(shared);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, answer, requests, runtime: Some(runtime) }
    }

    pub fn url(&self) -> String {
        format!("http://{}/payments.json?signature=secret-query", self.address)
    }

    /// Sets what it answers from now on.
    pub fn publish(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    pub fn requests(&self) -> Vec<HeaderMap> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn respond(State((answer, requests)): State<Shared>, request: Request) -> Response {
    requests.lock().unwrap().push(request.headers().clone());
    if request.method() == Method::PUT {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        *answer.lock().unwrap() = Answer::Bundle(body.to_vec());
        return Response::builder().status(StatusCode::CREATED).body(Body::empty()).unwrap();
    }
    let answer = answer.lock().unwrap().clone();
    match answer {
        Answer::Bundle(bytes) => {
            let etag = format!("\"{:x}\"", hash(&bytes));
            if request.headers().get(header::IF_NONE_MATCH).is_some_and(|known| known == etag.as_str()) {
                return Response::builder().status(StatusCode::NOT_MODIFIED).body(Body::empty()).unwrap();
            }
            Response::builder().header(header::ETAG, etag).body(Body::from(bytes)).unwrap()
        }
        Answer::Status(status, location) => {
            let response = Response::builder().status(status).header(header::LOCATION, location);
            response.body(Body::empty()).unwrap()
        }
        Answer::Silence => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            Response::new(Body::empty())
        }
    }
}

/// A number that differs for different content.
fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
