//! A container registry (OCI Distribution) with tokens, as `callgate bundle push` and instances use it; and one that is hostile.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::instance::Instance;
use super::publisher::{Answer, Publisher};
use super::{ALLOW_PAY, DENY_PAY, Workplace, wait_for};
use crate::packages;

const TOKEN: &str = "token-of-the-registry";

/// A running registry.
struct Registry {
    address: SocketAddr,
    content: Arc<Content>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct Content {
    stored: Mutex<HashMap<String, Bytes>>,
    /// Where tokens are issued, if not here.
    realm: Mutex<Option<String>>,
    /// Where blobs are, if not here.
    blobs: Mutex<Option<String>>,
    address: Mutex<String>,
}

impl Registry {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let content: Arc<Content> = Arc::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        *content.address.lock().unwrap() = address.to_string();
        let router = Router::new().fallback(respond).with_state(Arc::clone(&content));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, content, runtime: Some(runtime) }
    }

    fn url(&self) -> String {
        format!("oci://{}/rules/payments:stable", self.address)
    }

    /// The paths of what is stored.
    fn stored(&self) -> Vec<String> {
        self.content.stored.lock().unwrap().keys().cloned().collect()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn response(status: u16, headers: &[(&str, String)], body: impl Into<Body>) -> Response {
    let response = Response::builder().status(status);
    let response = headers.iter().fold(response, |response, (name, value)| response.header(*name, value));
    response.body(body.into()).unwrap()
}

fn is_authorized(headers: &HeaderMap, credentials: &str) -> bool {
    headers.get("authorization").is_some_and(|header| header == credentials)
}

async fn respond(State(content): State<Arc<Content>>, request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let address = content.address.lock().unwrap().clone();
    if path == "/token" {
        // ann:secret-password
        let is_ann = is_authorized(request.headers(), "Basic YW5uOnNlY3JldC1wYXNzd29yZA==");
        let is_scoped = query.contains("scope=repository%3Arules%2Fpayments%3Apull");
        return match is_ann && is_scoped {
            true => response(200, &[], format!("{{\"token\":\"{TOKEN}\"}}")),
            false => response(401, &[], ""),
        };
    }
    if !is_authorized(request.headers(), &format!("Bearer {TOKEN}")) {
        let realm =
            content.realm.lock().unwrap().clone().unwrap_or_else(|| format!("http://{address}/token"));
        let challenge = format!("Bearer realm=\"{realm}\",service=\"test\"");
        return response(401, &[("www-authenticate", challenge)], "");
    }
    match method {
        Method::POST => response(202, &[("location", format!("{path}1?state=x"))], ""),
        Method::PUT => {
            let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
            let digest = query.split('&').find_map(|part| part.strip_prefix("digest="));
            let stored = match digest {
                Some(digest) => format!("/v2/rules/payments/blobs/{}", digest.replace("%3A", ":")),
                None => path,
            };
            content.stored.lock().unwrap().insert(stored, body);
            response(201, &[], "")
        }
        _ => {
            let blobs = content.blobs.lock().unwrap().clone();
            if let Some(blobs) = blobs.filter(|_| path.contains("/blobs/")) {
                return response(307, &[("location", blobs)], "");
            }
            match content.stored.lock().unwrap().get(&path) {
                Some(body) => response(200, &[], body.clone()),
                None => response(404, &[], ""),
            }
        }
    }
}

#[test]
fn bundles_are_pushed_to_a_registry_and_followed_there() {
    let place = Workplace::new();
    let registry = Registry::start();
    std::fs::write(place.path("credentials"), "Basic ann:secret-password\n").unwrap();
    let credentials = ["--policies-credentials", "credentials"];
    let push = |version: u64, rules: &str| {
        std::fs::write(place.path("bundle.json"), place.bundle(version, rules)).unwrap();
        place.succeed(&[&["bundle", "push", "bundle.json", &registry.url()], &credentials[..]].concat())
    };
    push(1, ALLOW_PAY);
    let instance = Instance::start(&place, &registry.url(), "a", &credentials);
    assert!(instance.allows("pay"));
    push(2, DENY_PAY);
    instance.check_now();
    wait_for("version 2", || instance.version() == 2);
    assert!(!instance.allows("pay"));
    // Each bundle, the empty configuration, and one manifest.
    assert_eq!(registry.stored().len(), 4);
    // A registry that sends requests elsewhere.
    let elsewhere = Publisher::start(Answer::Bundle(place.bundle(3, ALLOW_PAY)));
    push(3, ALLOW_PAY);
    *registry.content.blobs.lock().unwrap() = Some(elsewhere.url());
    instance.check_fails("--policies-trust-host 127.0.0.1");
    *registry.content.blobs.lock().unwrap() = None;
    *registry.content.realm.lock().unwrap() = Some(elsewhere.url());
    instance.check_fails("the registry has its tokens at");
    assert!(elsewhere.requests().is_empty());
    *registry.content.realm.lock().unwrap() = None;
    // A blob that is not the one of the manifest.
    for (path, blob) in registry.content.stored.lock().unwrap().iter_mut() {
        if path.contains("/blobs/") {
            *blob = Bytes::from_static(b"other");
        }
    }
    instance.check_fails("not the one that the manifest names");
    assert_eq!(instance.version(), 2);
    for secret in ["secret-password", TOKEN] {
        assert!(!instance.output().contains(secret));
    }
}

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The registry that most others are made of.
#[test]
fn the_distribution_registry_stores_and_serves_bundles() {
    let place = Workplace::new();
    let program = packages::debian(&["docker-registry"]).join("usr/bin/docker-registry");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "version: 0.1\nlog: {{ level: error }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: '127.0.0.1:{port}' }}\n",
        place.path("registry").display()
    );
    std::fs::write(place.path("registry.yaml"), config).unwrap();
    let mut command = Command::new(program);
    command.arg("serve").arg(place.path("registry.yaml")).stdout(Stdio::null()).stderr(Stdio::null());
    let _registry = Killed(command.spawn().unwrap());
    wait_for("the registry", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("oci://127.0.0.1:{port}/rules/payments:stable");
    for version in 1..3 {
        std::fs::write(place.path("bundle.json"), place.bundle(version, ALLOW_PAY)).unwrap();
        place.succeed(&["bundle", "push", "bundle.json", &url]);
        let verified = place.succeed(&["bundle", "verify", &url, "--signed-by", "publishers.keys"]);
        assert!(verified.contains(&format!("version {version} of the bundle `payments`")), "{verified}");
    }
}
