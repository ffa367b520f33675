//! Rhai, and the only room that names it: expressions over one call (`expr:`), in a sandbox that neither loops, nor
//! reaches outside, nor takes two values of different types for merely unequal.

mod value;
mod convert;
mod arithmetic;
mod functions;
mod engine;
mod reads;
mod syntax;
mod check;
mod predicate;

pub use functions::{FUNCTIONS, Function};
pub use predicate::{Predicate, PredicateError, ScriptError};
