//! What the model streams, on its way past policies and then hooks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Session;
use crate::lifecycle::{Chunk, ChunkFate, Ending};
use crate::middleware::StreamFilter;

impl Session {
    /// A chunk that the model streams: what is passed on now. Policies see it first, and then hooks. What policies hold back of a text
    /// is passed on before the model's turn ends ([`Chunk::Finished`]; where that never comes, see
    /// [`rest_of_stream`](Self::rest_of_stream)). Errors: the run ends here.
    pub fn chunk(&mut self, chunk: Chunk) -> Result<Vec<Chunk>, Ending> {
        self.may_go_on()?;
        // Whatever becomes of the chunk, what it says was used.
        let used = match &chunk {
            Chunk::Finished { usage, .. } => *usage,
            _ => None,
        };
        if let Some(usage) = used {
            self.used(usage);
        }
        let ends = matches!(chunk, Chunk::Finished { .. });
        let chunks = self.stream_filter().push(chunk);
        if ends {
            self.progress.filter = None;
        }
        self.pass_on(chunks)
    }

    /// What is still held back where the model's turn ended without saying so. Errors: the run ends here.
    pub fn rest_of_stream(&mut self) -> Result<Vec<Chunk>, Ending> {
        match self.progress.filter.take() {
            Some(mut filter) => self.pass_on(filter.finish()),
            None => Ok(Vec::new()),
        }
    }

    fn stream_filter(&mut self) -> &mut StreamFilter {
        let layers = self.layers();
        let Self { shared, state, run, progress, .. } = self;
        progress.filter.get_or_insert_with(|| shared.kernel(&layers).stream_filter(&run.context, state))
    }

    fn pass_on(&mut self, mut chunks: Vec<Chunk>) -> Result<Vec<Chunk>, Ending> {
        for hook in &self.hooks {
            let run = &self.run;
            let fate = |chunk: Chunk| match catch_unwind(AssertUnwindSafe(|| hook.on_chunk(run, &chunk))) {
                Ok(ChunkFate::Pass) | Err(_) => vec![chunk],
                Ok(ChunkFate::Replace(others)) => others,
            };
            chunks = chunks.into_iter().flat_map(fate).collect();
        }
        self.passed_on(&chunks);
        self.may_go_on()?;
        Ok(chunks)
    }

    fn passed_on(&mut self, chunks: &[Chunk]) {
        self.run.chunk_index += u64::try_from(chunks.len()).unwrap_or(u64::MAX);
        self.state.set("chunkIndex", self.run.chunk_index.into());
    }
}
