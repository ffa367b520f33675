//! An artifact of a container registry (OCI Distribution): manifest and blob → envelope, with the registry's tokens.
//!
//! The registry is not trusted: hosts that it names for tokens and blobs are used only if the operator has named them, and credentials go to no other host.

use callgate::json::{self, Value, json};
use callgate_http::{error_chain, is_this_machine};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Method, RequestBuilder, Response, Url};

use super::challenge::Challenge;
use super::credentials::Credentials;
use super::limited_body::read_body;
use super::{Fetched, SourceAccess, SourceError, Validator, new_client, status_error};
use crate::bundle::sha256_hex;
use crate::envelope::{MAX_ENVELOPE_BYTES, PAYLOAD_TYPE};

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// The media type of the layer: an envelope.
const LAYER_TYPE: &str = "application/vnd.callgate.bundle.envelope.v1+json";
const EMPTY: &[u8] = b"{}";
/// The largest manifest and token response, in bytes.
const MAX_MANIFEST_BYTES: usize = 1 << 20;
/// The number of redirects to a blob that are followed.
const MAX_REDIRECTS: usize = 3;

/// A tag of a repository.
#[derive(Debug)]
pub(super) struct OciArtifact {
    /// The registry.
    registry: Url,
    repository: String,
    reference: String,
    client: Client,
    access: SourceAccess,
}

/// What a token permits.
#[derive(Clone, Copy)]
enum Scope {
    Pull,
    Push,
}

impl OciArtifact {
    /// Parses `HOST/REPOSITORY:TAG`.
    pub(super) fn parse(text: &str, access: SourceAccess) -> Result<Self, SourceError> {
        let invalid = || SourceError("write `oci://HOST/REPOSITORY:TAG`".to_owned());
        let (host, path) = text.split_once('/').ok_or_else(invalid)?;
        let (repository, reference) = match path.split_once('@') {
            Some((repository, digest)) => (repository, digest),
            None => path.rsplit_once(':').unwrap_or((path, "latest")),
        };
        let is_part = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
        };
        let is_reference = (1..=128).contains(&reference.len())
            && reference.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte));
        if host.contains(['@', '?', '#']) || !repository.split('/').all(is_part) || !is_reference {
            return Err(invalid());
        }
        let mut registry = Url::parse(&format!("https://{host}/")).map_err(|_| invalid())?;
        if is_this_machine(&registry) {
            registry = Url::parse(&format!("http://{host}/")).map_err(|_| invalid())?;
        }
        let client = new_client(&registry)?;
        Ok(Self {
            registry,
            repository: repository.to_owned(),
            reference: reference.to_owned(),
            client,
            access,
        })
    }

    /// Fetches the manifest, and its blob unless the manifest is the one of the validator.
    pub(super) async fn fetch(&self, known: Option<&Validator>) -> Result<Fetched, SourceError> {
        let manifest_url = self.url(&format!("manifests/{}", self.reference))?;
        let get = self.client.get(manifest_url).header(ACCEPT, MANIFEST_TYPE);
        let (response, token) = self.send_authorized(get, Scope::Pull).await?;
        let manifest = read_body(expect_ok(response)?, MAX_MANIFEST_BYTES).await?;
        let validator = Validator(sha256_hex(&manifest));
        if known == Some(&validator) {
            return Ok(Fetched::Unchanged);
        }
        let digest = layer_digest(&manifest)?;
        let blob = self.fetch_blob(&digest, token).await?;
        if sha256_hex(&blob) != digest {
            return Err(SourceError("the blob is not the one that the manifest names".to_owned()));
        }
        Ok(Fetched::Envelope(blob, Some(validator)))
    }

    /// Publishes an envelope under the tag.
    pub(super) async fn push(&self, envelope: Vec<u8>) -> Result<(), SourceError> {
        let digest = sha256_hex(&envelope);
        let layer =
            json!({ "mediaType": LAYER_TYPE, "digest": format!("sha256:{digest}"), "size": envelope.len() });
        let config = json!({ "mediaType": EMPTY_TYPE, "digest": format!("sha256:{}", sha256_hex(EMPTY)), "size": EMPTY.len() });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "artifactType": PAYLOAD_TYPE,
            "config": config, "layers": [layer],
        });
        self.push_blob(EMPTY.to_vec()).await?;
        self.push_blob(envelope).await?;
        let url = self.url(&format!("manifests/{}", self.reference))?;
        let put = self.client.put(url).header(CONTENT_TYPE, MANIFEST_TYPE).body(manifest.to_string());
        let (response, _) = self.send_authorized(put, Scope::Push).await?;
        expect_success(&response)
    }

    async fn push_blob(&self, content: Vec<u8>) -> Result<(), SourceError> {
        let start = self.client.request(Method::POST, self.url("blobs/uploads/")?);
        let (response, token) = self.send_authorized(start, Scope::Push).await?;
        expect_success(&response)?;
        let mut upload = self.redirected(&response)?;
        upload.query_pairs_mut().append_pair("digest", &format!("sha256:{}", sha256_hex(&content)));
        let is_registry = is_same_host(&upload, &self.registry);
        let mut put = self.client.put(upload).header(CONTENT_TYPE, "application/octet-stream").body(content);
        if let Some(token) = token.filter(|_| is_registry) {
            put = put.header(AUTHORIZATION, token);
        }
        expect_success(&send(put).await?)
    }

    async fn fetch_blob(&self, digest: &str, token: Option<HeaderValue>) -> Result<Vec<u8>, SourceError> {
        let mut url = self.url(&format!("blobs/sha256:{digest}"))?;
        for _ in 0..=MAX_REDIRECTS {
            let mut get = self.client.get(url.clone());
            if let Some(token) = token.clone().filter(|_| is_same_host(&url, &self.registry)) {
                get = get.header(AUTHORIZATION, token);
            }
            let response = send(get).await?;
            if !response.status().is_redirection() {
                return read_body(expect_ok(response)?, MAX_ENVELOPE_BYTES).await;
            }
            url = self.redirected(&response)?;
        }
        Err(SourceError(format!("the blob is redirected more than {MAX_REDIRECTS} times")))
    }

    /// Sends a request, again with credentials if the registry requires them. Returns the credentials that it accepted, too.
    async fn send_authorized(
        &self,
        request: RequestBuilder,
        scope: Scope,
    ) -> Result<(Response, Option<HeaderValue>), SourceError> {
        let again = request.try_clone();
        let credentials = self.access.credentials.as_deref().map(Credentials::read).transpose()?;
        if let Some(Credentials::Bearer(_)) = &credentials {
            let header = credentials.as_ref().map(Credentials::header).transpose()?;
            let request =
                header.iter().fold(request, |request, header| request.header(AUTHORIZATION, header));
            return Ok((send(request).await?, header));
        }
        let response = send(request).await?;
        let (401, Some(again)) = (response.status().as_u16(), again) else { return Ok((response, None)) };
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|header| header.to_str().ok());
        let header = match challenge.and_then(Challenge::parse) {
            Some(Challenge::Bearer(url)) => Some(self.fetch_token(url, credentials.as_ref(), scope).await?),
            Some(Challenge::Basic) => credentials.as_ref().map(Credentials::header).transpose()?,
            None => None,
        };
        match header {
            Some(header) => Ok((send(again.header(AUTHORIZATION, &header)).await?, Some(header))),
            None => Ok((response, None)),
        }
    }

    async fn fetch_token(
        &self,
        mut url: Url,
        credentials: Option<&Credentials>,
        scope: Scope,
    ) -> Result<HeaderValue, SourceError> {
        self.check_host(&url, "tokens")?;
        if !url.query_pairs().any(|(name, _)| name == "scope") {
            let actions = match scope {
                Scope::Pull => "pull",
                Scope::Push => "pull,push",
            };
            let scope = format!("repository:{}:{actions}", self.repository);
            url.query_pairs_mut().append_pair("scope", &scope);
        }
        let mut get = self.client.get(url);
        if let Some(credentials) = credentials {
            get = get.header(AUTHORIZATION, credentials.header()?);
        }
        let body = read_body(expect_ok(send(get).await?)?, MAX_MANIFEST_BYTES).await?;
        let body = json::parse_bytes(&body).unwrap_or_default();
        let token = ["token", "access_token"].iter().find_map(|name| body.get(*name).and_then(Value::as_str));
        let token = token.ok_or_else(|| SourceError("the registry issued no token".to_owned()))?;
        Credentials::Bearer(token.to_owned()).header()
    }

    /// Where a response leads to, if that is allowed.
    fn redirected(&self, response: &Response) -> Result<Url, SourceError> {
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let url = location.and_then(|location| response.url().join(location).ok());
        let url = url.ok_or_else(|| SourceError("the registry names no location".to_owned()))?;
        self.check_host(&url, "blobs")?;
        Ok(url)
    }

    /// Checks that a URL of the registry's choice is of its own host, or of one that the operator has named.
    fn check_host(&self, url: &Url, what: &str) -> Result<(), SourceError> {
        if is_same_host(url, &self.registry) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        if url.scheme() == "https" && self.access.trusted_hosts.iter().any(|trusted| trusted == host) {
            return Ok(());
        }
        Err(SourceError(format!(
            "the registry has its {what} at `{}://{}`; if it should, add `--policies-trust-host {}`",
            url.scheme(),
            host.escape_debug(),
            host.escape_debug()
        )))
    }

    fn url(&self, below: &str) -> Result<Url, SourceError> {
        let url = self.registry.join(&format!("/v2/{}/{below}", self.repository));
        url.map_err(|error| SourceError(error.to_string()))
    }
}

fn is_same_host(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

async fn send(request: RequestBuilder) -> Result<Response, SourceError> {
    request.send().await.map_err(|error| SourceError(error_chain(error)))
}

fn expect_ok(response: Response) -> Result<Response, SourceError> {
    if response.status() == 200 { Ok(response) } else { Err(status_error(response.status().as_u16())) }
}

fn expect_success(response: &Response) -> Result<(), SourceError> {
    if response.status().is_success() { Ok(()) } else { Err(status_error(response.status().as_u16())) }
}

/// The digest of the only layer of a manifest.
fn layer_digest(manifest: &[u8]) -> Result<String, SourceError> {
    let other = || {
        SourceError(format!(
            "the artifact is not a bundle: it must have one layer of the type `{LAYER_TYPE}`"
        ))
    };
    let manifest = json::parse_bytes(manifest).map_err(|_| other())?;
    let Some([layer]) = manifest.get("layers").and_then(Value::as_array).map(Vec::as_slice) else {
        return Err(other());
    };
    let is_envelope = layer.get("mediaType").and_then(Value::as_str) == Some(LAYER_TYPE);
    let digest =
        layer.get("digest").and_then(Value::as_str).and_then(|digest| digest.strip_prefix("sha256:"));
    let is_hex = |digest: &&str| {
        digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    digest.filter(|_| is_envelope).filter(is_hex).map(str::to_owned).ok_or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_have_one_layer() {
        let layer =
            |kind: &str, digest: &str| format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":1}}"#);
        let digest = format!("sha256:{}", "a".repeat(64));
        let of = |layers: &str| layer_digest(format!(r#"{{"layers":[{layers}]}}"#).as_bytes());
        assert_eq!(of(&layer(LAYER_TYPE, &digest)).unwrap(), "a".repeat(64));
        let one = layer(LAYER_TYPE, &digest);
        for layers in [
            String::new(),
            format!("{one},{one}"),
            layer("application/octet-stream", &digest),
            layer(LAYER_TYPE, "sha256:../../../etc"),
            layer(LAYER_TYPE, "md5:00"),
        ] {
            assert!(of(&layers).is_err(), "{layers}");
        }
        assert!(layer_digest(b"<html>").is_err());
    }

    #[test]
    fn registries_name_only_allowed_hosts() {
        let access =
            SourceAccess { trusted_hosts: vec!["blobs.example.com".to_owned()], ..SourceAccess::default() };
        let artifact = OciArtifact::parse("registry.example.com/rules/payments:stable", access).unwrap();
        let check = |url: &str| artifact.check_host(&Url::parse(url).unwrap(), "blobs");
        assert!(check("https://registry.example.com/token").is_ok());
        assert!(check("https://blobs.example.com/a").is_ok());
        for url in [
            "http://registry.example.com/token",
            "http://blobs.example.com/a",
            "https://registry.example.com:8443/token",
            "https://169.254.169.254/latest/meta-data",
            "https://localhost/a",
            "https://other.example.com/a",
        ] {
            assert!(check(url).is_err(), "{url}");
        }
    }
}
