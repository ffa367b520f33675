//! Calls that wait for people, over histories: what each answer, and each way of tampering, comes to.

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
