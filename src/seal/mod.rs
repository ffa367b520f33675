//! Seals, ciphertexts and keyed digests: what Callgate gives to others and must recognise when it comes back. Takes the keys of a server
//! (`CALLGATE_KEYS`, a key file), and derives a subkey for each [`Purpose`]. Names chacha20poly1305, hkdf, hmac and getrandom.

mod key;
mod keys;
mod purpose;
mod source;

pub use keys::{EncryptError, Keys, SealError};
pub use purpose::Purpose;
pub(crate) use source::random_hex;
pub use source::{KEYS_VARIABLE, KeyError, SecretFileError};
#[cfg(feature = "mcp")]
pub(crate) use source::{bytes_of_hex, hex, secret_from_file_or_new};
