//! The body of a response, up to a number of bytes.

use callgate_http::error_chain;
use reqwest::Response;

use super::SourceError;

/// Reads a body; a longer one is an error as soon as it is longer.
pub(super) async fn read_body(mut response: Response, max_bytes: usize) -> Result<Vec<u8>, SourceError> {
    let too_large = || SourceError(format!("it is larger than {max_bytes} bytes"));
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| SourceError(error_chain(error)))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > max_bytes {
            return Err(too_large());
        }
    }
    Ok(bytes)
}
