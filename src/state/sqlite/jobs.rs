//! Jobs for the thread that owns the file, and the delivery of their results.

use tokio::sync::oneshot;

use rusqlite::Connection;

use super::Home;
use super::error::Failure;
use crate::host::StoreError;

/// The durability that a job needs before its result is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// The job only reads.
    ReadOnly,
    /// Its writes survive the end of the process, but may be lost in a power failure.
    Writing,
    /// Its writes are on the disk.
    Keeping,
}

/// A job.
pub trait Work: Send {
    fn needs(&self) -> Needs;

    /// Whether the caller has dropped the future, so that the job need not run.
    fn is_given_up(&self) -> bool;

    /// Runs the job in a transaction. Returns whether its writes are to be committed.
    fn run(&mut self, database: &Connection, home: &Home) -> bool;

    /// Delivers the result, once it is known whether the transaction was committed.
    fn answer(self: Box<Self>, kept: Result<(), StoreError>);
}

/// A job as a closure over the database, with a conversion of its result that runs after the commit.
pub struct Asked<T, U, Run, Kept> {
    pub needs: Needs,
    pub run: Option<Run>,
    pub done: Option<Result<T, Failure>>,
    pub kept: Kept,
    pub reply: oneshot::Sender<Result<U, StoreError>>,
}

impl<T, U, Run, Kept> Work for Asked<T, U, Run, Kept>
where
    T: Send,
    U: Send,
    Run: FnOnce(&Connection, &Home) -> Result<T, Failure> + Send,
    Kept: FnOnce(T) -> U + Send,
{
    fn needs(&self) -> Needs {
        self.needs
    }

    fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, database: &Connection, home: &Home) -> bool {
        self.done = self.run.take().map(|run| run(database, home));
        matches!(self.done, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, kept: Result<(), StoreError>) {
        let answer = match (self.done, kept) {
            // The job's own error is more specific than that of the transaction.
            (Some(Err(failure)), _) => Err(failure.to_store_error()),
            (_, Err(error)) => Err(error),
            (Some(Ok(done)), Ok(())) => Ok((self.kept)(done)),
            // The job was abandoned.
            (None, Ok(())) => return,
        };
        // A result without a receiver is dropped, which reverts it where necessary.
        let _ = self.reply.send(answer);
    }
}
