//! Verification of JWT signatures with `ring`, the cryptography library that TLS uses, too. Signing is not supported.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::{hmac as keyed, signature as ring_signature};
use signature::Verifier;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(unsupported()),
    verifier_factory: |algorithm, key| {
        if algorithm.family() != key.family() {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
        Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }))
    },
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(unsupported()),
        rsa_pub_components_from_public_key: |_| Err(unsupported()),
        ec_pub_components_from_private_key: |_, _| Err(unsupported()),
        ed_pub_components_from_private_key: |_, _| Err(unsupported()),
        compute_digest: |_, _| Err(unsupported()),
    },
};

fn unsupported() -> Error {
    ErrorKind::UnsupportedAlgorithm.into()
}

/// Installs it as the provider of `jsonwebtoken`, unless the program has installed another one.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = PROVIDER.install_default();
    });
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let wrong = |_| signature::Error::new();
        match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let algorithm = rsa_parameters(self.algorithm).ok_or_else(signature::Error::new)?;
                let key = ring_signature::RsaPublicKeyComponents { n, e };
                key.verify(algorithm, message, signature).map_err(wrong)
            }
            DecodingKeyKind::SecretOrDer(key) => {
                if let Some(algorithm) = hmac_algorithm(self.algorithm) {
                    return keyed::verify(&keyed::Key::new(algorithm, key), message, signature)
                        .map_err(wrong);
                }
                let algorithm: &dyn ring_signature::VerificationAlgorithm = match self.algorithm {
                    Algorithm::ES256 => &ring_signature::ECDSA_P256_SHA256_FIXED,
                    Algorithm::ES384 => &ring_signature::ECDSA_P384_SHA384_FIXED,
                    Algorithm::EdDSA => &ring_signature::ED25519,
                    other => rsa_parameters(other).ok_or_else(signature::Error::new)?,
                };
                ring_signature::UnparsedPublicKey::new(algorithm, key)
                    .verify(message, signature)
                    .map_err(wrong)
            }
        }
    }
}

fn hmac_algorithm(algorithm: Algorithm) -> Option<keyed::Algorithm> {
    Some(match algorithm {
        Algorithm::HS256 => keyed::HMAC_SHA256,
        Algorithm::HS384 => keyed::HMAC_SHA384,
        Algorithm::HS512 => keyed::HMAC_SHA512,
        _ => return None,
    })
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static ring_signature::RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &ring_signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &ring_signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &ring_signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &ring_signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &ring_signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &ring_signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
