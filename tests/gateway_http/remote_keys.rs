//! Keys of issuers at a URL, and the metadata by which clients find the issuer.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use callgate::json::{Value, json};
use callgate_http::{Credentials, IdentityFile, ReloadableAuthenticator};

use super::harness::{RunningGateway, TIMEOUT, Upstream, response};
use super::identity::IdentityFiles;
use super::tokens::{Keys, claims};

const RULES: &str = "policies: []";

/// An issuer whose key set can be replaced; `None` is an outage.
struct IssuerServer {
    server: Upstream,
    keys: Arc<Mutex<Option<String>>>,
}

impl IssuerServer {
    async fn new(keys: Option<String>) -> Self {
        let keys = Arc::new(Mutex::new(keys));
        let served = Arc::clone(&keys);
        let server = Upstream::new(move |_| {
            let keys = served.lock().unwrap().clone();
            Some(match keys {
                Some(keys) => response(200, "content-type: application/json\r\n", &keys),
                None => response(503, "", ""),
            })
        })
        .await;
        Self { server, keys }
    }

    fn publish(&self, keys: Option<String>) {
        *self.keys.lock().unwrap() = keys;
    }
}

fn identities(issuer: &IssuerServer) -> IdentityFiles {
    let file = format!(
        "resource: https://tools.test/team/mcp\n\
         jwt: {{ issuer: https://id.test, audience: [gateway, 'https://tools.test/team/mcp'], algorithms: [ES256], \
         jwks_url: '{}' }}\n",
        issuer.server.url
    );
    IdentityFiles::new(&[("auth.yaml", &file)])
}

async fn gateway(upstream: &Upstream, files: &IdentityFiles) -> RunningGateway {
    let file = IdentityFile::open(&files.path()).unwrap();
    RunningGateway::with(&upstream.url, RULES, |server| server.with_identity_file(file)).await
}

fn token(keys: &Keys, id: &str) -> String {
    format!("Bearer {}", keys.elliptic(&json!({ "alg": "ES256", "kid": id, "typ": "JWT" }), &claims()))
}

/// The key set with another id of the key.
fn set(keys: &Keys, id: &str) -> String {
    keys.set().replace("\"k1\"", &format!("\"{id}\""))
}

async fn status(gateway: &RunningGateway, token: &str) -> u16 {
    gateway.call(&[("authorization", token)], "read", json!({})).await.status
}

#[tokio::test]
async fn keys_are_fetched_and_follow_the_issuer() {
    let (upstream, first) = (Upstream::with_defaults().await, Keys::new());
    let issuer = IssuerServer::new(Some(set(&first, "k1"))).await;
    let files = identities(&issuer);
    let gateway = gateway(&upstream, &files).await;
    assert_eq!(status(&gateway, &token(&first, "k1")).await, 200);
    assert_eq!(status(&gateway, &token(&Keys::new(), "k1")).await, 401, "the key of somebody else");
    // Tokens with invented keys cause no load at the issuer.
    for number in 0..20 {
        assert_eq!(status(&gateway, &token(&first, &format!("invented-{number}"))).await, 401);
    }
    assert!(issuer.server.requests().len() <= 2, "{}", issuer.server.requests().len());
    // An outage changes nothing for tokens whose key is known.
    issuer.publish(None);
    assert_eq!(status(&gateway, &token(&first, "k1")).await, 200);
    // A new key is fetched when a token names it.
    let second = Keys::new();
    issuer.publish(Some(set(&second, "k2")));
    tokio::time::timeout(TIMEOUT, async {
        while status(&gateway, &token(&second, "k2")).await != 200 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await
    .expect("the new key is used");
    assert_eq!(status(&gateway, &token(&first, "k1")).await, 401, "the issuer has removed it");
}

#[tokio::test]
async fn without_keys_every_token_is_rejected_with_a_reason_for_the_operator() {
    let (upstream, keys) = (Upstream::with_defaults().await, Keys::new());
    let issuer = IssuerServer::new(None).await;
    let gateway = gateway(&upstream, &identities(&issuer)).await;
    assert_eq!(status(&gateway, &token(&keys, "k1")).await, 401);
    let log = gateway.log.lock().unwrap().join("\n");
    assert!(log.contains("status 503"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_accepted_whoever_fetches_its_key() {
    let keys = Keys::new();
    let issuer = IssuerServer::new(Some(set(&keys, "k1"))).await;
    let (files, token) = (identities(&issuer), token(&keys, "k1"));
    for round in 0..200 {
        let (identities, followed) =
            ReloadableAuthenticator::from_file(IdentityFile::open(&files.path()).unwrap());
        let identities = Arc::new(identities);
        // It fetches the keys at the same time as the requests need them.
        let watching = tokio::spawn(Arc::clone(&identities).watch(Some(followed), |_| ()));
        // Each round asks a little later; some of them while the fetched keys are taken over.
        let delay = Duration::from_micros(10 * round);
        let started = Instant::now();
        while started.elapsed() < delay {
            std::hint::spin_loop();
        }
        let credentials = Credentials { authorization: Some(&token), certificate: None };
        let caller = identities.authenticate(credentials).await;
        assert!(caller.is_ok(), "{delay:?}: {caller:?}");
        watching.abort();
    }
}

#[tokio::test]
async fn clients_find_out_where_to_get_a_token() {
    let (upstream, keys) = (Upstream::with_defaults().await, Keys::new());
    let issuer = IssuerServer::new(Some(set(&keys, "k1"))).await;
    let gateway = gateway(&upstream, &identities(&issuer)).await;
    let metadata_url = "https://tools.test/.well-known/oauth-protected-resource/team/mcp";
    let missing = gateway.call(&[], "read", json!({})).await;
    let challenge = format!("Bearer resource_metadata=\"{metadata_url}\"");
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, Some(challenge.as_str())));
    let invalid = gateway.call(&[("authorization", "Bearer x")], "read", json!({})).await;
    let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata_url}\"");
    assert_eq!((invalid.status, invalid.header("www-authenticate")), (401, Some(challenge.as_str())));
    for path in ["/.well-known/oauth-protected-resource/team/mcp", "/.well-known/oauth-protected-resource"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", gateway.address);
        let found = gateway.send(&request).await.response().await;
        assert_eq!((found.status, found.header("access-control-allow-origin")), (200, Some("*")), "{path}");
        let metadata: Value = found.json();
        assert_eq!(metadata["resource"], "https://tools.test/team/mcp");
        assert_eq!(metadata["authorization_servers"], json!(["https://id.test"]));
    }
    let other = format!("GET /other HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", gateway.address);
    assert_eq!(gateway.send(&other).await.response().await.status, 404);
}
