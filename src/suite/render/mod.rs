//! A [`Report`](super::Report) as people and as programs read it.

mod json;
mod text;

pub use json::json;
pub(super) use text::visible;
pub use text::{summary, text};
