//! An `around` policy: its script is replayed over its journal, and what it asks for is done in between.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::nested_call::NestedCall;
use super::script_answer::{Origin, answer, aside, is_dry, too_late};
use super::{Interruption, Next, Wrap, WrapResult, WrapperChain, space_name};
use crate::approval::ScriptJournal;
use crate::call::{OutcomeKind, Reason, ToolCall, Verdict, reason_code};
use crate::host::{BoxFuture, CacheEntry, CacheSpace, ToolError, ToolExecutor};
use crate::json::{Value, json};
use crate::kernel::{Broken, CallResponse, Effect as Decided, PolicyHandle, Wrapper};
use crate::middleware::Around;
use crate::script::{
    Answer, ExportedValue, Journal, ReplayResult, ScriptEffect, ScriptException, ScriptRunError,
};
use crate::work_limit;

/// The number of values that the scripts of one policy may keep.
const MAX_KEPT: usize = 1000;

/// The policy whose script runs, and what is inside of it.
#[derive(Clone, Copy)]
struct Script<'s> {
    by: PolicyHandle<'s>,
    /// Its place among the wrappers: what it calls is wrapped by those after it.
    order: u32,
    around: &'s Around,
    call: &'s ToolCall,
    inner: &'s [Wrapper],
}

impl Wrap for Around {
    fn wrap<'a, E: ToolExecutor>(&'a self, next: Next<'a, '_, E>) -> BoxFuture<'a, WrapResult> {
        let Next { chain, policy, order, call, inner } = next;
        Box::pin(chain.run_script(Script { by: policy, order, around: self, call, inner }))
    }
}

impl<E: ToolExecutor> WrapperChain<'_, E> {
    /// Runs the script around what is inside of it.
    async fn run_script(&mut self, script: Script<'_>) -> WrapResult {
        let Script { by, around, call, .. } = script;
        let annotations = self.context.kernel.annotations(call);
        // If the script stopped for a person, it goes on from there. A journal of another call or script does not count.
        let mut saved = self.attempt.journals_of(by);
        let resumed = saved.find_map(|journal| around.script.resume(call, annotations, journal).ok());
        let begun = match resumed {
            Some(resumed) => Ok(resumed),
            None => around.script.begin(call, annotations, self.state).map(|running| {
                let journal = Journal::new(&running);
                (running, journal)
            }),
        };
        let (running, mut journal) = match begun {
            Ok(begun) => begun,
            Err(failure) => {
                self.trace.amend(by.reference, Verdict::Deny);
                return script.failed(&failure, &[]);
            }
        };
        let hides_results = self.context.kernel.redacts_results(call);
        // A person is only asked before the tool was called, so nothing in a saved journal came from it.
        let mut origins: Vec<Origin> = (0..journal.len()).map(|_| Origin::Aside).collect();
        loop {
            let replayed = around.script.replay(&running, &journal);
            // Each replay prints again what the earlier ones printed.
            self.records.printed.retain(|(policy, _)| *policy != by.reference);
            self.records.printed.extend(journal.printed().into_iter().map(|line| (by.reference, line)));
            let effect = match replayed {
                ReplayResult::Effect(effect) => effect,
                ReplayResult::Completed { output, from } => {
                    // What only the journal holds beside the output need not be copied.
                    drop(journal);
                    return Ok(self.finish_script(script, output.into_value(), from, &origins));
                }
                ReplayResult::Exception(thrown) => return script.threw(thrown, origins),
                ReplayResult::Failed(failure) => {
                    self.trace.amend(by.reference, Verdict::Deny);
                    return script.failed(&failure, &origins);
                }
            };
            let answered = match &effect {
                ScriptEffect::Next { input, options } => {
                    let is_first = origins.iter().all(Origin::is_aside);
                    self.call_inner(script, NextArguments { input, options: options.as_ref(), is_first })
                        .await
                }
                ScriptEffect::Approve { message } => self.approve(script, message, journal.len()),
                ScriptEffect::Now => Ok(aside(json!(self.context.services.clock.now().as_millisecond()))),
                ScriptEffect::Random => Ok(aside(json!(self.context.services.random()))),
                ScriptEffect::CacheGet { key } => {
                    let kept = self.kept_value(script, key).await;
                    let kept = kept.and_then(|kept| self.context.kernel.read_cached(call, &kept));
                    Ok(aside(kept.map_or(Value::Null, |kept| self.records.add_cached(kept))))
                }
                ScriptEffect::CacheSet { key, value, ttl } => {
                    self.keep_value(script, (key, value), *ttl).await;
                    Ok(aside(Value::Null))
                }
                ScriptEffect::Audit { fields } => {
                    self.records.entries.push((by.reference, fields.clone()));
                    Ok(aside(Value::Null))
                }
            };
            let (answer, origin) =
                answered.map_err(|interrupted| script.keep_journal(interrupted, &journal))?;
            if let (Answer::Value(value), ScriptEffect::Next { .. } | ScriptEffect::CacheGet { .. }) =
                (&answer, &effect)
            {
                self.records.has_received = true;
                if hides_results {
                    self.records.results.push(Arc::clone(value));
                }
            }
            journal.push(effect, answer);
            origins.push(origin);
        }
    }

    /// Calls what is wrapped. The call's own arguments were decided; others, and a repetition, are decided again.
    /// Its future is boxed here and not where it is waited for: scripts nest, and each would have room for it on the stack.
    fn call_inner<'a>(
        &'a mut self,
        script: Script<'a>,
        arguments: NextArguments<'a>,
    ) -> BoxFuture<'a, Result<(Answer, Origin), Interruption>> {
        Box::pin(async move {
            let call = arguments.call(script.call);
            // Each run of the tool counts for the session.
            self.is_counted = false;
            let is_own = arguments.input.is_same_instance(&script.call.input);
            if arguments.is_first && (is_own || **arguments.input == script.call.input) {
                return Ok(answer(self.wrapped(&call, script.inner).await?));
            }
            match self.decide_nested(&call, is_own).await {
                NestedCall::Run { changed, wrappers } => {
                    let inside = |wrapper: &Wrapper| wrapper.order > script.order;
                    let wrappers: Vec<Wrapper> = wrappers.into_iter().filter(inside).collect();
                    Ok(answer(self.wrapped(changed.as_deref().unwrap_or(&call), &wrappers).await?))
                }
                NestedCall::Answered(response) => Ok(answer(response)),
                NestedCall::TooLate => Ok(too_late()),
                NestedCall::Stopped(decision) => Err(decision.into()),
                NestedCall::Refused(error, decision) => {
                    let answer = Answer::Error { message: error.message, kind: error.kind };
                    Ok((answer, Origin::Refused(decision)))
                }
            }
        })
    }

    /// The script asks a person. `position` tells its requests of one call apart.
    fn approve(
        &self,
        script: Script<'_>,
        question: &str,
        position: usize,
    ) -> Result<(Answer, Origin), Interruption> {
        let kernel = &self.context.kernel;
        let input = crate::json::digest(&script.call.input).to_string();
        let about = crate::json::digest(&json!(["approve", input, position, question]));
        if kernel.is_approved(&self.attempt.permits, script.by.reference, about) {
            return Ok(aside(Value::Bool(true)));
        }
        if self.attempts > 0 {
            return Ok(too_late());
        }
        let mut decision = kernel.decide_holding(script.call, self.state, self.held());
        // The trace has it already.
        decision.take_trace();
        let reason = Reason {
            policy: Some(script.by.policy.id.clone()),
            code: reason_code::APPROVAL_REQUIRED.to_owned(),
            message: question.to_owned(),
        };
        decision.ask(script.by.reference, reason, question.to_owned(), about);
        let mut decision = self.refused(decision);
        decision.amend(script.by.reference, Verdict::Suspend);
        Err(decision.into())
    }

    fn kept_value<'a>(&'a self, script: Script<'a>, key: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            let services = self.context.services;
            let (name, key) = self.cache_key(script, key)?;
            let account = self.context.account(script.call);
            let space = CacheSpace { name: &name, max_entries: MAX_KEPT, account };
            let found = services.ask(|| services.store.cache_get(services.clock.now(), space, &key)).await;
            found.ok()?.entry.map(|entry| entry.output)
        })
    }

    fn keep_value<'a>(
        &'a self,
        script: Script<'a>,
        (key, value): (&'a Value, &'a Value),
        ttl: Duration,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let services = self.context.services;
            let stored_at = services.clock.now();
            let (Some((name, key)), Ok(expires_at)) =
                (self.cache_key(script, key), stored_at.checked_add(ttl))
            else {
                return;
            };
            let account = self.context.account(script.call);
            let space = CacheSpace { name: &name, max_entries: MAX_KEPT, account };
            // Without the store nothing is kept, which a script has to expect.
            let found = services.ask(|| services.store.cache_get(stored_at, space, &key)).await;
            let stored = self.context.kernel.kept_value(script.call, self.state, value, &self.records);
            if let (Ok(found), Some(output)) = (found, stored)
                && !self.is_single_use
            {
                let entry = CacheEntry { output, stored_at, expires_at };
                let put = || services.store.cache_put(space, &key, entry, found.generation);
                let _ = services.ask(put).await;
            }
        })
    }

    /// The name and key under which a script keeps a value.
    fn cache_key(&self, script: Script<'_>, key: &Value) -> Option<(String, String)> {
        let view = self.context.kernel.view(script.call, self.state);
        let key = script.around.storage_key(key, &view, self.context.session.cache_scope)?;
        Some((space_name(script.by, &script.around.scope_name()), key))
    }

    /// The response of a script that ended with an output. `from`: the answer that it passes on unchanged.
    fn finish_script(
        &mut self,
        script: Script<'_>,
        output: Value,
        from: Option<usize>,
        origins: &[Origin],
    ) -> CallResponse {
        let by = script.by.reference;
        let passed_on = from.and_then(|index| origins.get(index));
        if !matches!(passed_on, Some(Origin::Result { .. }))
            && self.context.kernel.redacts_results(script.call)
        {
            self.records.made_results.push(output.clone());
        }
        let (response, verdict) = match passed_on {
            Some(Origin::Result { source, dry }) => {
                (CallResponse { result: Ok(output), source: source.clone(), dry: *dry }, Verdict::Pass)
            }
            // A result that a script made out of what the tool really gave just now is the tool's. One that stands in for a
            // failure or for a call that was never made, or has an old result in it, is the script's.
            _ if origins.iter().any(Origin::is_executed)
                && origins.iter().all(|origin| origin.is_executed() || origin.is_aside()) =>
            {
                (CallResponse::executed(output, is_dry(origins)), Verdict::Rewrite)
            }
            _ => (CallResponse::by_policy(by, output), Verdict::Answer),
        };
        self.trace.amend(by, verdict);
        response
    }
}

/// The arguments with which a script calls `next`.
#[derive(Clone, Copy)]
struct NextArguments<'a> {
    input: &'a ExportedValue<'a>,
    options: Option<&'a ExportedValue<'a>>,
    is_first: bool,
}

impl NextArguments<'_> {
    /// The call to make: the script's own, if nothing in it is changed.
    fn call<'c>(&self, own: &'c ToolCall) -> Cow<'c, ToolCall> {
        let options = self.options.filter(|options| !options.is_same_instance(&own.options));
        if options.is_none() && self.input.is_same_instance(&own.input) {
            return Cow::Borrowed(own);
        }
        let mut call = own.with_input(Value::clone(self.input));
        if let Some(options) = options {
            call.options = Value::clone(options);
        }
        Cow::Owned(call)
    }
}

impl Script<'_> {
    /// A call that was stopped for a person, with the journal of the script so far. A journal that is too large to be kept denies it.
    fn keep_journal(self, interrupted: Interruption, journal: &Journal<'_>) -> Interruption {
        let mut stopped = match interrupted {
            Interruption::Stopped(stopped) if stopped.effect() == Decided::Suspend => stopped,
            other => return other,
        };
        let policy = &self.by.policy.id;
        match crate::json::to_value(journal) {
            Ok(journal) => {
                let (layer, policy) = (self.by.layer(), policy.clone());
                stopped.keep_journal(ScriptJournal { layer, policy, journal });
            }
            Err(error) => {
                let message = format!("the script of `{policy}` can't request an approval: {error}");
                let (policy, code) = (Some(policy.clone()), reason_code::SCRIPT_ERROR.to_owned());
                stopped.refuse(Decided::Deny, Reason { policy, code, message }, None);
            }
        }
        Interruption::Stopped(stopped)
    }

    /// The script ended with an error: one that it passes on, or its own.
    fn threw(self, thrown: ScriptException, mut origins: Vec<Origin>) -> WrapResult {
        let ScriptException { message, kind, journal_entry } = thrown;
        match journal_entry.filter(|index| *index < origins.len()).map(|index| origins.swap_remove(index)) {
            Some(Origin::Error { error, source }) => {
                Ok(CallResponse { result: Err(error), source, dry: false })
            }
            Some(Origin::Refused(decision)) => Err(decision.into()),
            _ => {
                let kind = kind.unwrap_or_else(|| reason_code::THROWN.to_owned());
                let error = ToolError::new(message).with_kind(kind);
                Ok(CallResponse::failed_by(self.by.reference, error))
            }
        }
    }

    /// The script itself failed.
    fn failed(self, failure: &ScriptRunError, origins: &[Origin]) -> WrapResult {
        // If no tool exists behind the calls, a script finds nothing to work on.
        if is_dry(origins) {
            return Ok(CallResponse::executed(Value::Null, true));
        }
        let ran = origins.iter().any(|origin| origin.is_executed() || matches!(origin, Origin::Error { .. }));
        let when = if ran { "after the tool was called" } else { "before the tool was called" };
        let id = &self.by.policy.id;
        let message =
            format!("the script of `{id}` failed {when}: {}", self.around.describe_failure(failure));
        let is_cut_short = failure.is_mismatch || failure.is_limit;
        let kind = if is_cut_short && ran { OutcomeKind::Indeterminate } else { OutcomeKind::Failed };
        let code = match work_limit::is_exceeded() {
            true => reason_code::WORK_EXCEEDED,
            false => reason_code::SCRIPT_ERROR,
        };
        let reason = Reason { policy: None, code: code.to_owned(), message };
        Err(Broken { policy: Some(self.by.reference), reason, kind }.into())
    }
}
