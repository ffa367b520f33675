//! A `retry` policy: runs what is inside again after an error that it is about.

use super::{Next, Wrap, WrapResult};
use crate::host::{BoxFuture, ToolError, ToolExecutor, with_deadline};
use crate::kernel::{ErrorMatched, Event, notify};
use crate::middleware::Retry;

impl Wrap for Retry {
    fn wrap<'a, E: ToolExecutor>(&'a self, mut next: Next<'a, '_, E>) -> BoxFuture<'a, WrapResult> {
        Box::pin(async move {
            let context = next.chain.context;
            let (kernel, services) = (&context.kernel, context.services);
            let attempts = if self.is_safe_for(kernel.tools.get(next.call)) { self.attempts } else { 1 };
            let policy = next.policy;
            let is_retried = |error: &ToolError| {
                let matched = ErrorMatched { policy: policy.policy, layer: policy.layer(), error };
                notify(kernel.listener, &Event::ErrorMatched(matched));
                self.on.matches(error)
            };
            let mut attempt = 1;
            loop {
                let result = next.run().await;
                let error = result.as_ref().ok().and_then(|response| response.result.as_ref().err());
                if !error.is_some_and(|error| attempt < attempts && is_retried(error)) {
                    return result;
                }
                let pause = services.clock.sleep(self.pause(attempt, services.random()));
                // The next attempt says that the run has ended.
                with_deadline(pause, || async { drop(context.hooks.run.wait_for_abort().await) }).await;
                attempt += 1;
            }
        })
    }
}
