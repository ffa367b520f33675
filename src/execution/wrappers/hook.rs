//! The host's `around` hooks: they wrap the execution outside of all policies.

use std::borrow::Cow;
use std::sync::Arc;

use super::nested_call::{self, NestedCall};
use super::{Interruption, WrapResult, WrapperChain};
use crate::call::{OutcomeKind, Reason, ToolCall, reason_code};
use crate::host::{BoxFuture, ToolError, ToolExecutor, catch_panic};
use crate::json::Value;
use crate::kernel::{Broken, CallResponse, Decision, Wrapper};
use crate::lifecycle::{Middleware, Next, NextHandler};

impl<E: ToolExecutor> WrapperChain<'_, E> {
    /// Runs the call inside of these hooks, and those inside of them of these policies.
    pub(super) fn hooked<'a>(
        &'a mut self,
        call: &'a ToolCall,
        hooks: &'a [Arc<dyn Middleware>],
        wrappers: &'a [Wrapper],
    ) -> BoxFuture<'a, WrapResult> {
        Box::pin(async move {
            let runner = self.context.hooks;
            let mut rest = hooks.iter().enumerate().filter(|(_, hook)| hook.has_around());
            let (index, hook) = loop {
                let Some((index, hook)) = rest.next() else { return self.wrapped(call, wrappers).await };
                match runner.concerns(hook, call) {
                    Some(true) => break (index, hook),
                    Some(false) => {}
                    None => return Err(panicked(hook, self.attempts).into()),
                }
            };
            let inner = hooks.get(index + 1..).unwrap_or_default();
            let seen = runner.seen(call);
            let mut step = HookStep { chain: self, call, inner, wrappers, last: None, stopped: None };
            let around = async { hook.around(&seen, Next::new(call, &mut step)).await };
            let returned = catch_panic(around).await;
            let HookStep { chain, last, stopped, .. } = step;
            if let Some(stopped) = stopped {
                return Err(stopped.into());
            }
            match (returned, last) {
                // A result or an error that the hook passes on unchanged keeps its source.
                (Ok(result), Some(Ok(response))) if result == response.result => Ok(response),
                (Ok(Ok(output)), Some(Ok(response))) if response.is_executed() => {
                    Ok(CallResponse::executed(output, response.dry))
                }
                (Ok(Ok(output)), _) => Ok(CallResponse::answered(output, vec![hook.id().to_owned()])),
                (_, Some(Err(broken))) => Err(broken.into()),
                (Ok(Err(error)), _) => Ok(CallResponse::failed(error)),
                (Err(_), _) => {
                    runner.failed(hook, "around", "it panicked");
                    Err(panicked(hook, chain.attempts).into())
                }
            }
        })
    }
}

/// A hook panicked when the tool had been called this often.
fn panicked(hook: &Arc<dyn Middleware>, attempts: u32) -> Broken {
    let when = if attempts > 0 { "after" } else { "before" };
    let message = format!("the hook `{}` panicked {when} the tool was called", hook.id());
    let reason = Reason { policy: None, code: reason_code::INTERNAL_ERROR.to_owned(), message };
    Broken { policy: None, reason, kind: OutcomeKind::Failed }
}

/// What is inside of one hook.
struct HookStep<'s, 'n, E> {
    chain: &'s mut WrapperChain<'n, E>,
    call: &'s ToolCall,
    inner: &'s [Arc<dyn Middleware>],
    wrappers: &'s [Wrapper],
    /// The last result of what is inside.
    last: Option<Result<CallResponse, Broken>>,
    stopped: Option<Box<Decision<'static>>>,
}

impl<E: ToolExecutor> NextHandler for HookStep<'_, '_, E> {
    fn run<'s>(&'s mut self, input: Value, options: Value) -> BoxFuture<'s, Result<Value, ToolError>> {
        Box::pin(async move {
            if let Some(stopped) = &self.stopped {
                return Err(ToolError::new(stopped.reason().message).with_kind("stopped"));
            }
            let is_own = input == self.call.input;
            let mut call = Cow::Borrowed(self.call);
            if !is_own || options != self.call.options {
                let mut changed = self.call.with_input(input);
                changed.options = options;
                call = Cow::Owned(changed);
            }
            // Each run of the tool counts for the session.
            self.chain.is_counted = false;
            let result = if is_own && self.last.is_none() {
                self.chain.hooked(&call, self.inner, self.wrappers).await
            } else {
                match self.chain.decide_nested(&call, is_own).await {
                    NestedCall::Run { changed, wrappers } => {
                        self.chain.hooked(changed.as_deref().unwrap_or(&call), self.inner, &wrappers).await
                    }
                    NestedCall::Answered(response) => Ok(response),
                    NestedCall::TooLate => Ok(CallResponse::failed(nested_call::too_late())),
                    NestedCall::Stopped(stopped) => Err(stopped.into()),
                    NestedCall::Refused(error, _) => Ok(CallResponse::failed(error)),
                }
            };
            let (returned, last) = match result {
                Ok(response) => (response.result.clone(), Ok(response)),
                Err(Interruption::Broken(broken)) => {
                    (Err(ToolError::new(broken.reason.message.clone()).with_kind("broken")), Err(broken))
                }
                Err(Interruption::Stopped(stopped)) => {
                    let error = ToolError::new(stopped.reason().message).with_kind("stopped");
                    self.stopped = Some(stopped);
                    return Err(error);
                }
            };
            self.last = Some(last);
            returned
        })
    }
}
