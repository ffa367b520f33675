//! Strict parser of JSON Web Tokens: header and claims as JSON without duplicate keys, dates as numbers with or without a fraction.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;

use super::TokenError;
use callgate::json::{self, Map, Value};

/// The claims of a token, before its signature is verified.
///
/// # Errors
/// The token is malformed, or its header or claims have a duplicate key at any depth: parsers could choose different values.
pub(super) fn claims(token: &str) -> Result<Map, TokenError> {
    let mut segments = token.split('.');
    let (Some(header), Some(claims), Some(_), None) =
        (segments.next(), segments.next(), segments.next(), segments.next())
    else {
        return Err(TokenError::new("the token is neither a configured token nor a JWT"));
    };
    decode_object("header", header)?;
    decode_object("claims", claims)
}

fn decode_object(part: &str, segment: &str) -> Result<Map, TokenError> {
    let bytes = BASE64URL_NOPAD.decode(segment.as_bytes()).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text =
        text.ok_or_else(|| TokenError::new(format!("the {part} of the token is not base64url of UTF-8")))?;
    match json::parse(&text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(TokenError::new(format!("the {part} of the token is not a JSON object"))),
        Err(error) => Err(TokenError::new(format!("the {part} of the token is invalid JSON: {error}"))),
    }
}

/// Checks `exp` and `nbf`, and returns the time since 1970 at which the token expires. `leeway`: the tolerated clock skew.
///
/// RFC 7519 section 2 defines both as NumericDate, a number of seconds that may have a fraction.
///
/// # Errors
/// The token has no `exp`, has a date that is not a number, has expired, or is not valid yet.
pub(super) fn check_dates(claims: &Map, leeway: Duration) -> Result<Duration, TokenError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let expires = date(claims, "exp")?.ok_or_else(|| TokenError::new("the token has no `exp`"))?;
    if now >= expires.saturating_add(leeway) {
        return Err(TokenError::new("the token has expired"));
    }
    let begins = date(claims, "nbf")?;
    if begins.is_some_and(|begins| begins > now.saturating_add(leeway)) {
        return Err(TokenError::new("the token is not valid yet (`nbf`)"));
    }
    Ok(expires)
}

fn date(claims: &Map, name: &str) -> Result<Option<Duration>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.is_number().then(|| value.as_f64()).flatten();
    let date = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    date.map(Some).ok_or_else(|| {
        TokenError::new(format!("the claim `{name}` of the token is not a date in seconds since 1970"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    fn token(header: &str, claims: &str) -> String {
        let encode = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
        format!("{}.{}.{}", encode(header), encode(claims), encode("signature"))
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth() {
        assert!(claims(&token(r#"{"alg":"ES256"}"#, r#"{"sub":"a","x":{"y":[{"z":1}]}}"#)).is_ok());
        for (header, body) in [
            (r#"{"alg":"ES256","alg":"none"}"#, r#"{"sub":"a"}"#),
            (r#"{"alg":"ES256","jwk":{"k":1,"k":2}}"#, r#"{"sub":"a"}"#),
            (r#"{"alg":"ES256"}"#, r#"{"sub":"a","sub":"b"}"#),
            (r#"{"alg":"ES256"}"#, r#"{"sub":"a","\u0073ub":"b"}"#),
            (r#"{"alg":"ES256"}"#, r#"{"sub":"a","realm":{"roles":[],"roles":["admin"]}}"#),
            (r#"{"alg":"ES256"}"#, r#"{"sub":"a","list":[{"a":{"b":1,"b":2}}]}"#),
            (r#"{"alg":"ES256"}"#, r#"["sub"]"#),
            (r#"{"alg":"ES256"}"#, r#"{"sub":"a"} {"sub":"b"}"#),
        ] {
            assert!(claims(&token(header, body)).is_err(), "{header} {body}");
        }
        for text in ["", "a", "a.b", "a.b.c", "a.b.c.d", "....", "e30.e30"] {
            assert!(claims(text).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_are_numbers_with_or_without_a_fraction() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let check = |claims: Value| {
            check_dates(claims.as_object().unwrap(), Duration::from_secs(30))
                .map(|expires| expires.as_secs_f64())
        };
        for (exp, nbf) in [(now + 60.5, now - 0.25), (now - 29.0, now + 29.0)] {
            let expires = check(json!({ "exp": exp, "nbf": nbf })).unwrap();
            assert!((expires - exp).abs() < 0.001, "{expires} {exp}");
        }
        assert!(check(json!({ "exp": now - 31.0 })).is_err());
        assert!(check(json!({ "exp": now + 60.0, "nbf": now + 31.5 })).is_err());
        for exp in [json!(null), json!("1999999999"), json!(-1), json!(true), json!([1_999_999_999])] {
            assert!(check(json!({ "exp": exp })).is_err(), "{exp}");
        }
        let infinite: Value = json::parse("1e400").unwrap();
        assert!(check(json!({ "exp": infinite })).is_err());
        assert!(check(json!({})).is_err());
    }
}
