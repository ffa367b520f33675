//! The run of a concurrent session around its calls: its start, the configuration of its model calls, the model's stream and usage, and its
//! end. Each step sees what the calls before it changed.

use super::ConcurrentSession;
use super::call_queue::{Inner, QueuedCall};
use crate::lifecycle::{Chunk, ModelConfig, RunEnd, Usage};
use crate::message::History;

impl ConcurrentSession {
    /// Begins a run, as [`Session::begin`](crate::Session::begin) does.
    ///
    /// # Errors
    /// How the run ends before it has begun.
    pub async fn begin(&self, config: ModelConfig) -> Result<ModelConfig, RunEnd> {
        self.load().await;
        self.inner.queue().session.begin(config)
    }

    /// As [`Session::reserve_model_call`](crate::Session::reserve_model_call), after the calls that are under way.
    ///
    /// # Errors
    /// The run ends here.
    pub async fn reserve_model_call(&self, messages: &History) -> Result<(), RunEnd> {
        self.inner.run_step().await.turn.session.reserve_model_call(messages).await
    }

    /// The configuration of the next model call, after the calls that are under way: see
    /// [`Session::before_model`](crate::Session::before_model).
    ///
    /// # Errors
    /// The run ends here.
    pub async fn before_model(&self, config: ModelConfig) -> Result<ModelConfig, RunEnd> {
        self.inner.run_step().await.turn.session.before_model(config).await
    }

    /// Passes on a chunk of the model's stream: see [`Session::chunk`](crate::Session::chunk).
    ///
    /// # Errors
    /// The run ends here.
    pub fn chunk(&self, chunk: Chunk) -> Result<Vec<Chunk>, RunEnd> {
        self.inner.queue().session.chunk(chunk)
    }

    /// The chunks that are still held back: see [`Session::rest_of_stream`](crate::Session::rest_of_stream).
    ///
    /// # Errors
    /// The run ends here.
    pub fn rest_of_stream(&self) -> Result<Vec<Chunk>, RunEnd> {
        self.inner.queue().session.rest_of_stream()
    }

    /// Counts the usage of one model call, if its last chunk does not contain it.
    pub fn report_usage(&self, usage: Usage) {
        self.inner.queue().session.report_usage(usage);
    }

    /// Ends the run after the calls that are under way, does the deferred work of hooks, and returns their failures: see
    /// [`Session::end`](crate::Session::end).
    pub async fn end(&self, ending: &RunEnd) -> Vec<String> {
        let deferred = self.inner.run_step().await.turn.session.end(ending).await;
        let _ = self.save_state().await;
        deferred.finish().await
    }
}

/// A step of the run that may wait for a store. When it is dropped, the session continues with what it changed.
struct RunStep<'s> {
    turn: QueuedCall<'s>,
}

impl Drop for RunStep<'_> {
    fn drop(&mut self) {
        let step = &mut self.turn.session;
        let mut queue = self.turn.inner.queue();
        let session = &mut queue.session;
        session.progress = std::mem::take(&mut step.progress);
        session.run = step.run.clone();
        session.offered.clone_from(&step.offered);
        for (key, value) in step.state.run_info() {
            session.state.set_run_info(key, value.clone());
        }
    }
}

impl Inner {
    /// Begins a step of the run, after the calls before it. Calls after it wait, for it may end the run.
    async fn run_step(&self) -> RunStep<'_> {
        let mut turn = self.enter_run_step().await;
        turn.session.progress = std::mem::take(&mut self.queue().session.progress);
        turn.session.state.record_changes();
        RunStep { turn }
    }
}
