//! The execution of a call that gate has decided: limits are taken, policies wrap the tool, and what comes of it is settled.
//!
//! The kernel decides and settles without ever waiting; all waiting is done here.

mod admission;
mod flights;
mod nest;
mod scripted;
mod services;

pub(crate) use services::Services;

use std::time::Instant;

use crate::call::{Outcome, SessionState};
use crate::host::ToolExecutor;
use crate::kernel::{Decision, Effect, Ended, Kernel};
use admission::Permits;
use nest::Nest;

/// What the execution of calls of one session needs.
pub(crate) struct Execute<'e, E> {
    /// What decides and settles.
    pub(crate) kernel: &'e Kernel<'e>,
    /// What all calls share.
    pub(crate) services: &'e Services,
    /// The tools.
    pub(crate) executor: &'e E,
    /// The session's own name among all sessions.
    pub(crate) session: &'e str,
}

impl<E: ToolExecutor> Execute<'_, E> {
    /// Brings a decided call to its outcome.
    pub(crate) async fn run(
        &self,
        mut decision: Decision<'_>,
        state: &mut SessionState,
        started: Instant,
    ) -> Outcome {
        let mut permits = Permits::default();
        admission::admit(self.kernel, self.services, &mut decision, &mut permits, state).await;
        match decision.effect() {
            Effect::Run => match Nest::new(self, &mut permits, state).run(&mut decision).await {
                Ok(execution) => self.kernel.settle(decision, execution, state, started),
                Err((inner, records)) => self.kernel.refuse(*inner, records, state, started),
            },
            Effect::Answer => match decision.answer() {
                Some((by, output)) => {
                    self.kernel.settle(decision, Ended::Answered(by, output).into(), state, started)
                }
                None => self.kernel.refuse(decision, Vec::new(), state, started),
            },
            Effect::Suspend | Effect::Invalid | Effect::Deny | Effect::Halt => {
                self.kernel.refuse(decision, Vec::new(), state, started)
            }
        }
    }
}
