//! TLS: certificates of the server and of clients, and their reload.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate_http::{IdentityFile, Tls, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::harness::RunningServer;

const RULES: &str = "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } } ]";

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key, in PEM.
struct Issued {
    certificate: String,
    key: String,
}

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issue(authority: &Authority, names: Vec<SanType>) -> Issued {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    let certificate = params.signed_by(&key, authority).unwrap();
    Issued { certificate: certificate.pem(), key: key.serialize_pem() }
}

fn dns(name: &str) -> Vec<SanType> {
    vec![SanType::DnsName(name.try_into().unwrap())]
}

fn uri(name: &str) -> Vec<SanType> {
    vec![SanType::URI(name.try_into().unwrap())]
}

/// Writes the files of a server with a certificate for `localhost`.
fn write_files(folder: &Path, authority: &Authority) -> TlsFiles {
    let server = issue(authority, dns("localhost"));
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    TlsFiles {
        certificate: file("server.pem", &server.certificate),
        key: file("server.key", &server.key),
        client_ca: None,
    }
}

async fn get(
    server: &RunningServer,
    trusted: &Authority,
    client: Option<&Issued>,
    path: &str,
    headers: &str,
) -> Result<(u16, String), String> {
    request(server, trusted, client, &format!("GET {path}"), headers, "").await
}

/// Sends a request over TLS. Fails if either side rejects the other's certificate.
async fn request(
    server: &RunningServer,
    trusted: &Authority,
    client: Option<&Issued>,
    target: &str,
    headers: &str,
    body: &str,
) -> Result<(u16, String), String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(Issued { certificate, key }) => config
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    let socket = TcpStream::connect(&server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connected = TlsConnector::from(Arc::new(config)).connect(name, socket).await;
    let mut stream = connected.map_err(|error| error.to_string())?;
    let request =
        format!("{target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\r\n{body}", server.address);
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let Some(status) = text.split(' ').nth(1) else { return Err(format!("{read:?}")) };
    Ok((status.parse().unwrap(), text))
}

async fn server(
    configure: impl FnOnce(&Path, TlsFiles) -> (TlsFiles, String),
    ca: &Authority,
) -> RunningServer {
    let folder = tempfile::tempdir().unwrap();
    let (files, identities) = configure(folder.path(), write_files(folder.path(), ca));
    let path = folder.path().join("identities.yaml");
    fs::write(&path, identities).unwrap();
    let tls = Tls::open(files).unwrap();
    RunningServer::start(RULES, folder, |server| {
        server.with_identity_file(IdentityFile::open(&path).unwrap()).with_tls(tls)
    })
    .await
}

fn digest(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tokens() -> String {
    format!(
        "tokens: [ {{ sha256: {}, principal: ann, access: [approver, admin] }} ]\n",
        digest("token-of-ann")
    )
}

const BEARER: &str = "authorization: Bearer token-of-ann\r\n";

#[tokio::test]
async fn serves_https_only() {
    let ca = authority();
    let server = server(|_, files| (files, tokens()), &ca).await;
    let (status, text) = get(&server, &ca, None, "/v1/rules", BEARER).await.unwrap();
    assert_eq!(status, 200, "{text}");
    assert!(get(&server, &authority(), None, "/v1/rules", BEARER).await.is_err(), "another authority");
    let (_, authzen) = get(&server, &ca, None, "/.well-known/authzen-configuration", "").await.unwrap();
    assert!(authzen.contains("\"https://"), "{authzen}");
    // Without TLS there is no response.
    let mut plain = TcpStream::connect(&server.address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes).await;
    assert!(!bytes.starts_with(b"HTTP"), "{bytes:?}");
}

#[tokio::test]
async fn client_certificates_say_who_a_caller_is() {
    let (ca, clients) = (authority(), authority());
    let identities = "certificates:
  - { uri: 'spiffe://example.com/ann', principal: ann, access: [approver, admin] }
  - { dns: Agent.Internal, principal: agent }
";
    let configure = |folder: &Path, files: TlsFiles| {
        let path = folder.join("clients.pem");
        fs::write(&path, clients.pem()).unwrap();
        (TlsFiles { client_ca: Some(path), ..files }, identities.to_owned() + &tokens())
    };
    let server = server(configure, &ca).await;
    let status = async |client: Option<&Issued>, headers: &str| {
        get(&server, &ca, client, "/v1/rules", headers).await.map(|(status, _)| status)
    };
    let ann = issue(&clients, uri("spiffe://example.com/ann"));
    let agent = issue(&clients, dns("agent.internal"));
    assert_eq!(status(Some(&ann), "").await, Ok(200));
    assert_eq!(status(Some(&agent), "").await, Ok(403), "known, without the access");
    // If there is a token, it counts.
    assert_eq!(status(Some(&agent), BEARER).await, Ok(200));
    assert_eq!(status(Some(&ann), "authorization: Bearer other\r\n").await, Ok(401));
    let stranger = issue(&clients, uri("spiffe://example.com/eve"));
    assert_eq!(status(Some(&stranger), "").await, Ok(401));
    assert!(status(None, BEARER).await.is_err(), "every client needs a certificate");
    let forged = issue(&authority(), uri("spiffe://example.com/ann"));
    assert!(status(Some(&forged), "").await.is_err(), "an authority that is not trusted");
}

#[tokio::test]
async fn pages_of_others_cannot_use_the_certificate_of_a_browser() {
    let (ca, clients) = (authority(), authority());
    let configure = |folder: &Path, files: TlsFiles| {
        let path = folder.join("clients.pem");
        fs::write(&path, clients.pem()).unwrap();
        let identities = "certificates: [ { uri: 'urn:ann', principal: ann, access: [approver, admin] } ]";
        (TlsFiles { client_ca: Some(path), ..files }, identities.to_owned())
    };
    let server = server(configure, &ca).await;
    let ann = issue(&clients, uri("urn:ann"));
    let origin = "origin: https://localhost:3000\r\n";
    let (status, _) = get(&server, &ca, Some(&ann), "/v1/rules", origin).await.unwrap();
    assert_eq!(status, 200, "reading is up to the browser, which lets no other page read");
    // An answer needs the header of the page, or no origin.
    let answer = format!("{origin}content-type: application/json\r\ncontent-length: 2\r\n");
    let (status, text) =
        request(&server, &ca, Some(&ann), "POST /v1/approvals/x/answers", &answer, "{}").await.unwrap();
    assert_eq!(status, 403, "{text}");
    assert!(text.contains("not_from_page"), "{text}");
}

#[tokio::test]
async fn certificates_are_reloaded() {
    let (ca, other) = (authority(), authority());
    let server = server(|_, files| (files, tokens()), &ca).await;
    let folder = server.folder.path();
    assert!(get(&server, &ca, None, "/healthz", "").await.is_ok());
    // A key that is not the certificate's is rejected, and the previous pair stays.
    fs::write(folder.join("server.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(get(&server, &ca, None, "/healthz", "").await.is_ok());
    write_files(folder, &other);
    tokio::time::timeout(Duration::from_secs(60), async {
        while get(&server, &other, None, "/healthz", "").await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("the new certificate is served");
    assert!(get(&server, &ca, None, "/healthz", "").await.is_err());
}

#[test]
fn invalid_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let files = write_files(folder.path(), &authority());
    let error = |files: TlsFiles| Tls::open(files).unwrap_err();
    let swapped =
        TlsFiles { certificate: files.key.clone(), key: files.certificate.clone(), client_ca: None };
    assert!(error(swapped).contains("server.key` has no certificate"));
    let missing = TlsFiles { client_ca: Some(folder.path().join("none.pem")), ..files.clone() };
    assert!(error(missing).contains("none.pem` can't be read"));
    fs::write(folder.path().join("server.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    assert!(error(files).contains("can't be used with the key"));
}

#[test]
fn a_resource_is_the_audience_of_every_issuer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identities.yaml");
    let open = |audience: &str, resource: &str| {
        let file = format!(
            "resource: {resource}\njwt: {{ issuer: 'https://id.test', audience: '{audience}', algorithms: RS256, \
             jwks_url: 'https://id.test/keys' }}\n"
        );
        fs::write(&path, file).unwrap();
        IdentityFile::open(&path).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(open("https://tools.test/mcp", "https://tools.test/mcp"), Ok(()));
    assert!(open("gateway", "https://tools.test/mcp").unwrap_err().contains("does not contain `resource`"));
    assert!(open("mcp", "mcp").unwrap_err().contains("this is not a URL"));
}
