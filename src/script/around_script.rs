//! The script of an `around` policy, run by deterministic replay (durable execution): call + journal → next effect, output or error.
//!
//! The script stops at an effect that has no result in the journal, and runs again from its start once there is one. No thread blocks,
//! and the stored state is plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::ScriptCompileError;
use super::caught_panic::catch_panic;
use super::code_branch::{self, CodeBranch};
use super::compiler::compile;
use super::control_flow::ControlFlow;
use super::definition_name::DefinitionName;
use super::dependencies::ProgramDependencies;
use super::fuel::{Fuel, ScriptLimits};
use super::interpreter::Interpreter;
use super::journal::{Journal, JournalError};
use super::language::Language;
use super::named_value::NamedValue;
use super::names::Names;
use super::printed_lines::PrintedLines;
use super::program::Program;
use super::replay_host::ReplayHost;
use super::replay_result::{ReplayResult, ScriptRunError};
use super::script_call::{CallSnapshot, ScriptCall, ScriptConstants};
use super::value::ScriptValue;
use crate::call::{CallView, ContextReads, LetMemo, NamedResult, Root, SessionState, ToolCall};
use crate::diagnostic::Span;
use crate::json::{Digest, Value, json};
use crate::path::ArgumentNames;

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
    /// The named values that it reads.
    lets: Vec<Arc<NamedValue>>,
    digest: Digest,
    branches: Vec<CodeBranch>,
}

impl AroundScript {
    /// Compiles a script in Rhai's syntax. Its variables are `input`, which it may change, and `tool`, `server`, `id`,
    /// `context`, `session`, `annotations` and `options`; `next(input)` runs the wrapped execution, and the last value
    /// is the output. Operators and functions are those of [`Predicate`](super::Predicate), and the script functions of
    /// [`functions`](super::functions).
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

    /// Like [`compile`](Self::compile), for a script that uses the names of a bundle. Named values are constants in it: they are evaluated
    /// when it begins, and its journal keeps them.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_with(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        if text.trim().is_empty() {
            let message = "the script is empty and would return null for every call".to_owned();
            let help = "write `next(input)` where the tool should run".to_owned();
            return Err(ScriptCompileError {
                message,
                offset: None,
                help: Some(help),
                is_unknown_name: false,
            });
        }
        let compiled = compile(text, Language::Script, names)?;
        let context_reads = Arc::new(compiled.dependencies.context.clone());
        let definitions = &compiled.dependencies.definitions;
        let digest = digest(text, definitions, names);
        let lets = definitions.iter().filter_map(|name| match name {
            DefinitionName::Let(name) => names.find_let(name).flatten().cloned(),
            _ => None,
        });
        let lets = lets.collect();
        Ok(Self {
            program: compiled.program,
            dependencies: compiled.dependencies,
            context_reads,
            lets,
            digest,
            branches: compiled.branches,
        })
    }

    /// Its functions and the arms of `switch`.
    pub fn branches(&self) -> &[CodeBranch] {
        &self.branches
    }

    /// Sets where the branches are in the rules.
    pub fn locate_branches(&mut self, mut span_of: impl FnMut(Range<usize>) -> Span) {
        code_branch::locate(&mut self.branches, &mut span_of);
    }

    /// The definitions of the bundle that the script names.
    pub fn definitions(&self) -> &BTreeSet<DefinitionName> {
        &self.dependencies.definitions
    }

    /// The members of the call that the script reads, directly or through named values.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        self.dependencies.roots.clone()
    }

    /// The digest of the script and of the definitions that it reaches, to which journals are bound.
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
        let constants = ScriptConstants {
            session: reads_session.then(|| self.dependencies.copy_session(session.document())),
            lets: self.evaluate_lets(call, annotations, session),
        };
        self.snapshot(call, annotations, constants)
    }

    fn evaluate_lets(
        &self,
        call: &ToolCall,
        annotations: Option<&Value>,
        session: &SessionState,
    ) -> BTreeMap<String, NamedResult> {
        let memo = LetMemo::default();
        let view = CallView { annotations, lets: Some(&memo), ..CallView::new(call, session) };
        self.lets.iter().map(|value| (value.name().to_owned(), value.evaluate(&view))).collect()
    }

    fn snapshot<'c>(
        &self,
        call: &'c ToolCall,
        annotations: Option<&'c Value>,
        constants: ScriptConstants,
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
            constants,
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
        let constants = stored.take_constants();
        if self.dependencies.roots.contains(&Root::Session) != constants.session.is_some() {
            return Err(JournalError::Malformed(
                "the session values that the script reads are missing".to_owned(),
            ));
        }
        if !self.lets.iter().all(|value| constants.lets.contains_key(value.name())) {
            return Err(JournalError::Malformed("named values that the script reads are missing".to_owned()));
        }
        let call = self
            .snapshot(call, annotations, constants)
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
        let outside = ReplayHost {
            call,
            journal,
            effects_completed: 0,
            result: None,
            printed: PrintedLines::default(),
        };
        let work = Fuel::with_steps_taken(&SCRIPT_LIMITS, journal.steps.get());
        let mut evaluation = Interpreter::new(&self.program, outside, work);
        let result = evaluation.run(vec![ScriptValue::Json(&call.call.input)]);
        journal.steps.set(evaluation.fuel.steps_taken());
        journal.printed.set(std::mem::take(&mut evaluation.host.printed));
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

/// The digest of a script and of the definitions that it reaches.
fn digest(text: &str, definitions: &BTreeSet<DefinitionName>, names: &Names) -> Digest {
    let reached = names.digests_of(definitions);
    let reached =
        reached.map(|(name, digest)| json!([name.section(), name.name(), digest.to_string()]).to_string());
    let reached: String = reached.collect();
    Digest::compute(format!("around 1\n{text}{reached}").as_bytes())
}
