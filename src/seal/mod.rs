//! Seals: what Callgate hands out and must recognise when it comes back, through hands that could have changed it. Names
//! hmac and getrandom.

mod keys;
mod source;

pub use keys::{Keys, Purpose, SealError};
pub use source::{KEYS_VARIABLE, KeyError, SecretFileError};
#[cfg(feature = "mcp")]
pub(crate) use source::{bytes_of_hex, hex, secret_from_file_or_new};
