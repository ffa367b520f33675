//! A key that verifies the signatures of tokens, read from PEM, a JSON Web Key Set or a shared secret.

use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};

/// A key that verifies tokens.
pub(super) struct VerificationKey {
    /// Its id and algorithm, if given.
    id: Option<String>,
    algorithm: Option<String>,
    pub(super) key: DecodingKey,
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

    pub(super) fn may_have_signed(&self, header: &Header) -> bool {
        let is_named = match (&self.id, &header.kid) {
            (Some(id), Some(named)) => id == named,
            _ => true,
        };
        let is_for_it =
            self.algorithm.as_ref().is_none_or(|algorithm| *algorithm == format!("{:?}", header.alg));
        is_named && is_for_it && self.key.family() == header.alg.family()
    }
}
