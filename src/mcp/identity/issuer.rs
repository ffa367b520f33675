//! Those whose tokens (JWT) are believed.

use std::time::Duration;

use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::de::IgnoredAny;

use super::claims::Mapping;
use super::{Caller, signatures, token};
use crate::json::Map;

/// One whose tokens are believed.
pub(super) struct Issuer {
    /// What its tokens say in `iss`.
    pub(super) name: String,
    /// What its tokens are for: one of these stands in `aud`.
    pub(super) audience: Vec<String>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) keys: Vec<Key>,
    /// How far clocks may be apart.
    pub(super) leeway: Duration,
    pub(super) mapping: Mapping,
}

/// A key that tokens are signed with.
pub(super) struct Key {
    /// Its name, and the algorithm it is for, where they are said.
    id: Option<String>,
    algorithm: Option<String>,
    key: DecodingKey,
}

impl Key {
    pub(super) fn secret(secret: &[u8]) -> Self {
        Self { id: None, algorithm: None, key: DecodingKey::from_secret(secret) }
    }

    /// A public key, in PEM, for tokens of an algorithm.
    pub(super) fn of_pem(pem: &str, algorithm: Algorithm) -> Result<Self, String> {
        let pem = pem.as_bytes();
        let key = match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => DecodingKey::from_ec_pem(pem),
            Algorithm::EdDSA => DecodingKey::from_ed_pem(pem),
            _ => DecodingKey::from_rsa_pem(pem),
        };
        let key = key.map_err(|error| error.to_string())?;
        Ok(Self { id: None, algorithm: None, key })
    }

    /// The public keys of a JSON Web Key Set that tokens can be signed with. What is of no use here is passed over.
    pub(super) fn of_set(text: &str) -> Result<Vec<Self>, String> {
        let set: JwkSet = crate::json::from_str(text).map_err(|error| error.to_string())?;
        Ok(set.keys.iter().filter_map(Self::of_jwk).collect())
    }

    fn of_jwk(jwk: &Jwk) -> Option<Self> {
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

/// The caller that a token names, if one of the issuers has signed it.
///
/// # Errors
/// Why the token is refused.
pub(super) fn caller(issuers: &[Issuer], token: &str) -> Result<Caller, String> {
    signatures::install();
    // Read before any signature is checked, so that every reader of the token reads the same.
    let claims = token::claims(token)?;
    let header = decode_header(token).map_err(|_| "its token is none that was given out, and no JWT")?;
    if header.crit.is_some() {
        return Err("its token asks for more than is known here (`crit`)".to_owned());
    }
    let mut why = "nobody who is believed has signed its token".to_owned();
    for issuer in issuers {
        match issuer.caller(token, &header, &claims) {
            Ok(caller) => return Ok(caller),
            Err(Some(refused)) => why = refused,
            Err(None) => {}
        }
    }
    Err(why)
}

impl Issuer {
    /// # Errors
    /// Why a token that this issuer has signed is refused; `None` if it has not signed it.
    fn caller(&self, token: &str, header: &Header, claims: &Map) -> Result<Caller, Option<String>> {
        if !self.algorithms.contains(&header.alg) {
            return Err(None);
        }
        let mut validation = Validation::new(header.alg);
        // Dates are checked below: they may have a fraction, which jsonwebtoken does not read.
        validation.validate_exp = false;
        validation.set_issuer(&[&self.name]);
        validation.set_audience(&self.audience);
        validation.set_required_spec_claims(&["iss", "aud"]);
        let mut why = None;
        for key in self.keys.iter().filter(|key| key.may_have_signed(header)) {
            match decode::<IgnoredAny>(token, &key.key, &validation) {
                Ok(_) => {
                    let expires = token::check_dates(claims, self.leeway).map_err(Some)?;
                    let mut context = self.mapping.context(claims).map_err(Some)?;
                    context.insert("issuer".to_owned(), self.name.as_str().into());
                    let mut caller = Caller::new(&self.name, context);
                    caller.expires = Some(expires);
                    return Ok(caller);
                }
                Err(error) => match error.kind() {
                    jsonwebtoken::errors::ErrorKind::InvalidSignature => {}
                    _ => why = Some(format!("its token is not believed: {error}")),
                },
            }
        }
        Err(why)
    }
}
