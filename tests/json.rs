//! The JSON value type: accepted syntax, lossless values, and no effect on the embedder's `serde_json`.

mod conformance;
mod dependencies;
mod differential;
pub mod generated;
mod serde_types;
