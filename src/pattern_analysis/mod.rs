//! What a regular expression can match, found from its syntax.

mod match_extent;
mod required_parts;

pub use match_extent::MatchExtent;
pub use required_parts::required_parts;
