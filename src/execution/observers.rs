//! The observers of an engine: isolates them from each other and from calls, and stamps events with the engine's time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::Timestamp;

use crate::host::{Clock, EngineEvent, EngineEventKind, Observer, ObserverError, catch_panic};

/// The observers of an engine, in the order in which they were added.
#[derive(Clone)]
pub(crate) struct Observers {
    all: Arc<[Box<dyn Observer>]>,
    clock: Arc<dyn Clock>,
}

impl Observers {
    pub(crate) fn new(all: Vec<Box<dyn Observer>>, clock: Arc<dyn Clock>) -> Self {
        Self { all: all.into(), clock }
    }

    /// Whether nobody receives events, so that none need be made.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Notifies every observer of an event that belongs to no run. One that panics changes nothing.
    pub(crate) fn notify(&self, revision: &str, kind: EngineEventKind<'_>) {
        self.notify_all(&EngineEvent { time: self.now(), revision, run: None, call: None, kind });
    }

    /// Notifies every observer of an event.
    pub(crate) fn notify_all(&self, event: &EngineEvent<'_>) {
        for observer in self.all.iter() {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.on_event(event)));
        }
    }

    /// Waits until the observers on which calls depend have recorded every event so far.
    ///
    /// # Errors
    /// The first of them that cannot. One that panics cannot.
    pub(crate) async fn flush(&self) -> Result<(), ObserverError> {
        for observer in self.all.iter() {
            flush(&**observer).await?;
        }
        Ok(())
    }

    /// Waits until the observers have recorded the outcomes of calls so far. An outcome that one of them cannot record stays as it is.
    pub(crate) async fn record_outcomes(&self) {
        for observer in self.all.iter() {
            let _ = flush(&**observer).await;
        }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The engine's time; the system's if the host's clock panics.
    pub(crate) fn now(&self) -> Timestamp {
        catch_unwind(AssertUnwindSafe(|| self.clock.now())).unwrap_or_else(|_| Timestamp::now())
    }
}

async fn flush(observer: &dyn Observer) -> Result<(), ObserverError> {
    let flushed = async {
        match observer.flush() {
            Some(flushed) => flushed.await,
            None => Ok(()),
        }
    };
    catch_panic(flushed).await.unwrap_or_else(|_| Err(ObserverError("it panicked".to_owned())))
}
