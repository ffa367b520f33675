//! The one way in which a run ends, and what is done and kept then.

use super::Session;
use crate::host::guarded;
use crate::lifecycle::{Deferred, Ending, RunStats};

/// Work that hooks have deferred until after the run, and what went wrong in the hooks that were told of the end.
#[must_use = "what hooks have put off is done by `finish`"]
pub struct Afterwork {
    deferred: Vec<Deferred>,
    failures: Vec<String>,
}

impl std::fmt::Debug for Afterwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { deferred, failures } = self;
        f.debug_struct("Afterwork").field("deferred", &deferred.len()).field("failures", failures).finish()
    }
}

impl Afterwork {
    /// Does all of it, one after the other, and returns what went wrong, in the hooks that were told of the end and then in the work.
    /// The run has ended, so that fails nothing. May be spawned.
    pub async fn finish(self) -> Vec<String> {
        let mut wrong = self.failures;
        for work in self.deferred {
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
    /// Only the first ending counts, and tells hooks. A hook that fails then does not keep the others from being told; what went wrong
    /// in it is returned by [`Afterwork::finish`], and observers are told. A run that was aborted ends so, whatever else the host
    /// took it for.
    pub async fn end(&mut self, ending: &Ending) -> Afterwork {
        // The run is over whatever budgets say.
        let _ = self.pay(None).await;
        let failures = match self.run.aborted() {
            Some(reason) => self.ended(&Ending::Aborted { reason }),
            None => self.ended(ending),
        };
        Afterwork { deferred: self.run.take_deferred(), failures }
    }

    /// Tells hooks of the end, once. Returns what went wrong in them.
    fn ended(&mut self, ending: &Ending) -> Vec<String> {
        let Some(started) = self.progress.started else { return Vec::new() };
        if std::mem::replace(&mut self.progress.ended, true) {
            return Vec::new();
        }
        self.progress.stats.duration = started.elapsed();
        let (hooks, stats) = (self.hooks(), &self.progress.stats);
        let mut failures = Vec::new();
        for hook in hooks.all {
            let error = match hooks.call(hook, "on_end", |hook, run| hook.on_end(run, ending, stats)) {
                Some(Ok(())) => continue,
                Some(Err(error)) => {
                    hooks.failed(hook, "on_end", &error);
                    error
                }
                None => "it panicked".to_owned(),
            };
            failures.push(format!("the hook `{}` failed at the end of the run: {error}", hook.id()));
        }
        failures
    }

    /// The session is over: no further run of it begins. One that goes on is aborted.
    pub fn close(&mut self) -> Afterwork {
        let failures = self.ended(&Ending::Aborted { reason: "its session was closed".to_owned() });
        if std::mem::replace(&mut self.progress.session_begun, false) {
            self.each_hook("on_session_end", |hook, run| hook.on_session_end(run));
        }
        Afterwork { deferred: self.run.take_deferred(), failures }
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
    /// A run that nobody ends was given up; hooks hear of that, too. Of what goes wrong in them, observers are told.
    fn drop(&mut self) {
        let _ = self.ended(&Ending::Aborted { reason: "its session was dropped".to_owned() });
    }
}
