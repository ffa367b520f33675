//! A [`Report`](super::Report) as people and as programs read it.

mod diff;
mod github;
mod json;
mod junit;
mod text;

pub use github::github;
pub use json::json;
pub use junit::junit;
pub use text::{summary, text};
