//! Passes the model's stream through policies and then hooks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Session;
use crate::lifecycle::{Chunk, ChunkAction, RunEnd};
use crate::middleware::StreamShadow;

impl Session {
    /// Passes on a chunk of the model's stream: returns the chunks to pass on now. Policies see it first, and
    /// then hooks. Text that policies hold back is passed on before the model's turn ends ([`Chunk::Finished`];
    /// if that never comes, see [`rest_of_stream`](Self::rest_of_stream)).
    ///
    /// # Errors
    /// The run ends here.
    pub fn chunk(&mut self, chunk: Chunk) -> Result<Vec<Chunk>, RunEnd> {
        self.may_go_on()?;
        // The usage counts whether or not the chunk is passed on.
        let used = match &chunk {
            Chunk::Finished { usage, .. } => *usage,
            _ => None,
        };
        if let Some(usage) = used {
            self.report_usage(usage);
        }
        let ends = matches!(chunk, Chunk::Finished { .. });
        self.begin_stream();
        self.watch(|shadow| shadow.would_change(&chunk));
        let chunks = match &mut self.progress.filter {
            Some(filter) => filter.push(chunk),
            None => vec![chunk],
        };
        if ends {
            self.progress.filter = None;
        }
        self.pass_on(chunks)
    }

    /// The chunks that are still held back if the model's turn ended without saying so.
    ///
    /// # Errors
    /// The run ends here.
    pub fn rest_of_stream(&mut self) -> Result<Vec<Chunk>, RunEnd> {
        self.watch(StreamShadow::would_change_rest);
        self.progress.stream_shadows = Vec::new();
        match self.progress.filter.take() {
            Some(mut filter) => self.pass_on(filter.finish()),
            None => Ok(Vec::new()),
        }
    }

    fn begin_stream(&mut self) {
        if self.progress.filter.is_none() {
            let layers = self.layers();
            let filters = self.kernel(&layers).stream_filters(&self.run.context, &self.state);
            (self.progress.filter, self.progress.stream_shadows) = (Some(filters.0), filters.1);
        }
    }

    /// Records which policies in shadow mode would have changed the stream; those are not asked again. One that
    /// panics would have.
    fn watch(&mut self, mut would: impl FnMut(&mut StreamShadow) -> bool) {
        let mut found = Vec::new();
        self.progress.stream_shadows.retain_mut(|(effect, shadow)| {
            let changes = catch_unwind(AssertUnwindSafe(|| would(shadow))).unwrap_or(true);
            if changes {
                found.push(effect.clone());
            }
            !changes
        });
        self.record_shadows(found);
    }

    fn pass_on(&mut self, mut chunks: Vec<Chunk>) -> Result<Vec<Chunk>, RunEnd> {
        for hook in &self.hooks {
            let hooks = self.hooks();
            let fate =
                |chunk: Chunk| match hooks.call(hook, "on_chunk", |hook, run| hook.on_chunk(run, &chunk)) {
                    Some(ChunkAction::Pass) | None => vec![chunk],
                    Some(ChunkAction::Replace(others)) => others,
                };
            chunks = chunks.into_iter().flat_map(fate).collect();
        }
        self.passed_on(&chunks);
        self.may_go_on()?;
        Ok(chunks)
    }

    fn passed_on(&mut self, chunks: &[Chunk]) {
        self.run.chunk_index += u64::try_from(chunks.len()).unwrap_or(u64::MAX);
        self.state.set_run_info("chunkIndex", self.run.chunk_index.into());
    }
}
