//! Authentication by JWT: accepted and rejected tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use callgate::json::{Value, json};
use callgate_http::IdentityFile;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

use super::harness::{RunningGateway, TIMEOUT, Upstream};
use super::identity::{IdentityFiles, RULES};

pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap()
}

/// The claims of an accepted token.
pub(super) fn claims() -> Value {
    json!({ "iss": "https://id.test", "aud": "gateway", "sub": "ana", "exp": now() + 3600,
        "realm": { "roles": ["writer"] }, "org": "acme" })
}

fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let message = format!("{}.{}", part(header), part(claims));
    format!("{message}.{}", BASE64URL_NOPAD.encode(&sign(message.as_bytes())))
}

pub(super) struct Keys {
    elliptic: EcdsaKeyPair,
    edwards: Ed25519KeyPair,
}

impl Keys {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let elliptic = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            elliptic: EcdsaKeyPair::from_pkcs8(algorithm, elliptic.as_ref(), &random).unwrap(),
            edwards: Ed25519KeyPair::from_pkcs8(edwards.as_ref()).unwrap(),
        }
    }

    /// A JWK set with the ES256 key.
    pub(super) fn set(&self) -> String {
        let point = self.elliptic.public_key().as_ref();
        let (x, y) = (BASE64URL_NOPAD.encode(&point[1..33]), BASE64URL_NOPAD.encode(&point[33..]));
        let key =
            json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "k1", "use": "sig", "alg": "ES256" });
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "k2", "use": "enc" }, key] })
            .to_string()
    }

    /// The Ed25519 key in PEM.
    fn pem(&self) -> String {
        let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        der.extend_from_slice(self.edwards.public_key().as_ref());
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(&der))
    }

    pub(super) fn elliptic(&self, header: &Value, claims: &Value) -> String {
        signed(header, claims, |message| {
            self.elliptic.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()
        })
    }

    /// The same with claims as text, which need not be valid JSON.
    fn elliptic_text(&self, header: &Value, claims: &str) -> String {
        let part = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
        let message = format!("{}.{}", part(&header.to_string()), part(claims));
        let signature = self.elliptic.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
    }

    fn edwards(&self, claims: &Value) -> String {
        signed(&json!({ "alg": "EdDSA" }), claims, |message| self.edwards.sign(message).as_ref().to_vec())
    }
}

const FILE: &str = "jwt:\n\
    - { issuer: https://id.test, audience: [gateway, other], algorithms: [ES256], jwks: keys.json, roles: realm.roles, \
        tenant: org, claims: [email], context: { team: red }, prefix: 'first:' }\n\
    - { issuer: https://second.test, audience: gateway, algorithms: EdDSA, pem: key.pem, principal: email, prefix: 'second:' }\n";

/// As [`RULES`], for principals with the prefix of the first issuer.
fn rules() -> String {
    RULES.replace("eq: ana", "eq: 'first:ana'")
}

async fn served(upstream: &Upstream, keys: &Keys) -> RunningGateway {
    let files =
        IdentityFiles::new(&[("auth.yaml", FILE), ("keys.json", &keys.set()), ("key.pem", &keys.pem())]);
    let identity = files.identity();
    RunningGateway::with(&upstream.url, &rules(), |server| server.with_authenticator(identity)).await
}

/// The JSON text of claims, with more members in front.
fn twice(claims: &Value, more: &str) -> String {
    claims.to_string().replacen('{', &format!("{{{more}"), 1)
}

#[tokio::test]
async fn accepted_token_determines_the_principal() {
    let (upstream, keys) = (Upstream::with_defaults().await, Keys::new());
    let served = served(&upstream, &keys).await;
    let header = json!({ "alg": "ES256", "kid": "k1", "typ": "JWT" });
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        claims
    };
    for (claims, code) in [
        (claims(), json!(null)),
        (with("sub", json!("bob")), json!("not_ana")),
        (with("realm", json!({ "roles": ["reader"] })), json!("no_writer")),
        (with("realm", json!({ "roles": "reader writer" })), json!(null)),
        (with("realm", json!(null)), json!("no_writer")),
        (with("org", json!("evil")), json!("other_tenant")),
        (with("aud", json!(["x", "other"])), json!(null)),
        // Within the leeway.
        (with("exp", json!(now() - 10)), json!(null)),
        (with("exp", json!(now() as f64 + 60.5)), json!(null)),
        (with("nbf", json!(now() as f64 - 0.5)), json!(null)),
    ] {
        let token = format!("Bearer {}", keys.elliptic(&header, &claims));
        let answer = served.call(&[("authorization", &token)], "send", json!({})).await;
        assert_eq!((answer.status, answer.code()), (200, code), "{claims}");
    }
    let second = json!({ "iss": "https://second.test", "aud": "gateway", "email": "ana", "exp": now() + 60 });
    let token = format!("Bearer {}", keys.edwards(&second));
    let answer = served.call(&[("authorization", &token)], "send", json!({})).await;
    // The same name from another issuer is another principal.
    assert_eq!((answer.status, answer.code()), (200, json!("not_ana")), "{}", answer.body);
}

#[tokio::test]
async fn rejects_invalid_tokens() {
    let (upstream, keys, others) = (Upstream::with_defaults().await, Keys::new(), Keys::new());
    let served = served(&upstream, &keys).await;
    let header = json!({ "alg": "ES256", "kid": "k1" });
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        keys.elliptic(&header, &claims)
    };
    let without = |name: &str| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        keys.elliptic(&header, &claims)
    };
    let good = keys.elliptic(&header, &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let forged = BASE64URL_NOPAD.encode(with("sub", json!("eve")).as_bytes());
    // Algorithm confusion: the public key as an HMAC secret.
    let public = keys.set();
    let confused = signed(&json!({ "alg": "HS256" }), &claims(), |message| {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
        ring::hmac::sign(&key, message).as_ref().to_vec()
    });
    let cases = [
        ("another issuer's key", others.elliptic(&header, &claims())),
        ("an unknown key", keys.elliptic(&json!({ "alg": "ES256", "kid": "k9" }), &claims())),
        ("a key that does not sign", keys.elliptic(&json!({ "alg": "ES256", "kid": "k2" }), &claims())),
        ("no algorithm", signed(&json!({ "alg": "none" }), &claims(), |_| Vec::new())),
        ("no signature", format!("{}.{}.", parts[0], parts[1])),
        ("other claims", format!("{}.{forged}.{}", parts[0], parts[2])),
        ("a public key as a secret", confused),
        ("another issuer's algorithm", keys.edwards(&claims())),
        (
            "an unknown critical header",
            keys.elliptic(&json!({ "alg": "ES256", "kid": "k1", "crit": ["x"], "x": 1 }), &claims()),
        ),
        ("another issuer", with("iss", json!("https://evil.test"))),
        ("no issuer", without("iss")),
        ("another audience", with("aud", json!("elsewhere"))),
        ("no audience", without("aud")),
        ("it has expired", with("exp", json!(now() - 3600))),
        ("it never expires", without("exp")),
        ("it is not valid yet", with("nbf", json!(now() + 3600))),
        ("no subject", without("sub")),
        ("a subject that is not a string", with("sub", json!(7))),
        ("no tenant", without("org")),
        ("not a token", "x.y.z".to_owned()),
        ("a long token", "a".repeat(20_000)),
        ("claims with a duplicate key", keys.elliptic_text(&header, &twice(&claims(), r#""sub":"eve","#))),
        (
            "claims with a nested duplicate key",
            keys.elliptic_text(&header, &twice(&claims(), r#""x":{"y":1,"y":2},"#)),
        ),
    ];
    for (what, token) in cases {
        let token = format!("Bearer {token}");
        let answer = served.call(&[("authorization", &token)], "echo", json!({})).await;
        assert_eq!(answer.status, 401, "{what}");
    }
    assert!(upstream.requests().is_empty());
    let log = served.log.lock().unwrap().join("\n");
    assert!(!log.contains(parts[1]) && !log.contains("x.y.z"), "{log}");
}

#[tokio::test]
async fn removed_key_is_no_longer_accepted() {
    let (upstream, keys, next) = (Upstream::with_defaults().await, Keys::new(), Keys::new());
    let files =
        IdentityFiles::new(&[("auth.yaml", FILE), ("keys.json", &keys.set()), ("key.pem", &keys.pem())]);
    let file = IdentityFile::open(&files.path()).unwrap();
    let served =
        RunningGateway::with(&upstream.url, &rules(), |server| server.with_identity_file(file)).await;
    let header = json!({ "alg": "ES256", "kid": "k1" });
    let token = |keys: &Keys| format!("Bearer {}", keys.elliptic(&header, &claims()));
    let status = async |token: &str| served.call(&[("authorization", token)], "echo", json!({})).await.status;
    let (old, new) = (token(&keys), token(&next));
    assert_eq!((status(&old).await, status(&new).await), (200, 401));
    std::fs::write(files.path().with_file_name("keys.json"), next.set()).unwrap();
    let wait = async {
        while status(&new).await != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.expect("the new key is never accepted");
    assert_eq!(status(&old).await, 401);
}
