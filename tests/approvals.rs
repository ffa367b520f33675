//! Calls that wait for people, over histories: what each answer, and each way of tampering, comes to.

mod answers;
mod asking;
mod approvers;
mod changes;
mod edits;
mod expiry;
mod identity;
mod once;
mod remembering;
mod resuming;
mod scene;
mod scripts;
