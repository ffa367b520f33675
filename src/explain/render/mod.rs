//! Renders an [`Explanation`](super::Explanation) as text and as JSON.

mod terminal_writer;
mod snippet;
mod text;

pub use text::{text, why_not};

use serde::Serialize;

/// Renders an explanation, or why a policy had no effect, as one indented JSON document.
///
/// # Errors
/// Returns an error if serialization fails, for which no cause is known.
pub fn json(value: &impl Serialize) -> crate::json::Result<String> {
    crate::json::to_string_pretty(value)
}
