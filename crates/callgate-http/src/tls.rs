//! TLS of servers: certificate, key and trusted client certificates from files, which are reloaded when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use data_encoding::HEXLOWER;
use ring::digest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// The polling interval. Contents are compared, so every way of replacing a file is noticed.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The files of a server's TLS, all in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by those of the authorities between it and a root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities of client certificates. With them every client needs a certificate of one of them.
    pub client_ca: Option<PathBuf>,
}

/// The TLS of a server, which follows its files.
pub struct Tls {
    files: TlsFiles,
    config: ArcSwap<ServerConfig>,
    contents: std::sync::Mutex<Contents>,
}

/// The contents of the files.
#[derive(PartialEq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file can't be read or is invalid, or the key is not the certificate's: a text for the operator.
    pub fn open(files: TlsFiles) -> Result<Self, String> {
        let contents = read(&files)?;
        let config = ArcSwap::from_pointee(config(&files, &contents)?);
        Ok(Self { files, config, contents: contents.into() })
    }

    /// Accepts connections with the present certificate.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }

    /// Reloads the files whenever they change; never returns. Files with errors are rejected and logged once; the previous certificate
    /// stays in use.
    pub async fn watch(self: Arc<Self>, log: impl Fn(&str)) {
        let mut last_error = None;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let tls = Arc::clone(&self);
            let Ok(reloaded) = tokio::task::spawn_blocking(move || tls.reload()).await else { continue };
            match reloaded {
                Ok(false) => {}
                Ok(true) => {
                    last_error = None;
                    log("the TLS certificate was reloaded");
                }
                Err(why) if last_error.as_ref() == Some(&why) => {}
                Err(why) => {
                    log(&format!(
                        "the reload of the TLS certificate is rejected; the previous one stays in use: {why}"
                    ));
                    last_error = Some(why);
                }
            }
        }
    }

    /// Reloads the files if they have changed; returns whether they have.
    fn reload(&self) -> Result<bool, String> {
        let contents = read(&self.files)?;
        let mut known = self.contents.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *known == contents {
            return Ok(false);
        }
        // A new configuration also ends the resumption of sessions under the old one, so that removed authorities have no effect.
        self.config.store(Arc::new(config(&self.files, &contents)?));
        *known = contents;
        Ok(true)
    }
}

fn read(files: &TlsFiles) -> Result<Contents, String> {
    let read = |path: &Path| {
        let failed = |error: std::io::Error| format!("`{}` can't be read: {error}", path.display());
        if std::fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
            return Err(format!("`{}` is longer than {MAX_FILE} bytes", path.display()));
        }
        std::fs::read(path).map_err(failed)
    };
    Ok(Contents {
        certificate: read(&files.certificate)?,
        key: read(&files.key)?,
        client_ca: files.client_ca.as_deref().map(read).transpose()?,
    })
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| format!("`{}` is not valid PEM: {error}", path.display()))?;
    if all.is_empty() {
        return Err(format!("`{}` has no certificate: it must be in PEM", path.display()));
    }
    Ok(all)
}

fn config(files: &TlsFiles, contents: &Contents) -> Result<ServerConfig, String> {
    let chain = certificates(&files.certificate, &contents.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&contents.key)
        .map_err(|error| format!("`{}` has no private key in PEM: {error}", files.key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match files.client_ca.as_deref().zip(contents.client_ca.as_deref()) {
        None => builder.with_no_client_auth(),
        Some((path, pem)) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path, pem)? {
                roots.add(certificate).map_err(|error| {
                    format!("`{}` has an invalid authority of clients: {error}", path.display())
                })?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| error.to_string())?)
        }
    };
    let (certificate, key_file) = (files.certificate.display(), files.key.display());
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| format!("`{certificate}` can't be used with the key in `{key_file}`: {error}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificate of a client, which an authority that the operator trusts has issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The SHA-256 digest of the certificate (DER), in lower-case hexadecimal.
    pub(crate) digest: String,
    /// Its names as DNS names (SAN), in lower case.
    pub(crate) dns_names: Vec<String>,
    /// Its names as URIs (SAN), such as SPIFFE ids.
    pub(crate) uris: Vec<String>,
}

impl ClientCertificate {
    /// The certificate of a verified client. A certificate that can't be parsed has no names.
    pub(crate) fn from_der(der: &CertificateDer<'_>) -> Self {
        let digest = digest::digest(&digest::SHA256, der);
        let (dns_names, uris) = match webpki::EndEntityCert::try_from(der) {
            Ok(certificate) => (
                certificate.valid_dns_names().map(str::to_lowercase).collect(),
                certificate.valid_uri_names().map(str::to_owned).collect(),
            ),
            Err(_) => (Vec::new(), Vec::new()),
        };
        Self { digest: HEXLOWER.encode(digest.as_ref()), dns_names, uris }
    }
}
