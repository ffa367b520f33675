//! An `around` policy: its script is replayed over its journal, and what it asks for is done in between.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::again::{self, Again};
use super::nest::{Nest, Nested, space_name};
use crate::approval::KeptJournal;
use crate::call::{OutcomeKind, Reason, ToolCall, Verdict, reason_code};
use crate::host::{BoxFuture, CacheEntry, CacheSpace, ToolAnswer, ToolError, ToolExecutor};
use crate::json::{Value, json};
use crate::kernel::{Decision, Effect as Decided, Ended, PolicyRef, Wrapper};
use crate::meter;
use crate::middleware::Around;
use crate::policy::Policy;
use crate::script::{Answer, Effect, Journal, Passed, Replay, ScriptFailure, Thrown};

/// What a script is told of a call of what it wraps, or how that ended; the decision that stopped it.
type Next = Result<Result<(Answer, Origin), Ended>, Box<Decision<'static>>>;

/// Values that the scripts of one policy keep.
const MAX_KEPT: usize = 1000;

/// The policy whose script runs, and what is inside of it.
#[derive(Clone, Copy)]
struct Script<'s> {
    by: PolicyRef,
    /// Its place among the wrappers: what it calls is wrapped by those after it.
    order: u32,
    policy: &'s Policy,
    around: &'s Around,
    call: &'s ToolCall,
    inner: &'s [Wrapper],
}

/// What an answer in the journal came from, so that a script which passes it on unchanged changes nothing of what is told.
enum Origin {
    Ran {
        dry: bool,
    },
    Cached(PolicyRef, Duration),
    Answered(PolicyRef),
    Failed(ToolError, Option<PolicyRef>),
    Refused(Box<Decision<'static>>),
    /// No call of what is wrapped.
    Aside,
}

impl<E: ToolExecutor> Nest<'_, E> {
    /// Runs the script around what is inside of it.
    pub(super) async fn scripted(
        &mut self,
        wrapper: Wrapper,
        policy: &Policy,
        around: &Around,
        call: &ToolCall,
        inner: &[Wrapper],
    ) -> Nested {
        let Wrapper { policy: by, order } = wrapper;
        let script = Script { by, order, policy, around, call, inner };
        let annotations = self.execute.kernel.annotations(call);
        // Where the script stopped for a person, it goes on from there. A journal of another call or script is none of its own.
        let kept = self.turn.journals(by, policy);
        let resumed = kept.filter_map(|kept| around.script.resume(call, annotations, kept).ok()).next();
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
                self.trace.amend(by, Verdict::Deny);
                return Ok(script.failed(&failure, &[]));
            }
        };
        let hides_results = self.execute.kernel.hides_results(call);
        // A person is only asked before the tool was called, so nothing that is kept came from it.
        let mut origins: Vec<Origin> = (0..journal.len()).map(|_| Origin::Aside).collect();
        loop {
            let effect = match around.script.replay(&running, &journal) {
                Replay::Effect(effect) => effect,
                Replay::Done { output, from } => {
                    // Whatever only the journal holds beside it need not be copied.
                    drop(journal);
                    return Ok(self.done(script, output.into_value(), from, &origins));
                }
                Replay::Threw(thrown) => return script.threw(thrown, origins),
                Replay::Failed(failure) => {
                    self.trace.amend(by, Verdict::Deny);
                    return Ok(script.failed(&failure, &origins));
                }
            };
            let (answer, origin) = match &effect {
                Effect::Next { input, options } => {
                    let asked = Asked {
                        input,
                        options: options.as_ref(),
                        first: origins.iter().all(Origin::is_aside),
                    };
                    match self.next(script, asked).await.map_err(|stopped| script.kept(stopped, &journal))? {
                        Ok(answered) => answered,
                        Err(broken) => return Ok(broken),
                    }
                }
                Effect::Approve { message } => self
                    .approve(script, message, journal.len())
                    .map_err(|stopped| script.kept(stopped, &journal))?,
                Effect::Now => aside(json!(self.execute.kernel.clock.now().as_millisecond())),
                Effect::Random => aside(json!(self.execute.services.chance())),
                Effect::CacheGet { key } => aside(self.kept(script, key).await),
                Effect::CacheSet { key, value, ttl } => {
                    self.keep(script, key, value, *ttl).await;
                    aside(Value::Null)
                }
                Effect::Audit { fields } => {
                    self.records.entries.push((by, fields.clone()));
                    aside(Value::Null)
                }
            };
            if let (Answer::Value(value), Effect::Next { .. } | Effect::CacheGet { .. }) = (&answer, &effect)
                && hides_results
            {
                self.records.results.push(Arc::clone(value));
            }
            journal.push(effect, answer);
            origins.push(origin);
        }
    }

    /// Calls what is wrapped. The call's own arguments have passed gate; others, and a repetition, go through it again.
    /// Its future is made here and not where it is waited for: scripts nest, and each would have room for it on the stack.
    fn next<'a>(&'a mut self, script: Script<'a>, asked: Asked<'a>) -> BoxFuture<'a, Next> {
        Box::pin(async move {
            let call = asked.call(script.call);
            // Each run of the tool counts for the session.
            self.counted = false;
            let own = asked.input.is(&script.call.input);
            if asked.first && (own || **asked.input == script.call.input) {
                return Ok(answered(self.wrapped(&call, script.inner).await?));
            }
            match self.again(&call, own).await {
                Again::Run { formed, wrappers } => {
                    let inside = |wrapper: &Wrapper| wrapper.order > script.order;
                    let wrappers: Vec<Wrapper> = wrappers.into_iter().filter(inside).collect();
                    Ok(answered(self.wrapped(formed.as_deref().unwrap_or(&call), &wrappers).await?))
                }
                Again::Ended(ended) => Ok(answered(ended)),
                Again::TooLate => Ok(Ok(too_late())),
                Again::Stopped(decision) => Err(decision),
                Again::Refused(error, decision) => {
                    let answer = Answer::Error { message: error.message, kind: error.kind };
                    Ok(Ok((answer, Origin::Refused(decision))))
                }
            }
        })
    }

    /// The script asks a person. `position` tells its questions of one call apart.
    fn approve(
        &self,
        script: Script<'_>,
        question: &str,
        position: usize,
    ) -> Result<(Answer, Origin), Box<Decision<'static>>> {
        let kernel = self.execute.kernel;
        let input = crate::json::digest(&script.call.input).to_string();
        let about = crate::json::digest(&json!(["approve", input, position, question]));
        if kernel.said_yes(&self.turn.permits, script.by, about) {
            return Ok(aside(Value::Bool(true)));
        }
        if self.attempts > 0 {
            return Ok(too_late());
        }
        let mut decision = kernel.decide_holding(script.call, self.state, self.held());
        // It said what it says already.
        decision.take_trace();
        let reason = Reason {
            policy: Some(script.policy.id.clone()),
            code: reason_code::APPROVAL_REQUIRED.to_owned(),
            message: question.to_owned(),
        };
        decision.ask(script.by, reason, question.to_owned(), about);
        let mut decision = self.refused(decision);
        decision.amend(script.by, Verdict::Suspend);
        Err(decision)
    }

    fn kept<'a>(&'a self, script: Script<'a>, key: &'a Value) -> BoxFuture<'a, Value> {
        Box::pin(async move {
            let super::Execute { kernel, services, .. } = self.execute;
            let Some((name, key)) = self.place(script, key) else { return Value::Null };
            let account = self.execute.account(script.call);
            let space = CacheSpace { name: &name, max_entries: MAX_KEPT, account };
            let found = services
                .ask(kernel.clock, || services.store.cache_get(kernel.clock.now(), space, &key))
                .await;
            found.ok().and_then(|found| found.entry).map_or(Value::Null, |entry| entry.output)
        })
    }

    fn keep<'a>(
        &'a self,
        script: Script<'a>,
        key: &'a Value,
        value: &'a Value,
        ttl: Duration,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let super::Execute { kernel, services, .. } = self.execute;
            let stored_at = kernel.clock.now();
            let (Some((name, key)), Ok(expires_at)) = (self.place(script, key), stored_at.checked_add(ttl))
            else {
                return;
            };
            let account = self.execute.account(script.call);
            let space = CacheSpace { name: &name, max_entries: MAX_KEPT, account };
            // What a script keeps is only a convenience: without the store nothing is kept.
            let found = services.ask(kernel.clock, || services.store.cache_get(stored_at, space, &key)).await;
            if let Ok(found) = found
                && !self.interim
            {
                let entry = CacheEntry { output: value.clone(), stored_at, expires_at };
                let _ = services
                    .ask(kernel.clock, || services.store.cache_put(space, &key, entry, found.generation))
                    .await;
            }
        })
    }

    fn place(&self, script: Script<'_>, key: &Value) -> Option<(String, String)> {
        let view = self.execute.kernel.view(script.call, self.state);
        let key = script.around.key(key, &view, self.execute.session)?;
        Some((space_name(script.by, script.policy, &script.around.scope()), key))
    }

    fn ran(&self, output: Value, dry: bool) -> Ended {
        Ended::Ran(ToolAnswer { output, dry, interim: self.interim })
    }

    /// The script came to its end.
    fn done(&mut self, script: Script<'_>, output: Value, from: Option<usize>, origins: &[Origin]) -> Ended {
        let (ended, verdict) = match from.and_then(|index| origins.get(index)) {
            Some(Origin::Ran { dry }) => (self.ran(output, *dry), Verdict::Pass),
            Some(Origin::Cached(by, age)) => (Ended::Cached(*by, output, *age), Verdict::Pass),
            Some(Origin::Answered(by)) => (Ended::Answered(*by, output), Verdict::Pass),
            // A result that a script made out of what the tool really gave just now is the tool's. One that stands in for a
            // failure or for a call that was never made, or has an old result in it, is the script's.
            _ if origins.iter().any(Origin::is_run)
                && origins.iter().all(|origin| origin.is_run() || origin.is_aside()) =>
            {
                (self.ran(output, is_dry(origins)), Verdict::Rewrite)
            }
            _ => (Ended::Answered(script.by, output), Verdict::Answer),
        };
        self.trace.amend(script.by, verdict);
        ended
    }
}

/// What a script wants `next` to be called with.
#[derive(Clone, Copy)]
struct Asked<'a> {
    input: &'a Passed<'a>,
    options: Option<&'a Passed<'a>>,
    first: bool,
}

impl Asked<'_> {
    /// What `next` calls: the script's own call, where nothing in it is another.
    fn call<'c>(&self, own: &'c ToolCall) -> Cow<'c, ToolCall> {
        let options = self.options.filter(|options| !options.is(&own.options));
        if options.is_none() && self.input.is(&own.input) {
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
    /// A call that was stopped for a person, with what happened so far in the script. What is too large to be kept stops it for
    /// good.
    fn kept(self, mut stopped: Box<Decision<'static>>, journal: &Journal<'_>) -> Box<Decision<'static>> {
        if stopped.effect() == Decided::Suspend {
            match crate::json::to_value(journal) {
                Ok(journal) => stopped.keep_journal(KeptJournal {
                    layer: self.by.layer(),
                    policy: self.policy.id.clone(),
                    journal,
                }),
                Err(error) => {
                    let message =
                        format!("the script of `{}` can't wait for a person: {error}", self.policy.id);
                    let (policy, code) = (Some(self.policy.id.clone()), reason_code::SCRIPT_ERROR.to_owned());
                    stopped.refuse(Decided::Deny, Reason { policy, code, message }, None);
                }
            }
        }
        stopped
    }

    /// The script ended with an error: one that it passes on, or its own.
    fn threw(self, thrown: Thrown, mut origins: Vec<Origin>) -> Nested {
        let Thrown { message, kind, from } = thrown;
        match from.filter(|index| *index < origins.len()).map(|index| origins.swap_remove(index)) {
            Some(Origin::Failed(error, by)) => Ok(Ended::Failed(error, by)),
            Some(Origin::Refused(decision)) => Err(decision),
            _ => {
                let kind = kind.unwrap_or_else(|| reason_code::THROWN.to_owned());
                Ok(Ended::Failed(ToolError::new(message).of_kind(kind), Some(self.by)))
            }
        }
    }

    /// The script itself failed.
    fn failed(self, failure: &ScriptFailure, origins: &[Origin]) -> Ended {
        // Where no tool stands behind the calls, a script finds nothing to work on.
        if is_dry(origins) {
            return Ended::Ran(ToolAnswer { output: Value::Null, dry: true, interim: false });
        }
        let ran = origins.iter().any(|origin| matches!(origin, Origin::Ran { .. } | Origin::Failed(..)));
        let when = if ran { "after the tool was called" } else { "before the tool was called" };
        let message =
            format!("the script of `{}` failed {when}: {}", self.policy.id, self.around.explain(failure));
        let cut_short = failure.mismatch || failure.limit;
        let kind = if cut_short && ran { OutcomeKind::Indeterminate } else { OutcomeKind::Failed };
        let code = match meter::is_exceeded() {
            true => reason_code::WORK_EXCEEDED,
            false => reason_code::SCRIPT_ERROR,
        };
        Ended::Broken(Some(self.by), Reason { policy: None, code: code.to_owned(), message }, kind)
    }
}

impl Origin {
    fn is_run(&self) -> bool {
        matches!(self, Self::Ran { .. })
    }

    fn is_aside(&self) -> bool {
        matches!(self, Self::Aside)
    }
}

fn is_dry(origins: &[Origin]) -> bool {
    origins.iter().any(|origin| matches!(origin, Origin::Ran { dry: true }))
}

fn too_late() -> (Answer, Origin) {
    let ToolError { message, kind } = again::too_late();
    (Answer::Error { message, kind }, Origin::Aside)
}

/// What the script is told of a call of what it wraps; an end that nothing can be made of is passed on as it is.
fn answered(ended: Ended) -> Result<(Answer, Origin), Ended> {
    let value = |output: Value| Answer::Value(Arc::new(output));
    Ok(match ended {
        Ended::Ran(ToolAnswer { output, dry, .. }) => (value(output), Origin::Ran { dry }),
        Ended::Cached(by, output, age) => (value(output), Origin::Cached(by, age)),
        Ended::Answered(by, output) => (value(output), Origin::Answered(by)),
        Ended::Given(output, _) => (value(output), Origin::Aside),
        Ended::Failed(error, by) => {
            let answer = Answer::Error { message: error.message.clone(), kind: error.kind.clone() };
            (answer, Origin::Failed(error, by))
        }
        broken @ Ended::Broken(..) => return Err(broken),
    })
}

/// An answer that has nothing to do with what is wrapped.
fn aside(value: Value) -> (Answer, Origin) {
    (Answer::Value(Arc::new(value)), Origin::Aside)
}
