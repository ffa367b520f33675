//! The script of an `around` policy, run by replay over a journal: at an effect whose answer the journal lacks it stops,
//! and it is run again from its start once there is one. No thread waits, and what is kept is data.

use std::sync::{Arc, OnceLock};

use super::ScriptError;
use super::effect::Effect;
use super::evaluate::{Evaluation, Stop};
use super::journal::{Journal, JournalError};
use super::lower::lower;
use super::outside::Outside;
use super::parse::{Language, guarded, parse};
use super::passed::Passed;
use super::program::{Program, Spot};
use super::reads::Reads;
use super::value::Val;
use super::work::{Limits, Work};
use crate::call::{ContextReads, Root, SessionState, ToolCall};
use crate::json::{Digest, Value, canonical, json};
use crate::path::ArgumentNames;

/// A script longer than this, in bytes, is refused.
pub const MAX_SCRIPT: usize = 64 << 10;

/// What a script may spend: its steps count over all replays of a call, all else over one replay.
pub static SCRIPT_LIMITS: Limits = Limits {
    who: "the script",
    steps: 500_000,
    text: 1 << 20,
    texts: 16 << 20,
    values: 250_000,
    output: 16 << 20,
    depth: 160,
    calls: 24,
};

/// A compiled script. It can be run on several threads at once.
#[derive(Debug)]
pub struct Around {
    program: Program,
    reads: Reads,
    context_reads: Arc<ContextReads>,
    digest: Digest,
}

/// What the replays of one call read: the call itself, and the session as it was when the script first started.
#[derive(Clone, Debug)]
pub struct ScriptCall<'c>(Arc<Seen<'c>>);

#[derive(Debug)]
pub(super) struct Seen<'c> {
    script: Digest,
    pub(super) call: &'c ToolCall,
    /// What the script reads of the call's context.
    context: Arc<ContextReads>,
    /// What the tool's server says of it, if the script reads that.
    pub(super) annotations: Option<&'c Value>,
    /// What the script reads of the session, if it does. A copy: the session goes on, and a replay must not see it.
    pub(super) session: Option<Value>,
    /// Reckoned when it is needed: a call that stays in this process needs none.
    digest: OnceLock<Digest>,
}

/// How far a replay came.
#[derive(Clone, Debug)]
pub enum Replay<'c> {
    /// To an effect that the journal has no answer to: perform it, note the answer, replay.
    Effect(Effect<'c>),
    /// To its end.
    Done {
        /// The value of its last statement, or what it returned.
        output: Passed<'c>,
        /// The entry of the journal (from 0) whose answer this is, unchanged.
        from: Option<usize>,
    },
    /// To an error that it did not catch, or threw itself.
    Threw(Thrown),
    /// It failed.
    Failed(ScriptFailure),
}

/// An error that a script ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thrown {
    /// What went wrong.
    pub message: String,
    /// A word that policies can match.
    pub kind: Option<String>,
    /// The entry of the journal (from 0) whose answer this error is; none where it is the script's own.
    pub from: Option<usize>,
}

/// Why a script failed: it raised an error and did not catch it, met a limit, or does not fit its journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptFailure {
    /// What went wrong.
    pub message: String,
    /// Where: line and column in the script, both from 1, in characters.
    pub position: Option<(usize, usize)>,
    /// The script asked for other effects than the journal holds.
    pub mismatch: bool,
    /// The script met a limit.
    pub limit: bool,
}

impl ScriptFailure {
    pub(super) fn new(message: impl Into<String>, spot: Option<Spot>) -> Self {
        let position = spot.map(|spot| (spot.line, spot.column));
        Self { message: message.into(), position, mismatch: false, limit: false }
    }

    pub(super) fn mismatch(message: impl Into<String>, spot: Option<Spot>) -> Self {
        Self { mismatch: true, ..Self::new(message, spot) }
    }
}

impl Around {
    /// Compiles a script in Rhai's syntax. Its variables are `input`, which it may change, and `tool`, `server`, `id`,
    /// `context`, `session`, `annotations` and `options`; `next(input)` runs what it is wrapped around, and its last value
    /// is the output. Operators and functions are those of [`Predicate`](super::Predicate), and the ones for scripts in
    /// [`FUNCTIONS`](super::FUNCTIONS).
    ///
    /// Errors: bad syntax, an unknown variable or function, a wrong number of arguments, a change to what is read-only,
    /// an invalid regex or span of time, and what of Rhai a script has no use for.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use callgate::call::{SessionState, ToolCall};
    /// use callgate::script::{Answer, Around, Effect, Journal, Replay};
    /// use callgate::json::json;
    ///
    /// let around = Around::compile("let out = next(input); out.seen = true; out").unwrap();
    /// let (call, session) = (ToolCall::new("c1", "search", json!({"q": "x"})), SessionState::default());
    /// let call = around.begin(&call, None, &session).unwrap();
    /// let mut journal = Journal::new(&call);
    ///
    /// let Replay::Effect(next @ Effect::Next { .. }) = around.replay(&call, &journal) else { panic!() };
    /// journal.push(next, Answer::Value(Arc::new(json!({"hits": 1}))));
    ///
    /// let Replay::Done { output, .. } = around.replay(&call, &journal) else { panic!() };
    /// assert_eq!(*output, json!({"hits": 1, "seen": true}));
    /// ```
    pub fn compile(text: &str) -> Result<Self, ScriptError> {
        if text.trim().is_empty() {
            let message = "the script is empty, and would answer every call with null".to_owned();
            let help = "write `next(input)` where the tool is to run".to_owned();
            return Err(ScriptError { message, offset: None, help: Some(help) });
        }
        let ast = parse(text, Language::Script, MAX_SCRIPT)?;
        let compiled = lower(text, &ast, Language::Script)?;
        let digest = Digest::of(format!("around 1\n{text}").as_bytes());
        let context_reads = Arc::new(compiled.reads.context.clone());
        Ok(Self { program: compiled.program, reads: compiled.reads, context_reads, digest })
    }

    /// The digest of the script: journals are bound to it.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The members of the context that it reads.
    pub fn context_reads(&self) -> &ContextReads {
        &self.context_reads
    }

    /// The arguments that it reads or sets, as far as their names are written out.
    pub fn argument_names(&self) -> ArgumentNames {
        self.reads.argument_names()
    }

    /// Whether it reads what the session has seen.
    pub fn reads_session(&self) -> bool {
        self.reads.roots.contains(&Root::Session)
    }

    /// What the replays of one call read: the call with its final input, `annotations` (what the tool's server says of it),
    /// and of the session what the script reads. Only the last is copied. Errors: an input that is no object, and a part of
    /// the session that could not be decided.
    pub fn begin<'c>(
        &self,
        call: &'c ToolCall,
        annotations: Option<&'c Value>,
        session: &SessionState,
    ) -> Result<ScriptCall<'c>, ScriptFailure> {
        self.reads.refuse_unsettled(session).map_err(|message| ScriptFailure::new(message, None))?;
        let reads_session = self.reads.roots.contains(&Root::Session);
        self.seen(call, annotations, reads_session.then(|| self.reads.of_session(session.document())))
    }

    fn seen<'c>(
        &self,
        call: &'c ToolCall,
        annotations: Option<&'c Value>,
        session: Option<Value>,
    ) -> Result<ScriptCall<'c>, ScriptFailure> {
        if !call.input.is_object() {
            return Err(ScriptFailure::new("the input is no JSON object", None));
        }
        let reads_annotations = self.reads.roots.contains(&Root::Annotations);
        Ok(ScriptCall(Arc::new(Seen {
            script: self.digest,
            call,
            context: Arc::clone(&self.context_reads),
            annotations: annotations.filter(|_| reads_annotations),
            session,
            digest: OnceLock::new(),
        })))
    }

    /// Goes on with a journal that was kept, perhaps by another process. The session is as the journal holds it.
    /// Errors: no journal, or one of another script, or of another call: tool, server, id, input and options must be the same, and
    /// of the context and the annotations what the script reads.
    pub fn resume<'c>(
        &self,
        call: &'c ToolCall,
        annotations: Option<&'c Value>,
        journal: &Value,
    ) -> Result<(ScriptCall<'c>, Journal<'c>), JournalError> {
        let mut stored = Journal::of_stored(journal)?;
        if stored.script != self.digest.to_string() {
            return Err(JournalError::OtherScript);
        }
        if self.reads.roots.contains(&Root::Session) != stored.session.is_some() {
            return Err(JournalError::Malformed(
                "what the script reads of the session is missing".to_owned(),
            ));
        }
        let call = self
            .seen(call, annotations, stored.session.take())
            .map_err(|failure| JournalError::Call(failure.message))?;
        if stored.call != call.digest().to_string() {
            return Err(JournalError::OtherCall);
        }
        let journal = Journal::restore(&call, stored);
        Ok((call, journal))
    }

    /// Runs the script from its start, with the answers of the journal.
    ///
    /// It is deterministic: the same call and journal give the same replay, but for the limit on steps, to
    /// which those of earlier replays with this journal count.
    pub fn replay<'c>(&self, call: &ScriptCall<'c>, journal: &Journal<'c>) -> Replay<'c> {
        let fits = call.0.script == self.digest
            && (Arc::ptr_eq(&call.0, &journal.call.0)
                || (journal.call.0.script == self.digest && journal.call.digest() == call.digest()));
        if !fits {
            let message = "the journal is of another script or call";
            return Replay::Failed(ScriptFailure::mismatch(message, None));
        }
        guarded(|| self.run(&call.0, journal)).unwrap_or_else(|_| {
            Replay::Failed(ScriptFailure::new("the script made its evaluation fail", None))
        })
    }

    fn run<'c>(&self, call: &Seen<'c>, journal: &Journal<'c>) -> Replay<'c> {
        let outside = Outside { call, journal, answered: 0, end: None };
        let work = Work::after(&SCRIPT_LIMITS, journal.steps.get());
        let mut evaluation = Evaluation::new(&self.program, outside, work);
        let result = evaluation.run(vec![Val::Json(&call.call.input)]);
        journal.steps.set(evaluation.work.steps_taken());
        let unanswered = evaluation.world.answered < journal.entries.len();
        match (result, evaluation.world.end.take()) {
            (Err(Stop::End), Some(end)) => end,
            (Err(Stop::Limit(message, spot)), _) => {
                let failure = ScriptFailure::new(message, Some(spot));
                Replay::Failed(ScriptFailure { limit: true, ..failure })
            }
            _ if unanswered => {
                let message = "the script asks for fewer effects than the journal holds";
                Replay::Failed(ScriptFailure::mismatch(message, None))
            }
            (Ok(value), _) => evaluation.world.done(&value, &evaluation.work),
            (Err(Stop::Wrong(message, spot)), _) => Replay::Failed(ScriptFailure::new(message, Some(spot))),
            (Err(Stop::Threw(error, spot)), _) => evaluation.world.threw(&error, spot),
            (Err(_), _) => Replay::Failed(ScriptFailure::new("the script ended where it cannot", None)),
        }
    }
}

impl ScriptCall<'_> {
    pub(super) fn script(&self) -> Digest {
        self.0.script
    }

    pub(super) fn session(&self) -> Option<&Value> {
        self.0.session.as_ref()
    }

    /// The digest of the call: a journal that is kept is bound to it.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| {
            let Seen { call, context, annotations, .. } = &*self.0;
            let context = context.part_of(&call.context);
            let names = json!([call.tool, call.server, call.id]);
            let values = [&call.input, &context, &call.options, annotations.unwrap_or(&Value::Null)]
                .map(canonical)
                .join(",");
            Digest::of(format!("[{},{values}]", canonical(&names)).as_bytes())
        })
    }
}
