//! Trusted issuers of JSON Web Tokens (JWT): token → authenticated [`Caller`].

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::de::IgnoredAny;

use super::access::AccessRules;
use super::claims::ClaimMapping;
use super::remote_keys::RemoteKeys;
use super::verification_key::VerificationKey;
use super::{Caller, CallerToken, TokenError, jwt, signature_verification};
use callgate::json::{Map, Value};

/// A trusted issuer.
pub(super) struct Issuer {
    /// The `iss` claim of its tokens.
    pub(super) name: String,
    /// Its tokens' `aud` must contain one of these.
    pub(super) audience: Vec<String>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) keys: IssuerKeys,
    /// The tolerated clock skew.
    pub(super) leeway: Duration,
    pub(super) mapping: ClaimMapping,
    pub(super) access: AccessRules,
}

/// Where the keys of an issuer are.
pub(super) enum IssuerKeys {
    /// In the identity file, or a file that it names.
    Fixed(Vec<VerificationKey>),
    /// At a URL.
    Remote(Arc<RemoteKeys>),
}

impl IssuerKeys {
    fn with_keys<T>(&self, use_keys: impl FnOnce(&[VerificationKey]) -> T) -> T {
        match self {
            Self::Fixed(keys) => use_keys(keys),
            Self::Remote(remote) => remote.with_keys(use_keys),
        }
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

/// The keys that should be fetched again because of a rejected token: it names a key that its issuer may have published lately.
pub(super) fn keys_to_refresh(issuers: &[Issuer], token: &str) -> Option<Arc<RemoteKeys>> {
    // Nothing of the token is verified: it only decides whether to ask the issuer, which is limited.
    let (claims, header) = (jwt::claims(token).ok()?, decode_header(token).ok()?);
    issuers
        .iter()
        .filter(|issuer| issuer.may_have_new_key(&header, &claims))
        .find_map(|issuer| issuer.remote_keys().cloned())
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
        self.keys.with_keys(|keys| {
            let mut why = None;
            for key in keys.iter().filter(|key| key.may_have_signed(header)) {
                match decode::<IgnoredAny>(token, &key.key, &validation) {
                    Ok(_) => return Ok(()),
                    Err(error) => match error.kind() {
                        jsonwebtoken::errors::ErrorKind::InvalidSignature => {}
                        _ => why = Some(TokenError::new(format!("the token is invalid: {error}"))),
                    },
                }
            }
            Err(why)
        })?;
        let expires = jwt::check_dates(claims, self.leeway).map_err(Some)?;
        let mut context = self.mapping.map_claims(claims).map_err(Some)?;
        context.insert("issuer", self.name.as_str().into());
        let access = self.access.access(context.get("roles"));
        let mut caller = Caller::new(&self.name, context).with_access(access);
        caller.expires = Some(expires);
        caller.token = Some(Arc::new(CallerToken::new(token, claims, expires)));
        Ok(caller)
    }

    /// The keys at a URL, if this issuer has them there.
    pub(super) fn remote_keys(&self) -> Option<&Arc<RemoteKeys>> {
        match &self.keys {
            IssuerKeys::Fixed(_) => None,
            IssuerKeys::Remote(remote) => Some(remote),
        }
    }

    /// Whether a token names this issuer and a key that it may have published since its keys were fetched.
    fn may_have_new_key(&self, header: &Header, claims: &Map) -> bool {
        let names_it = claims.get("iss").and_then(Value::as_str) == Some(&self.name);
        let is_known = || self.keys.with_keys(|keys| keys.iter().any(|key| key.may_have_signed(header)));
        names_it && self.algorithms.contains(&header.alg) && !is_known()
    }
}
