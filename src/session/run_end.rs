//! The end of a run, and the deferred work after it.

use super::Session;
use crate::host::catch_panic;
use crate::lifecycle::{DeferredWork, HookError, RunEnd, RunStats};

/// Work that hooks have deferred until after the run, and the failures of hooks that were notified of the end.
#[must_use = "deferred work of hooks runs in `finish`"]
pub struct DeferredTasks {
    deferred: Vec<DeferredWork>,
    failures: Vec<String>,
}

impl std::fmt::Debug for DeferredTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { deferred, failures } = self;
        f.debug_struct("DeferredTasks")
            .field("deferred", &deferred.len())
            .field("failures", failures)
            .finish()
    }
}

impl DeferredTasks {
    /// Does the work in order, and returns all failures: of the hooks that were notified of the end, then of
    /// the work. The run has ended, so they change nothing. May be spawned.
    pub async fn finish(self) -> Vec<String> {
        let mut wrong = self.failures;
        for work in self.deferred {
            match catch_panic(work).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => wrong.push(error.to_string()),
                Err(_) => wrong.push("deferred work panicked".to_owned()),
            }
        }
        wrong
    }
}

impl Session {
    /// Ends the run, also one that stops because calls are pending: that one has finished, and the next one
    /// continues with its counts. Only the first ending counts, and notifies hooks. A hook that fails does not
    /// keep the others from being notified; its failure is returned by [`DeferredTasks::finish`] and reported to
    /// observers. An aborted run ends as aborted, whatever `ending` says.
    pub async fn end(&mut self, ending: &RunEnd) -> DeferredTasks {
        // The run is over whatever budgets say.
        let _ = self.settle_usage(None).await;
        if std::mem::take(&mut self.progress.is_turn_reserved) {
            self.release_last_turn().await;
        }
        let failures = match self.run.abort_reason() {
            Some(reason) => self.ended(&RunEnd::Aborted { reason }),
            None => self.ended(ending),
        };
        DeferredTasks { deferred: self.run.take_deferred(), failures }
    }

    /// Notifies hooks of the end, once. Returns their failures.
    fn ended(&mut self, ending: &RunEnd) -> Vec<String> {
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
                    let error = error.to_string();
                    hooks.failed(hook, "on_end", &error);
                    error
                }
                None => "it panicked".to_owned(),
            };
            failures.push(format!("the hook `{}` failed at the end of the run: {error}", hook.id()));
        }
        failures
    }

    /// Ends the session: no further run of it begins. A run that continues is aborted.
    pub fn close(&mut self) -> DeferredTasks {
        let failures = self.ended(&RunEnd::Aborted { reason: "its session was closed".to_owned() });
        if std::mem::replace(&mut self.progress.session_begun, false) {
            self.each_hook("on_session_end", |hook, run| hook.on_session_end(run));
        }
        DeferredTasks { deferred: self.run.take_deferred(), failures }
    }

    /// The statistics of the run so far.
    pub fn stats(&self) -> &RunStats {
        &self.progress.stats
    }

    /// Captures the turn, at most once in a run. If that fails, it is tried once more.
    ///
    /// # Errors
    /// Both attempts failed.
    pub async fn capture_turn<F, R>(&mut self, mut capture_once: F) -> Result<(), HookError>
    where
        F: FnMut() -> R,
        R: Future<Output = Result<(), HookError>>,
    {
        if self.progress.captured {
            return Ok(());
        }
        if let Err(first) = capture(capture_once()).await {
            capture(capture_once())
                .await
                .map_err(|second| HookError::new(format!("{first}; and once more: {second}")))?;
        }
        self.progress.captured = true;
        Ok(())
    }
}

async fn capture(capturing: impl Future<Output = Result<(), HookError>>) -> Result<(), HookError> {
    catch_panic(capturing).await.unwrap_or_else(|_| Err(HookError::new("capturing the turn panicked")))
}

impl Drop for Session {
    /// A run that nobody ends was given up; hooks are notified of that, too, and observers of their failures.
    fn drop(&mut self) {
        let _ = self.ended(&RunEnd::Aborted { reason: "its session was dropped".to_owned() });
    }
}
