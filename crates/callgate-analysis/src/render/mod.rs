//! Renders a comparison, a backtest or a draft: as text for terminals, as JSON for programs, and as Markdown for a comment on a pull request.

mod backtest;
mod github;
mod json;
mod phrases;
mod suggest;
mod suggest_json;
mod text;

#[doc(hidden)]
pub use backtest::{backtest_json, backtest_text};
pub use github::github;
pub use json::json;
#[doc(hidden)]
pub use suggest::DraftReport;
pub use text::{summary, text};
