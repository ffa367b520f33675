//! Diagnostics as people and programs read them.

mod json;
mod text;

pub use json::json;
pub use text::{summary, text};
