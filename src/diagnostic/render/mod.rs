//! Renderers of diagnostics for people and programs.

mod github;
mod json;
mod sarif;
mod text;

pub use github::annotation;
pub use github::github;
pub use json::json;
pub use sarif::sarif;
pub use text::{summary, text};
