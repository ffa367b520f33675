//! Why an event of an agent can't be used.

/// Why an event can't be used. The agent must not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The event is not an object.
    #[error("the event must be a JSON object")]
    NotAnObject,
    /// A member is missing or has another type.
    #[error("`{0}` of the event must be {1}")]
    Member(String, &'static str),
    /// An event of another name.
    #[error("the event `{0}` is unknown")]
    UnknownEvent(String),
    /// Two members name the same thing.
    #[error(
        "`{0}` and `{1}` of the tool's input name the same thing, so it is unknown which one the tool reads"
    )]
    Ambiguous(String, String),
    /// A patch that can't be read.
    #[error("the patch can't be read: {0}")]
    Patch(&'static str),
}
