//! Text → [`Document`]: what a rules file says, with the place of every key and value.

mod document;

pub use document::{Entry, Node, NodeValue, Text, TextStyle};
