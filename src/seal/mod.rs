//! Seals, ciphertexts and keyed digests for data that leaves Callgate and must be authentic when it comes back. From the keys of a server
//! (`CALLGATE_KEYS`, a key file) it derives subkeys for each [`Purpose`]. Uses chacha20poly1305, hkdf, hmac and getrandom.

mod key;
mod keys;
mod purpose;
mod key_source;

pub use key_source::random_hex;
pub use key_source::{KEYS_VARIABLE, KeyError, SecretFileError};
pub use key_source::{decode_hex, encode_hex, read_or_create_secret};
pub use keys::{EncryptError, Keys, SealError};
pub use purpose::Purpose;
