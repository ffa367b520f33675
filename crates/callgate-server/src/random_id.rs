//! Random names that nobody can guess.

use data_encoding::BASE64URL_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};

use crate::problem::Problem;

/// The number of random bytes of a name.
const LENGTH: usize = 18;

/// A name with a prefix that says what it names.
///
/// # Errors
/// The system provides no random bytes.
pub(crate) fn new(prefix: &str) -> Result<String, Problem> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Problem::unavailable("no_randomness", "the system provides no random bytes"))?;
    Ok(format!("{prefix}{}", BASE64URL_NOPAD.encode(&bytes)))
}
