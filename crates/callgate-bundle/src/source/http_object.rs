//! An object of a web server or an object store: GET with `If-None-Match`, and PUT.

use std::path::PathBuf;

use callgate_http::error_chain;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH};
use reqwest::{Client, Method, Url};

use super::credentials::Credentials;
use super::limited_body::read_body;
use super::s3_signature::{S3Signer, SignedRequest};
use super::{Fetched, SourceAccess, SourceError, Validator, new_client, status_error};
use crate::envelope::MAX_ENVELOPE_BYTES;

/// The media type of an envelope.
const MEDIA_TYPE: &str = "application/json";
/// The longest ETag that is sent back.
const MAX_ETAG_BYTES: usize = 1024;

/// An object at a URL.
#[derive(Debug)]
pub(super) struct HttpObject {
    url: Url,
    client: Client,
    authorization: Authorization,
}

#[derive(Debug)]
enum Authorization {
    None,
    File(PathBuf),
    S3(S3Signer),
}

impl HttpObject {
    pub(super) fn new(url: Url, access: SourceAccess) -> Result<Self, SourceError> {
        let client = new_client(&url)?;
        let authorization = access.credentials.map_or(Authorization::None, Authorization::File);
        Ok(Self { url, client, authorization })
    }

    /// An object of a store with Amazon's signatures: `s3://BUCKET/KEY`.
    pub(super) fn from_s3(text: &str, access: SourceAccess) -> Result<Self, SourceError> {
        let (url, signer) = S3Signer::parse(text, access.s3)?;
        let client = new_client(&url)?;
        Ok(Self { url, client, authorization: Authorization::S3(signer) })
    }

    pub(super) async fn fetch(&self, known: Option<&Validator>) -> Result<Fetched, SourceError> {
        let mut request = self.client.get(self.url.clone()).header(ACCEPT, MEDIA_TYPE);
        if let Some(Validator(etag)) = known {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let request = request.headers(self.authorize(&Method::GET, &[])?);
        let response = request.send().await.map_err(|error| SourceError(error_chain(error)))?;
        match response.status().as_u16() {
            200 => {}
            304 if known.is_some() => return Ok(Fetched::Unchanged),
            status => return Err(status_error(status)),
        }
        let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
        let validator =
            etag.filter(|etag| etag.len() <= MAX_ETAG_BYTES).map(|etag| Validator(etag.to_owned()));
        Ok(Fetched::Envelope(read_body(response, MAX_ENVELOPE_BYTES).await?, validator))
    }

    pub(super) async fn push(&self, envelope: Vec<u8>) -> Result<(), SourceError> {
        let headers = self.authorize(&Method::PUT, &envelope)?;
        let request = self.client.put(self.url.clone()).header(CONTENT_TYPE, MEDIA_TYPE).headers(headers);
        let response =
            request.body(envelope).send().await.map_err(|error| SourceError(error_chain(error)))?;
        if response.status().is_success() { Ok(()) } else { Err(status_error(response.status().as_u16())) }
    }

    fn authorize(&self, method: &Method, body: &[u8]) -> Result<HeaderMap, SourceError> {
        match &self.authorization {
            Authorization::None => Ok(HeaderMap::new()),
            Authorization::File(path) => {
                Ok(HeaderMap::from_iter([(AUTHORIZATION, Credentials::read(path)?.header()?)]))
            }
            Authorization::S3(signer) => signer.headers(&SignedRequest {
                method: method.as_str(),
                url: &self.url,
                body,
                time: jiff::Timestamp::now(),
            }),
        }
    }
}
