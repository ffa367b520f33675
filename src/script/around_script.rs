//! The script of an `around` policy, run by deterministic replay (durable execution): call + journal → next effect, output or error.
//!
//! The script stops at an effect that has no result in the journal, and runs again from its start once there is one. No thread blocks,
//! and the stored state is plain data.

use std::sync::{Arc, OnceLock};

use super::ScriptCompileError;
use super::compiler::compile;
use super::dependencies::ProgramDependencies;
use super::effect::ScriptEffect;
use super::exported_value::ExportedValue;
use super::fuel::{Fuel, ScriptLimits};
use super::interpreter::{ControlFlow, Interpreter};
use super::journal::{Journal, JournalError};
use super::names::Names;
use super::parser::{Language, catch_panic, parse};
use super::program::{Program, SourcePosition};
use super::replay_host::ReplayHost;
use super::value::ScriptValue;
use crate::call::{ContextReads, Root, SessionState, ToolCall};
use crate::json::{Digest, Value, canonical_text, json};
use crate::path::ArgumentNames;

/// The maximum length of a script, in bytes.
pub const MAX_SCRIPT: usize = 64 << 10;

/// The limits of a script: steps count over all replays of a call, everything else over one replay.
pub static SCRIPT_LIMITS: ScriptLimits = ScriptLimits {
    subject: "the script",
    steps: 500_000,
    string_bytes: 1 << 20,
    total_string_bytes: 16 << 20,
    values: 250_000,
    output_bytes: 16 << 20,
    nesting: 160,
    call_depth: 24,
};

/// A compiled script, which several threads can run at once.
#[derive(Debug)]
pub struct AroundScript {
    program: Program,
    dependencies: ProgramDependencies,
    context_reads: Arc<ContextReads>,
    digest: Digest,
}

/// The input of all replays of one call: the call itself, and the session as it was when the script first started.
#[derive(Clone, Debug)]
pub struct ScriptCall<'c>(Arc<CallSnapshot<'c>>);

#[derive(Debug)]
pub(super) struct CallSnapshot<'c> {
    script: Digest,
    pub(super) call: &'c ToolCall,
    /// The members of the call's context that the script reads.
    context: Arc<ContextReads>,
    /// The annotations that the tool's server declares, if the script reads them.
    pub(super) annotations: Option<&'c Value>,
    /// The parts of the session that the script reads, if any. A copy: the session changes later, and a replay must not see that.
    pub(super) session: Option<Value>,
    /// Computed on demand: a call that stays in this process needs none.
    digest: OnceLock<Digest>,
}

/// The result of one replay.
#[derive(Clone, Debug)]
pub enum ReplayResult<'c> {
    /// The script stopped at an effect that has no result in the journal: perform it, record the result, replay.
    Effect(ScriptEffect<'c>),
    /// The script completed.
    Completed {
        /// The value of the last statement, or the returned value.
        output: ExportedValue<'c>,
        /// The journal entry (from 0) whose result this is, unchanged.
        from: Option<usize>,
    },
    /// The script threw an error, or did not catch one.
    Exception(ScriptException),
    /// The script failed.
    Failed(ScriptRunError),
}

/// The error that ended a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptException {
    /// The message.
    pub message: String,
    /// An identifier that policies can match.
    pub kind: Option<String>,
    /// The journal entry (from 0) whose result this error is; `None` for an error of the script itself.
    pub journal_entry: Option<usize>,
}

/// A failure of a script: an uncaught runtime error, an exceeded limit, or a journal that does not match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptRunError {
    /// The problem.
    pub message: String,
    /// Line and column in the script, both from 1, in characters.
    pub position: Option<(usize, usize)>,
    /// Whether the script requested other effects than the journal holds.
    pub is_mismatch: bool,
    /// Whether the script exceeded a limit.
    pub is_limit: bool,
}

impl ScriptRunError {
    pub(super) fn new(message: impl Into<String>, spot: Option<SourcePosition>) -> Self {
        let position = spot.map(|spot| (spot.line, spot.column));
        Self { message: message.into(), position, is_mismatch: false, is_limit: false }
    }

    pub(super) fn mismatch(message: impl Into<String>, spot: Option<SourcePosition>) -> Self {
        Self { is_mismatch: true, ..Self::new(message, spot) }
    }
}

impl AroundScript {
    /// Compiles a script in Rhai's syntax. Its variables are `input`, which it may change, and `tool`, `server`, `id`,
    /// `context`, `session`, `annotations` and `options`; `next(input)` runs the wrapped execution, and the last value
    /// is the output. Operators and functions are those of [`Predicate`](super::Predicate), and the script functions of
    /// [`FUNCTIONS`](super::FUNCTIONS).
    ///
    /// # Errors
    /// Invalid syntax, an unknown variable or function, a wrong number of arguments, an assignment to a read-only value,
    /// an invalid regex or duration, and Rhai features that scripts do not support.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use callgate::{SessionState, ToolCall};
    /// use callgate::script::{Answer, AroundScript, Journal, ReplayResult, ScriptEffect};
    /// use callgate::json::json;
    ///
    /// let around = AroundScript::compile("let out = next(input); out.seen = true; out").unwrap();
    /// let (call, session) = (ToolCall::new("c1", "search", json!({"q": "x"})), SessionState::default());
    /// let call = around.begin(&call, None, &session).unwrap();
    /// let mut journal = Journal::new(&call);
    ///
    /// let ReplayResult::Effect(next @ ScriptEffect::Next { .. }) = around.replay(&call, &journal) else { panic!() };
    /// journal.push(next, Answer::Value(Arc::new(json!({"hits": 1}))));
    ///
    /// let ReplayResult::Completed { output, .. } = around.replay(&call, &journal) else { panic!() };
    /// assert_eq!(*output, json!({"hits": 1, "seen": true}));
    /// ```
    pub fn compile(text: &str) -> Result<Self, ScriptCompileError> {
        Self::compile_with(text, &Names::default())
    }

    /// Like [`compile`](Self::compile), for a script that uses the constants, functions and groups of a bundle.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_with(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        if text.trim().is_empty() {
            let message = "the script is empty and would return null for every call".to_owned();
            let help = "write `next(input)` where the tool should run".to_owned();
            return Err(ScriptCompileError { message, offset: None, help: Some(help) });
        }
        let ast = parse(text, Language::Script, MAX_SCRIPT)?;
        let compiled = compile(text, &ast, Language::Script, names)?;
        let digest = Digest::compute(format!("around 1\n{text}").as_bytes());
        let context_reads = Arc::new(compiled.dependencies.context.clone());
        Ok(Self { program: compiled.program, dependencies: compiled.dependencies, context_reads, digest })
    }

    /// The digest of the script, to which journals are bound.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The context members that the script reads.
    pub fn context_reads(&self) -> &ContextReads {
        &self.context_reads
    }

    /// The arguments that the script reads or sets, as far as their names are literals.
    pub fn argument_names(&self) -> ArgumentNames {
        self.dependencies.argument_names()
    }

    /// Whether the script reads the session.
    pub fn reads_session(&self) -> bool {
        self.dependencies.roots.contains(&Root::Session)
    }

    /// Captures the input of all replays of one call: the call with its final input, the `annotations` of the tool's server, and
    /// the parts of the session that the script reads. Only the session parts are copied.
    ///
    /// # Errors
    /// The input is not an object, or the script reads an undecided part of the session.
    pub fn begin<'c>(
        &self,
        call: &'c ToolCall,
        annotations: Option<&'c Value>,
        session: &SessionState,
    ) -> Result<ScriptCall<'c>, ScriptRunError> {
        self.dependencies.check_decided(session).map_err(|message| ScriptRunError::new(message, None))?;
        let reads_session = self.dependencies.roots.contains(&Root::Session);
        self.snapshot(
            call,
            annotations,
            reads_session.then(|| self.dependencies.copy_session(session.document())),
        )
    }

    fn snapshot<'c>(
        &self,
        call: &'c ToolCall,
        annotations: Option<&'c Value>,
        session: Option<Value>,
    ) -> Result<ScriptCall<'c>, ScriptRunError> {
        if !call.input.is_object() {
            return Err(ScriptRunError::new("the input is not a JSON object", None));
        }
        let reads_annotations = self.dependencies.roots.contains(&Root::Annotations);
        Ok(ScriptCall(Arc::new(CallSnapshot {
            script: self.digest,
            call,
            context: Arc::clone(&self.context_reads),
            annotations: annotations.filter(|_| reads_annotations),
            session,
            digest: OnceLock::new(),
        })))
    }

    /// Resumes from a stored journal, perhaps of another process. The session values come from the journal.
    ///
    /// # Errors
    /// The journal is invalid, or belongs to another script or call. The same call has the same tool, server, id, input and options,
    /// and the same values of the context and the annotations that the script reads.
    pub fn resume<'c>(
        &self,
        call: &'c ToolCall,
        annotations: Option<&'c Value>,
        journal: &Value,
    ) -> Result<(ScriptCall<'c>, Journal<'c>), JournalError> {
        let mut stored = Journal::parse_stored(journal)?;
        if stored.script != self.digest.to_string() {
            return Err(JournalError::OtherScript);
        }
        if self.dependencies.roots.contains(&Root::Session) != stored.session.is_some() {
            return Err(JournalError::Malformed(
                "the session values that the script reads are missing".to_owned(),
            ));
        }
        let call = self
            .snapshot(call, annotations, stored.session.take())
            .map_err(|failure| JournalError::InvalidCall(failure.message))?;
        if stored.call != call.digest().to_string() {
            return Err(JournalError::OtherCall);
        }
        let journal = Journal::restore(&call, stored);
        Ok((call, journal))
    }

    /// Runs the script from its start, with the effect results of the journal.
    ///
    /// It is deterministic: the same call and journal give the same result, except for the step limit, which counts the steps of
    /// earlier replays with this journal too.
    pub fn replay<'c>(&self, call: &ScriptCall<'c>, journal: &Journal<'c>) -> ReplayResult<'c> {
        let matches = call.0.script == self.digest
            && (Arc::ptr_eq(&call.0, &journal.call.0)
                || (journal.call.0.script == self.digest && journal.call.digest() == call.digest()));
        if !matches {
            let message = "the journal belongs to another script or call";
            return ReplayResult::Failed(ScriptRunError::mismatch(message, None));
        }
        catch_panic(|| self.run(&call.0, journal)).unwrap_or_else(|_| {
            ReplayResult::Failed(ScriptRunError::new(
                "the evaluation of the script failed with an internal error",
                None,
            ))
        })
    }

    fn run<'c>(&self, call: &CallSnapshot<'c>, journal: &Journal<'c>) -> ReplayResult<'c> {
        let outside = ReplayHost { call, journal, effects_completed: 0, result: None };
        let work = Fuel::with_steps_taken(&SCRIPT_LIMITS, journal.steps.get());
        let mut evaluation = Interpreter::new(&self.program, outside, work);
        let result = evaluation.run(vec![ScriptValue::Json(&call.call.input)]);
        journal.steps.set(evaluation.fuel.steps_taken());
        let unanswered = evaluation.host.effects_completed < journal.entries.len();
        match (result, evaluation.host.result.take()) {
            (Err(ControlFlow::End), Some(end)) => end,
            (Err(ControlFlow::LimitExceeded(message, spot)), _) => {
                let failure = ScriptRunError::new(message, Some(spot));
                ReplayResult::Failed(ScriptRunError { is_limit: true, ..failure })
            }
            _ if unanswered => {
                let message = "the script requests fewer effects than the journal holds";
                ReplayResult::Failed(ScriptRunError::mismatch(message, None))
            }
            (Ok(value), _) => evaluation.host.complete(&value, &evaluation.fuel),
            (Err(ControlFlow::Error(message, spot) | ControlFlow::Absent(message, spot)), _) => {
                ReplayResult::Failed(ScriptRunError::new(message, Some(spot)))
            }
            (Err(ControlFlow::Exception(error, spot)), _) => evaluation.host.exception(&error, spot),
            (Err(_), _) => ReplayResult::Failed(ScriptRunError::new("the script ended unexpectedly", None)),
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

    /// The digest of the call, to which a stored journal is bound.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| {
            let CallSnapshot { call, context, annotations, .. } = &*self.0;
            let context = context.select(&call.context);
            let names = json!([call.tool, call.server, call.id]);
            let values = [&call.input, &context, &call.options, annotations.unwrap_or(&Value::Null)]
                .map(canonical_text)
                .join(",");
            Digest::compute(format!("[{},{values}]", canonical_text(&names)).as_bytes())
        })
    }
}
