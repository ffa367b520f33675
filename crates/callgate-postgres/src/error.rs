//! Errors of the PostgreSQL store: the errors of the driver and of the server → messages with a fix.
//!
//! Errors of an open store become denial reasons for agents, so they name neither the server nor its texts. Errors of opening the store
//! do.

use std::io;

use callgate::host::StoreError;
use callgate::state::limit_table::batch::DamagedLimit;
use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

const READ_ONLY: &str =
    "the database is read-only: it is a replica, or a failover is in progress; connect to the primary";

/// Why a job failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostgresError {
    /// An error of the driver or of the server.
    #[error("{}", database_message(.0))]
    Database(#[from] tokio_postgres::Error),
    /// There is no connection.
    #[error("{}", pool_message(.0))]
    Pool(#[from] PoolError),
    /// The database did not answer in time.
    #[error("the database did not answer in time")]
    Timeout,
    /// A stored limit can't be read.
    #[error(transparent)]
    Limit(#[from] DamagedLimit),
    /// What is stored can't be read.
    #[error("{0}")]
    Damaged(String),
}

impl PostgresError {
    /// The error for users of an open store.
    pub(crate) fn to_store_error(&self) -> StoreError {
        StoreError::Unavailable(format!("the state store failed: {self}"))
    }

    /// Whether it is unknown if the operation was done.
    pub(crate) fn is_reply_lost(&self) -> bool {
        match self {
            Self::Timeout => true,
            Self::Database(error) => error.code().is_none(),
            Self::Pool(_) | Self::Limit(_) | Self::Damaged(_) => false,
        }
    }

    /// Whether another connection may succeed: this one is lost or does not answer, or leads to a server that does not accept writes.
    pub(crate) fn needs_reconnect(&self) -> bool {
        match self {
            Self::Timeout => true,
            Self::Database(error) => {
                error.is_closed() || error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
            }
            Self::Pool(_) | Self::Limit(_) | Self::Damaged(_) => false,
        }
    }
}

/// Why a database can't be opened as a state store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PostgresOpenError(pub(crate) String);

fn pool_message(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => database_message(error),
        PoolError::Timeout(_) => "no connection to the database was free or could be made in time".to_owned(),
        _ => "the connections to the database are closed".to_owned(),
    }
}

fn io_error_kind(error: &tokio_postgres::Error) -> Option<io::ErrorKind> {
    let cause = std::error::Error::source(error)?.downcast_ref::<io::Error>()?;
    Some(cause.kind())
}

/// The message for an error, without the texts of the server, which may contain data.
fn database_message(error: &tokio_postgres::Error) -> String {
    let Some(code) = error.code() else {
        return match error.is_closed() {
            true => "the connection to the database was lost".to_owned(),
            // So the driver reports a server that does not accept writes.
            false if io_error_kind(error) == Some(io::ErrorKind::PermissionDenied) => READ_ONLY.to_owned(),
            false => "the database can't be reached".to_owned(),
        };
    };
    match *code {
        SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => {
            "the database did not answer in time; see what blocks it in `pg_stat_activity`".to_owned()
        }
        SqlState::READ_ONLY_SQL_TRANSACTION => READ_ONLY.to_owned(),
        SqlState::DISK_FULL => "the database has no disk space left; free some space".to_owned(),
        SqlState::OUT_OF_MEMORY | SqlState::INSUFFICIENT_RESOURCES => {
            "the database has no memory left; give it more".to_owned()
        }
        SqlState::TOO_MANY_CONNECTIONS => {
            "the database accepts no more connections; raise `max_connections`".to_owned()
        }
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN | SqlState::CANNOT_CONNECT_NOW => {
            "the database is shutting down or starting".to_owned()
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "the database user lacks a privilege; it must own the schema of the store".to_owned()
        }
        SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_FUNCTION | SqlState::INVALID_SCHEMA_NAME => {
            "the tables of the store are missing; restore a backup of the database".to_owned()
        }
        // Raised by `write_limits`.
        ref code if code.code() == "CG001" => {
            "this process could not renew its slots in time; it gets new ones within seconds".to_owned()
        }
        _ => format!("the database reports error {}; see its log", code.code()),
    }
}

/// The message for an error while the store is opened, for the operator.
pub(crate) fn opening_message(error: &PostgresError) -> String {
    let cause = match error {
        PostgresError::Database(error) | PostgresError::Pool(PoolError::Backend(error)) => {
            std::iter::successors(std::error::Error::source(error), |cause| cause.source())
                .map(|cause| format!(": {cause}"))
                .collect()
        }
        PostgresError::Pool(_)
        | PostgresError::Timeout
        | PostgresError::Limit(_)
        | PostgresError::Damaged(_) => String::new(),
    };
    format!("{error}{cause}")
}
