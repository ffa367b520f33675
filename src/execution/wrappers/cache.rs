//! A `cache` policy: returns a stored result, or stores the one that the tool gives. Equal calls that run at once share one run.

use std::time::Duration;

use super::single_flight::{Flight, landed};
use super::{Next, Wrap, WrapResult, WrapperChain, space_name};
use crate::call::{ToolCall, Verdict};
use crate::host::{BoxFuture, CacheEntry, CacheHit, CacheLookup, CacheSpace, EngineEventKind, ToolExecutor};
use crate::kernel::{CallResponse, PolicyRef, Source};
use crate::middleware::Cache;

impl Wrap for Cache {
    fn wrap<'a, E: ToolExecutor>(&'a self, mut next: Next<'a, '_, E>) -> BoxFuture<'a, WrapResult> {
        Box::pin(async move {
            let context = next.chain.context;
            let services = context.services;
            let view = context.kernel.view(next.call, next.chain.state);
            let key = self.key(&view, context.session.cache_scope);
            let Some(key) = key.filter(|_| next.chain.attempt.only_asks.is_none()) else {
                return next.run().await;
            };
            let by = next.policy.reference;
            let name = space_name(next.policy, self.identity());
            let account = context.account(next.call);
            let space = CacheSpace { name: &name, max_entries: self.max_entries, account };
            let look_up = || services.ask(|| services.store.cache_get(services.clock.now(), space, &key));
            let Ok(mut found) = look_up().await else { return next.run().await };
            if let Some(hit) = next.chain.hit(by, next.call, &found) {
                return Ok(hit);
            }
            let lead = match services.single_flight.join(&format!("{name}/{key}")) {
                Flight::Lead(lead) => Some(lead),
                // A call that others wait for does not wait: with caches nested the other way round, two would wait for each other.
                Flight::Follow(_) if next.chain.leads > 0 => None,
                Flight::Follow(landing) => {
                    landed(landing).await;
                    None
                }
            };
            // The leader may have stored something by now; if it did not, this call runs the tool itself and does not queue again.
            match look_up().await {
                Ok(now) => found = now,
                Err(_) => return next.run().await,
            }
            if let Some(hit) = next.chain.hit(by, next.call, &found) {
                return Ok(hit);
            }
            next.chain.leads += u32::from(lead.is_some());
            let result = next.run().await;
            next.chain.leads -= u32::from(lead.is_some());
            if let Ok(response) = &result
                && let Ok(output) = &response.result
                && response.is_executed()
                && !response.dry
                && !next.chain.is_single_use
            {
                let stored_at = services.clock.now();
                let expires_at = self.ttl.map_or(Ok(jiff::Timestamp::MAX), |ttl| stored_at.checked_add(ttl));
                let (state, records) = (&*next.chain.state, &next.chain.records);
                let stored = context.kernel.cached_result(next.call, state, output, records);
                if let (Ok(expires_at), Some(output)) = (expires_at, stored) {
                    let entry = CacheEntry { output, stored_at, expires_at };
                    let put = || services.store.cache_put(space, &key, entry, found.generation);
                    let _ = services.ask(put).await;
                }
            }
            drop(lead);
            result
        })
    }
}

impl<E> WrapperChain<'_, E> {
    fn hit(&mut self, by: PolicyRef, call: &ToolCall, found: &CacheLookup) -> Option<CallResponse> {
        let CacheEntry { output, stored_at, .. } = found.entry.as_ref()?;
        let output = self.records.add_cached(self.context.kernel.read_cached(call, output)?);
        self.trace.amend(by, Verdict::Answer);
        let age = self.context.services.clock.now().duration_since(*stored_at);
        let age = Duration::try_from(age).unwrap_or_default();
        self.record_result(|| Ok(output.clone().into()));
        if let Some(policy) = by.find(self.context.kernel.layers) {
            let hit = CacheHit { policy: &policy.id, age };
            self.context.observe(call, self.state, EngineEventKind::CacheHit(hit));
        }
        Some(CallResponse { result: Ok(output), source: Source::Cache(by, age), dry: false })
    }
}
