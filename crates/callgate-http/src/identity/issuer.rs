//! Trusted issuers of JSON Web Tokens (JWT): token → authenticated [`Caller`].

use std::time::Duration;

use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::de::IgnoredAny;

use super::access::AccessRules;
use super::claims::ClaimMapping;
use super::{Caller, TokenError, jwt, signature_verification};
use callgate::json::Map;

/// A trusted issuer.
pub(super) struct Issuer {
    /// The `iss` claim of its tokens.
    pub(super) name: String,
    /// Its tokens' `aud` must contain one of these.
    pub(super) audience: Vec<String>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) keys: Vec<VerificationKey>,
    /// The tolerated clock skew.
    pub(super) leeway: Duration,
    pub(super) mapping: ClaimMapping,
    pub(super) access: AccessRules,
}

/// A key that verifies tokens.
pub(super) struct VerificationKey {
    /// Its id and algorithm, if given.
    id: Option<String>,
    algorithm: Option<String>,
    key: DecodingKey,
}

impl VerificationKey {
    pub(super) fn from_secret(secret: &[u8]) -> Self {
        Self { id: None, algorithm: None, key: DecodingKey::from_secret(secret) }
    }

    /// Reads a public key in PEM, for an algorithm.
    pub(super) fn from_pem(pem: &str, algorithm: Algorithm) -> Result<Self, String> {
        let pem = pem.as_bytes();
        let key = match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => DecodingKey::from_ec_pem(pem),
            Algorithm::EdDSA => DecodingKey::from_ed_pem(pem),
            _ => DecodingKey::from_rsa_pem(pem),
        };
        let key = key.map_err(|error| error.to_string())?;
        Ok(Self { id: None, algorithm: None, key })
    }

    /// Reads the public signature keys of a JSON Web Key Set. Skips all other keys.
    pub(super) fn from_jwks(text: &str) -> Result<Vec<Self>, String> {
        let set: JwkSet = callgate::json::from_str(text).map_err(|error| error.to_string())?;
        Ok(set.keys.iter().filter_map(Self::from_jwk).collect())
    }

    fn from_jwk(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let key = DecodingKey::from_jwk(jwk).ok().filter(|_| signs)?;
        let algorithm = common.key_algorithm.map(|algorithm| algorithm.to_string());
        Some(Self { id: common.key_id.clone(), algorithm, key })
    }

    fn may_have_signed(&self, header: &Header) -> bool {
        let is_named = match (&self.id, &header.kid) {
            (Some(id), Some(named)) => id == named,
            _ => true,
        };
        let is_for_it =
            self.algorithm.as_ref().is_none_or(|algorithm| *algorithm == format!("{:?}", header.alg));
        is_named && is_for_it && self.key.family() == header.alg.family()
    }
}

/// Authenticates the caller of a token that one of the issuers has signed.
///
/// # Errors
/// The reason why the token is rejected.
pub(super) fn authenticate(issuers: &[Issuer], token: &str) -> Result<Caller, TokenError> {
    signature_verification::install();
    // Parsed strictly before any signature is verified, so that all parsers of the token agree on its content.
    let claims = jwt::claims(token)?;
    let header = decode_header(token)
        .map_err(|_| TokenError::new("the token is neither a configured token nor a JWT"))?;
    if header.crit.is_some() {
        return Err(TokenError::new("the token requires unsupported extensions (`crit`)"));
    }
    let mut error = TokenError::new("the token is not signed by a trusted issuer");
    for issuer in issuers {
        match issuer.authenticate(token, &header, &claims) {
            Ok(caller) => return Ok(caller),
            Err(Some(rejected)) => error = rejected,
            Err(None) => {}
        }
    }
    Err(error)
}

impl Issuer {
    /// Authenticates the caller of a token.
    ///
    /// # Errors
    /// The reason why a token of this issuer is rejected; `None` if the issuer has not signed it.
    fn authenticate(&self, token: &str, header: &Header, claims: &Map) -> Result<Caller, Option<TokenError>> {
        if !self.algorithms.contains(&header.alg) {
            return Err(None);
        }
        let mut validation = Validation::new(header.alg);
        // Dates are checked below: they may have a fraction, which jsonwebtoken does not support.
        validation.validate_exp = false;
        validation.set_issuer(&[&self.name]);
        validation.set_audience(&self.audience);
        validation.set_required_spec_claims(&["iss", "aud"]);
        let mut why = None;
        for key in self.keys.iter().filter(|key| key.may_have_signed(header)) {
            match decode::<IgnoredAny>(token, &key.key, &validation) {
                Ok(_) => {
                    let expires = jwt::check_dates(claims, self.leeway).map_err(Some)?;
                    let mut context = self.mapping.map_claims(claims).map_err(Some)?;
                    context.insert("issuer".to_owned(), self.name.as_str().into());
                    let access = self.access.access(context.get("roles"));
                    let mut caller = Caller::new(&self.name, context).with_access(access);
                    caller.expires = Some(expires);
                    return Ok(caller);
                }
                Err(error) => match error.kind() {
                    jsonwebtoken::errors::ErrorKind::InvalidSignature => {}
                    _ => why = Some(TokenError::new(format!("the token is invalid: {error}"))),
                },
            }
        }
        Err(why)
    }
}
