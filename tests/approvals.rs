//! Calls that wait for people, over histories: what each answer, and each way of tampering, comes to.

mod resuming;
mod scene;
