//! Where bundles are published: a URL → the bytes of an envelope, or "unchanged". Nothing that is received here is trusted: signatures are verified later.
//!
//! An `https://` URL is an object of a web server or of a store with presigned URLs, `s3://` one of a store with Amazon's signatures, and `oci://` an artifact in
//! a container registry. Redirects are not followed, but for the blobs and tokens of a registry, to hosts that the operator names.

mod challenge;
mod credentials;
mod http_object;
mod limited_body;
mod oci_artifact;
mod s3_signature;

use std::path::PathBuf;
use std::time::Duration;

use callgate_http::{error_chain, https_client, parse_secret_url};
use reqwest::{Client, Url};

use http_object::HttpObject;
use oci_artifact::OciArtifact;
pub use s3_signature::S3Settings;

/// Timeout of a request, with its body.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What the operator gives for a source.
#[derive(Clone, Debug, Default)]
pub struct SourceAccess {
    /// A file with `Bearer TOKEN` or `Basic USER:PASSWORD`, read for each request.
    pub credentials: Option<PathBuf>,
    /// Hosts that a registry may name for tokens and blobs, besides itself.
    pub trusted_hosts: Vec<String>,
    /// The store and the credentials of `s3://` URLs.
    pub s3: S3Settings,
}

/// Where a bundle is published.
#[derive(Debug)]
pub struct BundleSource {
    location: Location,
    display_name: String,
}

#[derive(Debug)]
enum Location {
    Http(HttpObject),
    Oci(OciArtifact),
}

/// What identifies the content that was fetched last: an ETag, or the digest of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator(pub(crate) String);

/// The result of a request.
#[derive(Debug)]
pub enum Fetched {
    /// The content is the one of the validator.
    Unchanged,
    /// The content, and what identifies it.
    Envelope(Vec<u8>, Option<Validator>),
}

/// Why a bundle can't be fetched or published. Names no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub(crate) String);

impl BundleSource {
    /// Whether a path of rules is a URL of a published bundle.
    pub fn is_url(text: &str) -> bool {
        ["https://", "http://", "oci://", "s3://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// It is not a URL of a bundle, or contains a password.
    pub fn parse(text: &str, access: SourceAccess) -> Result<Self, SourceError> {
        if let Some(reference) = text.strip_prefix("oci://") {
            let artifact = OciArtifact::parse(reference, access)?;
            return Ok(Self { location: Location::Oci(artifact), display_name: text.to_owned() });
        }
        if text.starts_with("s3://") {
            let object = HttpObject::from_s3(text, access)?;
            return Ok(Self { location: Location::Http(object), display_name: text.to_owned() });
        }
        let url = parse_secret_url(text).map_err(SourceError)?;
        // What follows a `?` may be a signature, and what follows a `#` is not sent.
        let mut shown = url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        let location = Location::Http(HttpObject::new(url, access)?);
        Ok(Self { location, display_name: shown.into() })
    }

    /// The URL without what may be secret in it.
    pub fn display_name(&self) -> &str {
        &self.display_name
    }

    /// Fetches the published envelope, unless it is the one of the validator.
    ///
    /// # Errors
    /// It can't be fetched, or is too large.
    pub async fn fetch(&self, known: Option<&Validator>) -> Result<Fetched, SourceError> {
        let fetched = match &self.location {
            Location::Http(object) => object.fetch(known).await,
            Location::Oci(artifact) => artifact.fetch(known).await,
        };
        fetched.map_err(|why| self.failed("fetched", &why))
    }

    /// Publishes an envelope.
    ///
    /// # Errors
    /// It can't be sent, or is refused.
    pub async fn push(&self, envelope: Vec<u8>) -> Result<(), SourceError> {
        let pushed = match &self.location {
            Location::Http(object) => object.push(envelope).await,
            Location::Oci(artifact) => artifact.push(envelope).await,
        };
        pushed.map_err(|why| self.failed("published", &why))
    }

    fn failed(&self, what: &str, why: &SourceError) -> SourceError {
        SourceError(format!("`{}` can't be {what}: {why}", self.display_name))
    }
}

/// A client for a host. Connections are not kept, because a source is used about once a minute.
fn new_client(url: &Url) -> Result<Client, SourceError> {
    let client = https_client(url).timeout(TIMEOUT).pool_max_idle_per_host(0).build();
    client.map_err(|error| SourceError(error_chain(error)))
}

/// The error of a status, with what to do.
fn status_error(status: u16) -> SourceError {
    let hint = match status {
        300..=399 => "; redirects are not followed: name the URL that serves the bundle itself",
        401 | 403 => "; give credentials that may read it (`--policies-credentials`)",
        404 => "; publish a bundle there, or correct the URL",
        _ => "",
    };
    SourceError(format!("status {status}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_with_secrets_are_not_shown() {
        let parse = |url: &str| BundleSource::parse(url, SourceAccess::default());
        let source = parse("https://store.example.com/rules.json?X-Amz-Signature=secret#part").unwrap();
        assert_eq!(source.display_name(), "https://store.example.com/rules.json");
        for url in [
            "http://store.example.com/rules.json",
            "https://user:secret@store.example.com/rules.json",
            "oci://user:secret@registry.example.com/rules",
            "oci://registry.example.com",
            "oci://registry.example.com/../rules",
            "oci://registry.example.com/rules:a/b",
            "oci://registry.example.com/rules?x=1",
            "ftp://store.example.com/rules",
        ] {
            let error = parse(url).map(|source| source.display_name().to_owned()).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert!(BundleSource::is_url("oci://registry.example.com/rules"));
        assert!(!BundleSource::is_url("git:main:policies"));
        assert!(!BundleSource::is_url("policies"));
    }
}
