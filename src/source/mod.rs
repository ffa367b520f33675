//! Text → [`Document`]: what a rules file says, with the place of every key and value.

mod aliases;
mod document;
mod parse;
mod place;
mod scalar;
mod syntax;

pub use document::{Entry, Node, NodeValue, Text, TextStyle};
pub use parse::{MAX_NESTING, MAX_NODES, parse};
pub use place::place_in;
