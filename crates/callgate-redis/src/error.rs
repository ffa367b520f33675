//! Errors of the Redis store: the errors of the driver and of the server → messages with a fix.
//!
//! Errors of an open store become denial reasons for agents, so they name neither the server nor its texts. Errors of opening the store
//! do.

use callgate::host::StoreError;
use redis::{ErrorKind, ServerErrorKind};

/// Why an operation failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RedisStoreError {
    /// An error of the driver or of the server.
    #[error("{}", server_message(.0))]
    Server(#[from] redis::RedisError),
    /// Fewer replicas than required have confirmed a write, which may be lost.
    #[error("too few replicas have confirmed a write; see `INFO replication`")]
    Replicas,
    /// No server accepts writes.
    #[error("no server accepts writes: a failover may be in progress")]
    NoPrimary,
    /// What is stored can't be read.
    #[error("{0}")]
    Damaged(String),
    /// TLS can't be set up.
    #[error("{0}")]
    Tls(String),
}

impl RedisStoreError {
    /// The error for users of an open store.
    pub(crate) fn to_store_error(&self) -> StoreError {
        StoreError::Unavailable(format!("the state store failed: {self}"))
    }

    /// The message for the operator while the store is opened.
    pub(crate) fn opening_message(&self) -> String {
        match self {
            Self::Server(error) => format!("{self}: {error}"),
            other => other.to_string(),
        }
    }

    /// Whether another connection may succeed: this one is lost, or leads to a server that does not accept writes.
    pub(crate) fn needs_reconnect(&self) -> bool {
        match self {
            Self::Server(error) => {
                error.is_unrecoverable_error()
                    || error.is_io_error()
                    || error.detail().is_some_and(|detail| detail.contains("READONLY "))
                    || matches!(
                        error.kind(),
                        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
                    )
            }
            Self::NoPrimary => true,
            Self::Replicas | Self::Damaged(_) | Self::Tls(_) => false,
        }
    }
}

/// Why a server can't be opened as a state store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedisOpenError(pub(crate) String);

/// The message for an error, without the texts of the server, which may contain data.
fn server_message(error: &redis::RedisError) -> String {
    let message = match error.kind() {
        ErrorKind::Server(ServerErrorKind::ReadOnly) => {
            "the server is a read-only replica: a failover is in progress, or connect to the primary"
        }
        ErrorKind::Server(ServerErrorKind::BusyLoading) => "the server is loading its data",
        ErrorKind::Server(ServerErrorKind::MasterDown) => "the server has lost its primary",
        ErrorKind::Server(
            ServerErrorKind::TryAgain | ServerErrorKind::ClusterDown | ServerErrorKind::CrossSlot,
        ) => "the cluster is being changed, or is not complete",
        ErrorKind::AuthenticationFailed => "the server rejected the user or the password",
        ErrorKind::Server(ServerErrorKind::NoPerm) => {
            "the user of the server lacks a permission; see the permissions in the guide"
        }
        ErrorKind::Server(_) | ErrorKind::Extension => return extension_message(error),
        _ if error.is_timeout() => "the server did not answer in time",
        _ if error.is_connection_dropped() => "the connection to the server was lost",
        _ if error.is_io_error() => "the server can't be reached",
        _ => "the server gave an unexpected answer",
    };
    message.to_owned()
}

/// The message for an error that only its code tells.
fn extension_message(error: &redis::RedisError) -> String {
    let detail = error.detail().unwrap_or_default();
    match error.code() {
        Some("OOM") => "the server has no memory left; raise `maxmemory`, or give it more".to_owned(),
        Some("MISCONF") => {
            "the server can't write its data to disk, and refuses writes; see its log".to_owned()
        }
        Some("NOREPLICAS") => "the server has too few replicas to accept writes".to_owned(),
        Some("NOAUTH" | "WRONGPASS") => "the server rejected the user or the password".to_owned(),
        Some("CALLGATE32BIT") => {
            "the server is a 32-bit program, whose scripts can't count what limits need; use a 64-bit one"
                .to_owned()
        }
        Some("BUSY") => "the server is busy with a script".to_owned(),
        _ if detail.contains("OOM ") => {
            "the server has no memory left; raise `maxmemory`, or give it more".to_owned()
        }
        _ if detail.contains("READONLY ") => "the server is a read-only replica".to_owned(),
        _ if detail.contains("DAMAGED ") => "a stored limit is damaged; restore a backup".to_owned(),
        Some(code) => format!("the server reports the error {code}; see its log"),
        None => "the server reports an error; see its log".to_owned(),
    }
}
