//! Jobs for the thread that owns the file, and the delivery of their results.

use tokio::sync::oneshot;

use rusqlite::Connection;

use super::DatabaseFile;
use super::error::SqliteStoreError;
use callgate::host::StoreError;

/// The durability that a job needs before its result is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The job only reads.
    ReadOnly,
    /// Its writes survive the end of the process, but may be lost in a power failure.
    ProcessCrash,
    /// Its writes are on the disk.
    PowerFailure,
}

/// A job.
pub trait Job: Send {
    fn durability(&self) -> Durability;

    /// Whether the caller has dropped the future, so that the job need not run.
    fn is_abandoned(&self) -> bool;

    /// Runs the job in a transaction. Returns whether its writes are to be committed.
    fn run(&mut self, database: &Connection, home: &DatabaseFile) -> bool;

    /// Delivers the result, once it is known whether the transaction was committed.
    fn complete(self: Box<Self>, transaction_result: Result<(), StoreError>);
}

/// A job as a closure over the database, with a conversion of its result that runs after the commit.
pub struct ClosureJob<T, U, Run, Kept> {
    pub durability: Durability,
    pub run: Option<Run>,
    pub result: Option<Result<T, SqliteStoreError>>,
    pub convert: Kept,
    pub reply: oneshot::Sender<Result<U, StoreError>>,
}

impl<T, U, Run, Kept> Job for ClosureJob<T, U, Run, Kept>
where
    T: Send,
    U: Send,
    Run: FnOnce(&Connection, &DatabaseFile) -> Result<T, SqliteStoreError> + Send,
    Kept: FnOnce(T) -> U + Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, database: &Connection, home: &DatabaseFile) -> bool {
        self.result = self.run.take().map(|run| run(database, home));
        matches!(self.result, Some(Ok(_)))
    }

    fn complete(self: Box<Self>, transaction_result: Result<(), StoreError>) {
        let answer = match (self.result, transaction_result) {
            // The job's own error is more specific than that of the transaction.
            (Some(Err(failure)), _) => Err(failure.to_store_error()),
            (_, Err(error)) => Err(error),
            (Some(Ok(done)), Ok(())) => Ok((self.convert)(done)),
            // The job was abandoned.
            (None, Ok(())) => return,
        };
        // A result without a receiver is dropped, which reverts it where necessary.
        let _ = self.reply.send(answer);
    }
}
