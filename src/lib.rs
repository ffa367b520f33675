//! Callgate: a declarative policy engine between AI agents and their tools.

// The modules stand in the order in which a policy and then a call meet them. A module uses only modules listed
// above it; tests/layering.rs keeps that law.
pub mod diagnostic;
pub mod json;
pub mod call;
pub mod source;
pub mod detect;
