//! An [`Explanation`](super::Explanation) as people and as programs read it.

mod page;
mod snippet;
mod text;

pub use text::{text, why_not};

use serde::Serialize;

/// An explanation, or why a policy did not act, as one JSON document, indented.
///
/// # Errors
/// None that is known of.
pub fn json(told: &impl Serialize) -> crate::json::Result<String> {
    crate::json::to_string_pretty(told)
}
