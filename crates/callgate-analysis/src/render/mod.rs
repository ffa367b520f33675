//! Renders a comparison, or a backtest: as text for terminals, as JSON for programs, and as Markdown for a comment on a pull request.

mod backtest;
mod github;
mod json;
mod phrases;
mod text;

#[doc(hidden)]
pub use backtest::{backtest_json, backtest_text};
pub use github::github;
pub use json::json;
pub use text::{summary, text};
