//! Approvals over message histories: the outcome of every kind of response and of every kind of tampering.

mod altered_state;
mod answers;
mod approvers;
mod asking;
mod changes;
mod context;
mod cuts;
mod edits;
mod expiry;
mod forgery;
mod hooks;
mod identity;
mod interleavings;
mod mutations;
mod once;
mod principals;
mod recalled;
mod remembering;
mod required;
mod resuming;
pub(crate) mod scene;
mod scripts;
mod sessions;
