//! Pieces of work for the thread that owns the file, and the way of their answers back.

use tokio::sync::oneshot;

use rusqlite::Connection;

use super::Home;
use super::failure::Failure;
use crate::host::StoreError;

/// What must hold of the disk when a piece of work is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// It only reads.
    Reading,
    /// What it writes may be lost when the machine goes down, not when the process does.
    Writing,
    /// What it writes lies on the disk.
    Keeping,
}

/// A piece of work.
pub trait Work: Send {
    fn needs(&self) -> Needs;

    /// Whether nobody waits for it any more, and it need not be done.
    fn is_given_up(&self) -> bool;

    /// Does it, in a transaction; says whether what it wrote is to stay.
    fn run(&mut self, database: &Connection, home: &Home) -> bool;

    /// Answers, now that it is known whether what was written is kept.
    fn answer(self: Box<Self>, kept: Result<(), StoreError>);
}

/// Work that is told as a function of the database; what it comes to is made an answer once it is kept.
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
            // An error of its own says more than that the others failed too.
            (Some(Err(failure)), _) => Err(failure.in_use()),
            (_, Err(error)) => Err(error),
            (Some(Ok(done)), Ok(())) => Ok((self.kept)(done)),
            // It was given up.
            (None, Ok(())) => return,
        };
        // An answer that nobody takes is dropped, and undoes what it must.
        let _ = self.reply.send(answer);
    }
}
