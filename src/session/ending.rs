//! The one way in which a run ends, and what is done and kept then.

use super::Session;
use crate::host::guarded;
use crate::lifecycle::{Deferred, Ending, RunStats};

/// Work that hooks have put off until after the run.
#[must_use = "what hooks have put off is done by `finish`"]
pub struct Afterwork(Vec<Deferred>);

impl std::fmt::Debug for Afterwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Afterwork").field(&self.0.len()).finish()
    }
}

impl Afterwork {
    /// Does all of it, one after the other, and says what went wrong. The run has ended, so that fails nothing. May be spawned.
    pub async fn finish(self) -> Vec<String> {
        let mut wrong = Vec::new();
        for work in self.0 {
            match guarded(work).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => wrong.push(error),
                Err(_) => wrong.push("work that was put off panicked".to_owned()),
            }
        }
        wrong
    }
}

impl Session {
    /// Ends the run, also one that stops because calls of it wait for people: that has finished, and the next one goes on with its counts.
    /// Only the first ending counts, and tells hooks. One that fails while it is told hides nothing. A run that was aborted
    /// ends so, whatever else the host took it for.
    pub async fn end(&mut self, ending: &Ending) -> Afterwork {
        // The run is over whatever budgets say.
        let _ = self.pay(None).await;
        match self.run.aborted() {
            Some(reason) => self.ended(&Ending::Aborted { reason }),
            None => self.ended(ending),
        }
        Afterwork(self.run.take_deferred())
    }

    fn ended(&mut self, ending: &Ending) {
        let Some(started) = self.progress.started else { return };
        if !std::mem::replace(&mut self.progress.ended, true) {
            self.progress.stats.duration = started.elapsed();
            let stats = self.progress.stats.clone();
            self.each_hook(|hook, run| hook.on_end(run, ending, &stats));
        }
    }

    /// The session is over: no further run of it begins. One that goes on is aborted.
    pub fn close(&mut self) -> Afterwork {
        self.ended(&Ending::Aborted { reason: "its session was closed".to_owned() });
        if std::mem::replace(&mut self.progress.session_begun, false) {
            self.each_hook(|hook, run| hook.on_session_end(run));
        }
        Afterwork(self.run.take_deferred())
    }

    /// What the run came to so far.
    pub fn stats(&self) -> &RunStats {
        &self.progress.stats
    }

    /// Keeps the turn for later, at most once in a run. Where keeping it fails, it is tried once more, and then told.
    pub async fn capture_turn<F, R>(&mut self, mut keep: F) -> Result<(), String>
    where
        F: FnMut() -> R,
        R: Future<Output = Result<(), String>>,
    {
        if self.progress.captured {
            return Ok(());
        }
        if let Err(first) = kept(keep()).await {
            kept(keep()).await.map_err(|second| format!("{first}; and once more: {second}"))?;
        }
        self.progress.captured = true;
        Ok(())
    }
}

async fn kept(keeping: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    guarded(keeping).await.unwrap_or_else(|_| Err("keeping the turn panicked".to_owned()))
}

impl Drop for Session {
    /// A run that nobody ends was given up; hooks hear of that, too.
    fn drop(&mut self) {
        self.ended(&Ending::Aborted { reason: "its session was dropped".to_owned() });
    }
}
