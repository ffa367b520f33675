//! What a key is used for: each purpose has subkeys of its own.

/// What a seal, a ciphertext or a keyed digest is for. One made for one purpose is invalid for every other: each has subkeys of
/// its own, and its name is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A question to a person: the token of an approval request.
    Approval,
    /// A person's answer.
    Answer,
    /// What a session has seen, as it travels in a history.
    Session,
    /// A store, as belonging to the holders of the keys.
    Store,
    /// A record of a store.
    Record,
    /// The arguments of a call, where a digest stands for them.
    Arguments,
    /// A value that `redact … with: hash` replaces.
    Redaction,
    /// The key of a limit.
    Limit,
    /// The key of a cached result.
    Cache,
}

impl Purpose {
    /// All of them, each at the index that [`Purpose::index`] returns.
    pub(super) const ALL: [Self; 9] = [
        Self::Approval,
        Self::Answer,
        Self::Session,
        Self::Store,
        Self::Record,
        Self::Arguments,
        Self::Redaction,
        Self::Limit,
        Self::Cache,
    ];

    /// The name that subkeys are derived from. It never changes: what was sealed under it could not be opened any more.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Answer => "answer",
            Self::Session => "session",
            Self::Store => "store",
            Self::Record => "record",
            Self::Arguments => "arguments",
            Self::Redaction => "redaction",
            Self::Limit => "limit",
            Self::Cache => "cache",
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}
