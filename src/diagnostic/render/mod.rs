//! Renderers of diagnostics for people and programs.

mod github;
mod json;
mod sarif;
mod summary;
mod hidden_characters;
#[cfg(feature = "snippets")]
mod text;
#[cfg(not(feature = "snippets"))]
#[path = "text_without_snippets.rs"]
mod text;

pub use github::annotation;
pub use github::github;
pub use json::json;
pub use sarif::sarif;
pub use summary::summary;
pub use text::text;
