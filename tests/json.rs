//! The JSON value type: what its reader accepts, that nothing is lost in it, and what Callgate does to the embedder's `serde_json`.

mod conformance;
mod dependencies;
mod differential;
pub mod drawn;
mod serde_types;
