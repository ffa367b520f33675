//! Seals, ciphertexts and keyed digests for data that leaves Callgate and must be authentic when it comes back. From the keys of a server
//! (`CALLGATE_KEYS`, a key file) it derives subkeys for each [`Purpose`]. With the feature
//! `signatures`, Ed25519 keys ([`SigningKey`]). Uses chacha20poly1305, hkdf, hmac, getrandom and ring.

mod key;
mod keys;
mod purpose;
mod key_source;
#[cfg(feature = "signatures")]
mod signing_key;

pub use key_source::random_hex;
pub use key_source::{KEYS_VARIABLE, KeyError, SecretFileError};
pub use key_source::{decode_hex, encode_hex, read_or_create_secret};
pub use keys::{EncryptError, Keys, SealError};
pub use purpose::Purpose;
#[cfg(feature = "signatures")]
pub use signing_key::{InvalidPublicKey, PublicKey, SigningKey, SigningKeyError};
