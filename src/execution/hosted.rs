//! The host's own code around the execution, outside of the policies around it.

use std::borrow::Cow;
use std::sync::Arc;

use super::again::{self, Again};
use super::nest::{Nest, Nested};
use crate::call::{OutcomeKind, Reason, ToolCall, reason_code};
use crate::host::{BoxFuture, ToolAnswer, ToolError, ToolExecutor, guarded};
use crate::json::Value;
use crate::kernel::{Decision, Ended, Wrapper};
use crate::lifecycle::{Middleware, Next, NextStep};

impl<E: ToolExecutor> Nest<'_, E> {
    /// The call inside these hooks, and those inside these policies.
    pub(super) fn hosted<'a>(
        &'a mut self,
        call: &'a ToolCall,
        hooks: &'a [Arc<dyn Middleware>],
        wrappers: &'a [Wrapper],
    ) -> BoxFuture<'a, Nested> {
        Box::pin(async move {
            let given = self.execute.hooks();
            let mut rest = hooks.iter().enumerate().filter(|(_, hook)| hook.wraps());
            let (place, hook) = loop {
                let Some((place, hook)) = rest.next() else { return self.wrapped(call, wrappers).await };
                match given.concerns(hook, call) {
                    Some(true) => break (place, hook),
                    Some(false) => {}
                    None => return Ok(panicked(hook, self.attempts)),
                }
            };
            let inner = hooks.get(place + 1..).unwrap_or_default();
            let seen = given.seen(call);
            let mut step = Step { nest: self, call, inner, wrappers, last: None, stopped: None };
            let around = async { hook.around(&seen, Next::new(call, &mut step)).await };
            let ended = guarded(around).await;
            let Step { nest, last, stopped, .. } = step;
            if let Some(stopped) = stopped {
                return Err(stopped);
            }
            Ok(match (ended, last) {
                // What it passes on unchanged is still what it was.
                (Ok(Ok(output)), Some(Inside::Gave(ended, inner))) if output == inner => *ended,
                (Ok(Ok(output)), Some(Inside::Gave(ended, _))) if matches!(*ended, Ended::Ran(_)) => {
                    Ended::Ran(ToolAnswer {
                        output,
                        dry: matches!(*ended, Ended::Ran(ToolAnswer { dry: true, .. })),
                        interim: nest.interim,
                    })
                }
                (Ok(Ok(output)), _) => Ended::Given(output, vec![hook.id().to_owned()]),
                (Ok(Err(error)), Some(Inside::Failed(ended, inner))) if error == inner => *ended,
                (_, Some(Inside::Broke(ended))) => *ended,
                (Ok(Err(error)), _) => Ended::Failed(error, None),
                (Err(_), _) => {
                    given.failed(hook, "around", "it panicked");
                    panicked(hook, nest.attempts)
                }
            })
        })
    }
}

/// A hook panicked, when the tool had been called this often.
fn panicked(hook: &Arc<dyn Middleware>, attempts: u32) -> Ended {
    let when = if attempts > 0 { "after" } else { "before" };
    let message = format!("the hook `{}` panicked {when} the tool was called", hook.id());
    let reason = Reason { policy: None, code: reason_code::INTERNAL_ERROR.to_owned(), message };
    Ended::Broken(None, reason, OutcomeKind::Failed)
}

/// What the inside of a hook came to last.
enum Inside {
    Gave(Box<Ended>, Value),
    Failed(Box<Ended>, ToolError),
    /// Nothing can be made of it.
    Broke(Box<Ended>),
}

/// What is inside of one hook.
struct Step<'s, 'n, E> {
    nest: &'s mut Nest<'n, E>,
    call: &'s ToolCall,
    inner: &'s [Arc<dyn Middleware>],
    wrappers: &'s [Wrapper],
    last: Option<Inside>,
    stopped: Option<Box<Decision<'static>>>,
}

impl<E: ToolExecutor> NextStep for Step<'_, '_, E> {
    fn run<'s>(&'s mut self, input: Value, options: Value) -> BoxFuture<'s, Result<Value, ToolError>> {
        Box::pin(async move {
            if let Some(stopped) = &self.stopped {
                return Err(ToolError::new(stopped.reason().message).of_kind("stopped"));
            }
            let own = input == self.call.input;
            let mut call = Cow::Borrowed(self.call);
            if !own || options != self.call.options {
                let mut changed = self.call.with_input(input);
                changed.options = options;
                call = Cow::Owned(changed);
            }
            // Each run of the tool counts for the session.
            self.nest.counted = false;
            let nested = if own && self.last.is_none() {
                self.nest.hosted(&call, self.inner, self.wrappers).await
            } else {
                match self.nest.again(&call, own).await {
                    Again::Run { formed, wrappers } => {
                        self.nest.hosted(formed.as_deref().unwrap_or(&call), self.inner, &wrappers).await
                    }
                    Again::Ended(ended) => Ok(ended),
                    Again::TooLate => Ok(Ended::Failed(again::too_late(), None)),
                    Again::Stopped(stopped) => Err(stopped),
                    Again::Refused(error, _) => Ok(Ended::Failed(error, None)),
                }
            };
            self.tell(nested)
        })
    }
}

impl<E> Step<'_, '_, E> {
    /// What the hook is told of what came of the inside.
    fn tell(&mut self, nested: Nested) -> Result<Value, ToolError> {
        let ended = match nested {
            Ok(ended) => ended,
            Err(stopped) => {
                let error = ToolError::new(stopped.reason().message).of_kind("stopped");
                self.stopped = Some(stopped);
                return Err(error);
            }
        };
        match &ended {
            Ended::Ran(ToolAnswer { output, .. })
            | Ended::Answered(_, output)
            | Ended::Given(output, _)
            | Ended::Cached(_, output, _) => {
                let output = output.clone();
                self.last = Some(Inside::Gave(Box::new(ended), output.clone()));
                Ok(output)
            }
            Ended::Failed(error, _) => {
                let error = error.clone();
                self.last = Some(Inside::Failed(Box::new(ended), error.clone()));
                Err(error)
            }
            Ended::Broken(_, reason, _) => {
                let error = ToolError::new(reason.message.clone()).of_kind("broken");
                self.last = Some(Inside::Broke(Box::new(ended)));
                Err(error)
            }
        }
    }
}
