//! Announcements of a store: what processes that share it tell each other, so that nobody has to read it again and again.

use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

/// Announcements that wait for a slow listener.
const MAX_BACKLOG: usize = 256;

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Announcement {
    /// An approval request was made or answered: the key of its record in [`space::CALLS`](super::space::CALLS).
    Approval(Arc<str>),
    /// Announcements were lost: the connection broke, or the listener was too slow.
    Missed,
}

/// Passes the announcements that a store hears on to its listeners.
///
/// ```
/// use callgate::host::{Announcement, Announcer};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let announcer = Announcer::default();
/// let mut announcements = announcer.subscribe();
/// announcer.announce(Announcement::Missed);
/// assert_eq!(announcements.next().await, Announcement::Missed);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Announcer(Sender<Announcement>);

impl Default for Announcer {
    fn default() -> Self {
        Self(channel(MAX_BACKLOG).0)
    }
}

impl Announcer {
    /// Tells all listeners.
    pub fn announce(&self, announcement: Announcement) {
        // Nobody may be listening.
        let _ = self.0.send(announcement);
    }

    /// The announcements from now on.
    pub fn subscribe(&self) -> Announcements {
        Announcements(Some(self.0.subscribe()))
    }
}

/// The announcements of a store, of all processes that share it.
#[derive(Debug, Default)]
pub struct Announcements(Option<Receiver<Announcement>>);

impl Announcements {
    /// Those of a store that hears nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// The next announcement. Never resolves if the store hears nothing, or is closed.
    pub async fn next(&mut self) -> Announcement {
        let received = match &mut self.0 {
            Some(receiver) => receiver.recv().await,
            None => Err(RecvError::Closed),
        };
        match received {
            Ok(announcement) => announcement,
            Err(RecvError::Lagged(_)) => Announcement::Missed,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
