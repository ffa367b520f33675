//! OAuth 2.0 token exchange (RFC 8693): the token of a caller → a token of the same caller for another server.

use std::time::Duration;

use callgate::json::{self, Value};
use data_encoding::BASE64;
use reqwest::{Client, Url, header};
use thiserror::Error;

use crate::https_client::{error_chain, https_client, parse_secret_url};

/// Timeout of one exchange.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest response, in bytes.
const MAX_LENGTH: usize = 256 << 10;
/// How long a token is used whose lifetime the authorization server does not tell.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(60);

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The settings of a token exchange.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenExchangeSettings {
    /// The token endpoint of the authorization server.
    pub endpoint: String,
    /// The client id of the gateway.
    pub client_id: String,
    /// The secret of the client, sent by HTTP Basic authentication.
    pub client_secret: String,
    /// The logical names of the servers for which the token is.
    pub audience: Vec<String>,
    /// The URLs of the servers for which the token is (RFC 8707).
    pub resource: Vec<String>,
    /// The scopes of the token, separated by spaces.
    pub scope: Option<String>,
}

// Leaves out the secret.
impl std::fmt::Debug for TokenExchangeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenExchangeSettings").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A token for another server. It must not be logged, so it has no `Debug`.
#[derive(Clone)]
pub struct ExchangedToken {
    /// The token.
    pub token: String,
    /// How long it is valid.
    pub lifetime: Duration,
}

/// Why a token can't be exchanged. Contains no token and no secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TokenExchangeError(String);

/// A client of an authorization server.
pub struct TokenExchange {
    client: Client,
    endpoint: Url,
    settings: TokenExchangeSettings,
}

impl std::fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.settings.fmt(f)
    }
}

impl TokenExchange {
    /// Prepares the client; nothing is sent.
    ///
    /// # Errors
    /// The endpoint is not allowed: a text for the operator.
    pub fn new(settings: TokenExchangeSettings) -> Result<Self, TokenExchangeError> {
        let endpoint = parse_secret_url(&settings.endpoint).map_err(TokenExchangeError)?;
        let client = https_client(&endpoint).timeout(TIMEOUT).build();
        let client = client.map_err(|error| TokenExchangeError(error_chain(error)))?;
        Ok(Self { client, endpoint, settings })
    }

    /// Exchanges the token of a caller.
    ///
    /// # Errors
    /// The authorization server can't be reached, refuses, or responds in another form.
    pub async fn exchange(&self, token: &str) -> Result<ExchangedToken, TokenExchangeError> {
        let failed = |why: String| TokenExchangeError(format!("the token exchange failed: {why}"));
        let credentials = format!(
            "{}:{}",
            form_encode(&self.settings.client_id),
            form_encode(&self.settings.client_secret)
        );
        let request = self
            .client
            .post(self.endpoint.clone())
            .header(header::AUTHORIZATION, format!("Basic {}", BASE64.encode(credentials.as_bytes())))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(self.form(token));
        let mut response = request.send().await.map_err(|error| failed(error_chain(error)))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(error_chain(error)))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_LENGTH {
                return Err(failed("the response is too long".to_owned()));
            }
        }
        let body = json::from_slice(&bytes).unwrap_or(Value::Null);
        match status.is_success() {
            true => read_token(&body).map_err(failed),
            // The code is of a fixed set; a description could repeat the token.
            false => Err(failed(format!(
                "the authorization server responds with {}{}",
                status.as_u16(),
                error_code(&body).map(|code| format!(" ({code})")).unwrap_or_default()
            ))),
        }
    }

    fn form(&self, token: &str) -> String {
        let TokenExchangeSettings { audience, resource, scope, .. } = &self.settings;
        let fixed = [
            ("grant_type", GRANT_TYPE),
            ("subject_token", token),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
        ];
        let audience = audience.iter().map(|name| ("audience", name.as_str()));
        let resource = resource.iter().map(|url| ("resource", url.as_str()));
        let scope = scope.iter().map(|scope| ("scope", scope.as_str()));
        let all = fixed.into_iter().chain(audience).chain(resource).chain(scope);
        all.map(|(name, value)| format!("{name}={}", form_encode(value))).collect::<Vec<_>>().join("&")
    }
}

/// Reads the response of an authorization server.
fn read_token(body: &Value) -> Result<ExchangedToken, String> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let is_token = |token: &&str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let token = text("access_token").filter(is_token).ok_or("the response has no valid `access_token`")?;
    if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err("the token is not a bearer token".to_owned());
    }
    let lifetime = match body.get("expires_in") {
        None | Some(Value::Null) => UNKNOWN_LIFETIME,
        Some(seconds) => {
            Duration::from_secs(seconds.as_u64().ok_or("`expires_in` is not a number of seconds")?)
        }
    };
    Ok(ExchangedToken { token: token.to_owned(), lifetime })
}

/// The code of an OAuth error, such as `invalid_grant`.
fn error_code(body: &Value) -> Option<&str> {
    let code = body.get("error")?.as_str()?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (code.len() <= 40 && code.bytes().all(is_plain)).then_some(code)
}

/// Encodes a value of a form (`application/x-www-form-urlencoded`).
fn form_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
                encoded.push(char::from(byte))
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[test]
    fn reads_only_bearer_tokens() {
        let token = |body: Value| read_token(&body).map(|token| (token.token, token.lifetime.as_secs()));
        let bearer = json!({ "access_token": "abc", "token_type": "Bearer", "expires_in": 300 });
        assert_eq!(token(bearer), Ok(("abc".to_owned(), 300)));
        assert_eq!(
            token(json!({ "access_token": "abc", "token_type": "bearer" })),
            Ok(("abc".to_owned(), 60))
        );
        for body in [
            json!({ "token_type": "Bearer" }),
            json!({ "access_token": "a\r\nx: y", "token_type": "Bearer" }),
            json!({ "access_token": "", "token_type": "Bearer" }),
            json!({ "access_token": "abc", "token_type": "N_A" }),
            json!({ "access_token": "abc", "token_type": "DPoP" }),
            json!({ "access_token": "abc", "token_type": "Bearer", "expires_in": "300" }),
            json!({ "access_token": "abc", "token_type": "Bearer", "expires_in": -1 }),
            Value::Null,
        ] {
            assert!(token(body.clone()).is_err(), "{body}");
        }
    }

    #[test]
    fn shows_only_codes_of_errors() {
        assert_eq!(error_code(&json!({ "error": "invalid_grant" })), Some("invalid_grant"));
        assert_eq!(error_code(&json!({ "error": "eyJhbGciOiJSUzI1NiJ9.e30.x" })), None);
    }
}
