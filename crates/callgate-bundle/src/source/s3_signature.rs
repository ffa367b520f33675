//! Amazon's request signatures (Signature Version 4), which S3-compatible stores verify: `s3://BUCKET/KEY` → a URL, and headers for each request.

use callgate::seal::encode_hex;
use callgate_http::parse_secret_url;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use ring::hmac;

use super::SourceError;
use crate::bundle::sha256_hex;

/// The store and the credentials, from the variables that Amazon's tools read.
#[derive(Clone, Default)]
pub struct S3Settings {
    /// `AWS_ENDPOINT_URL`: the store; without it, Amazon's for the region.
    pub endpoint: Option<String>,
    /// `AWS_REGION`.
    pub region: Option<String>,
    /// `AWS_ACCESS_KEY_ID`.
    pub access_key: Option<String>,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret_key: Option<String>,
    /// `AWS_SESSION_TOKEN`, of temporary credentials.
    pub session_token: Option<String>,
}

impl S3Settings {
    /// The settings of the environment.
    pub fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            endpoint: variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL")),
            region: variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")),
            access_key: variable("AWS_ACCESS_KEY_ID"),
            secret_key: variable("AWS_SECRET_ACCESS_KEY"),
            session_token: variable("AWS_SESSION_TOKEN"),
        }
    }
}

/// Omits the secrets.
impl std::fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Settings")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

/// Signs requests to a store.
#[derive(Debug)]
pub(super) struct S3Signer {
    settings: S3Settings,
    region: String,
}

/// What is signed of a request.
pub(super) struct SignedRequest<'r> {
    pub(super) method: &'r str,
    pub(super) url: &'r Url,
    pub(super) body: &'r [u8],
    pub(super) time: Timestamp,
}

impl S3Signer {
    /// Parses `s3://BUCKET/KEY` into the URL of the object, with the bucket in its path as every compatible store accepts it.
    pub(super) fn parse(text: &str, settings: S3Settings) -> Result<(Url, Self), SourceError> {
        let object = text.strip_prefix("s3://").unwrap_or(text);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
        let is_object = object.bytes().all(is_plain)
            && object.split('/').count() > 1
            && object.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_object {
            return Err(SourceError(
                "write `s3://BUCKET/KEY` with letters, digits, `-`, `_`, `.` and `/`".to_owned(),
            ));
        }
        let region = settings.region.clone().unwrap_or_else(|| "us-east-1".to_owned());
        let amazon = || format!("https://s3.{region}.amazonaws.com");
        let endpoint = settings.endpoint.clone().unwrap_or_else(amazon);
        let url = parse_secret_url(&format!("{}/{object}", endpoint.trim_end_matches('/')));
        let url =
            url.map_err(|why| SourceError(format!("the endpoint of the store (AWS_ENDPOINT_URL): {why}")))?;
        Ok((url, Self { settings, region }))
    }

    /// The headers of a request, with its signature.
    pub(super) fn headers(&self, request: &SignedRequest<'_>) -> Result<HeaderMap, SourceError> {
        let (Some(access_key), Some(secret)) = (&self.settings.access_key, &self.settings.secret_key) else {
            return Err(SourceError("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_owned()));
        };
        let time = request.time.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
        let date = time.get(..8).unwrap_or_default();
        let digest = sha256_hex(request.body);
        let mut signed = vec![
            ("host", authority(request.url)),
            ("x-amz-content-sha256", digest.clone()),
            ("x-amz-date", time.clone()),
        ];
        signed.extend(self.settings.session_token.clone().map(|token| ("x-amz-security-token", token)));
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let (path, query) = (request.url.path(), request.url.query().unwrap_or_default());
        let canonical = format!("{}\n{path}\n{query}\n{lines}\n{names}\n{digest}", request.method);
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256_hex(canonical.as_bytes()));
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in [date, &self.region, "s3", "aws4_request"] {
            key = sign(&key, part);
        }
        let signature = encode_hex(&sign(&key, &text));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}"
        );
        let mut headers = HeaderMap::new();
        for (name, value) in signed.into_iter().skip(1) {
            headers.insert(HeaderName::from_static(name), header_value(&value)?);
        }
        headers.insert(AUTHORIZATION, header_value(&authorization)?);
        Ok(headers)
    }
}

fn sign(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

/// The `Host` header of a URL.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn header_value(text: &str) -> Result<HeaderValue, SourceError> {
    let invalid =
        |_| SourceError("the credentials of the store have characters that no header may have".to_owned());
    let mut value = HeaderValue::from_str(text).map_err(invalid)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> S3Settings {
        S3Settings {
            endpoint: Some("https://examplebucket.s3.amazonaws.com".to_owned()),
            region: Some("us-east-1".to_owned()),
            access_key: Some("AKIAIOSFODNN7EXAMPLE".to_owned()),
            secret_key: Some("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            session_token: None,
        }
    }

    #[test]
    fn urls_name_bucket_and_key() {
        let (url, _) = S3Signer::parse("s3://rules/payments/stable.json", S3Settings::default()).unwrap();
        assert_eq!(url.as_str(), "https://s3.us-east-1.amazonaws.com/rules/payments/stable.json");
        let local = S3Settings { endpoint: Some("http://127.0.0.1:9000/".to_owned()), ..settings() };
        let (url, _) = S3Signer::parse("s3://rules/a.json", local).unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:9000/rules/a.json");
        for text in [
            "s3://rules",
            "s3://rules/",
            "s3://rules/../other",
            "s3://rules/a?b",
            "s3:///a",
            "s3://u:p@rules/a",
        ] {
            assert!(S3Signer::parse(text, settings()).is_err(), "{text}");
        }
        let plain = S3Settings { endpoint: Some("http://store.example.com".to_owned()), ..settings() };
        assert!(S3Signer::parse("s3://rules/a.json", plain).is_err());
    }

    /// The example of a request without a body in Amazon's documentation of the signature.
    #[test]
    fn signatures_equal_the_documented_one() {
        let (_, signer) = S3Signer::parse("s3://a/b", settings()).unwrap();
        let url = Url::parse("https://examplebucket.s3.amazonaws.com/?lifecycle=").unwrap();
        let time: Timestamp = "2013-05-24T00:00:00Z".parse().unwrap();
        let request = SignedRequest { method: "GET", url: &url, body: b"", time };
        let headers = signer.headers(&request).unwrap();
        assert_eq!(
            headers[AUTHORIZATION],
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;x-amz-content-sha256;x-amz-date,\
             Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert!(headers[AUTHORIZATION].is_sensitive());
        let other = signer.headers(&SignedRequest { body: b"x", ..request }).unwrap();
        assert_ne!(headers[AUTHORIZATION], other[AUTHORIZATION]);
        let without = S3Signer { settings: S3Settings::default(), region: "us-east-1".to_owned() };
        assert!(without.headers(&SignedRequest { method: "GET", url: &url, body: b"", time }).is_err());
    }
}
