//! Calls that wait for people, over histories: what each answer, and each way of tampering, comes to.

mod answers;
mod changes;
mod edits;
mod expiry;
mod resuming;
mod scene;
