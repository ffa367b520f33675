//! Renders a comparison: as text for terminals, as JSON for programs, and as Markdown for a comment on a pull request.

mod github;
mod json;
mod phrases;
mod text;

pub use github::github;
pub use json::json;
pub use text::{summary, text};
