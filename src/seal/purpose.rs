//! Purposes of keys: domain separation by a set of subkeys for each.

/// The purpose of a seal, a ciphertext or a keyed digest. One made for one purpose is invalid for every other: each has subkeys of
/// its own, and its name is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The token of an approval request.
    Approval,
    /// An answer to an approval request.
    Answer,
    /// Session state in a history.
    Session,
    /// Proof that a store belongs to the holders of the keys.
    Store,
    /// A record of a store.
    Record,
    /// The arguments of a call, represented by a digest.
    Arguments,
    /// A value that `redact … with: hash` replaces.
    Redaction,
    /// The key of a limit.
    Limit,
    /// The key of a cached result.
    Cache,
    /// What the user asked for, from the host to a gateway.
    Task,
    /// A value that a log represents by a digest.
    Log,
    /// The link of a message, by which an approval request is answered.
    Link,
}

impl Purpose {
    /// All purposes, each at the index that [`Purpose::index`] returns.
    pub(super) const ALL: [Self; 12] = [
        Self::Approval,
        Self::Answer,
        Self::Session,
        Self::Store,
        Self::Record,
        Self::Arguments,
        Self::Redaction,
        Self::Limit,
        Self::Cache,
        Self::Task,
        Self::Log,
        Self::Link,
    ];

    /// The name that subkeys are derived from. It never changes: existing seals and ciphertexts would become invalid.
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
            Self::Task => "task",
            Self::Log => "log",
            Self::Link => "link",
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}
