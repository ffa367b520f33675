//! Named values of a bundle (`let`): definition + call → [`NamedResult`].

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::data_set::DataSet;
use super::definition_name::DefinitionName;
use super::dependencies::ProgramDependencies;
use super::fuel::{EvalError, evaluation_depth};
use super::value::ScriptValue;
use crate::call::{CallView, ContextReads, LetMemo, NamedResult, Root};
use crate::diagnostic::Span;
use crate::path::ArgumentNames;

/// The definition of a named value that is computed.
pub trait NamedBody: std::fmt::Debug + Send + Sync {
    /// Evaluates the definition for a call.
    fn evaluate(&self, view: &CallView<'_>) -> NamedResult;
}

/// The definition of a named value that is a path.
pub(super) trait NamedPath: NamedBody {
    /// Reads the value, without a copy of what the call holds.
    fn read<'r>(&'r self, view: &CallView<'r>) -> Result<ScriptValue<'r>, EvalError>;

    /// Whether the path begins at the arguments.
    fn begins_at_arguments(&self) -> bool;

    /// The constants and the keys to the one that it always is. Returns `None` for a part of the call.
    fn constant_keys(&self) -> Option<(&Arc<DataSet>, Vec<String>)>;
}

/// How a named value is evaluated.
#[derive(Debug)]
pub(super) enum NamedDefinition {
    /// It reads a member of the call or of another value, with this number of links: reading it again costs less than a copy.
    Path(Box<dyn NamedPath>, usize),
    /// It is computed, at most once for each state of a call.
    Computed(Box<dyn NamedBody>),
}

/// A named value.
#[derive(Debug)]
pub struct NamedValue {
    name: String,
    /// Identifies the value in a [`LetMemo`](crate::call::LetMemo).
    pub(super) id: u64,
    pub(super) definition: NamedDefinition,
    pub(super) dependencies: ProgramDependencies,
    is_condition: bool,
    /// The definition as written, with the location of its name.
    source: Option<(String, Span)>,
    /// The computed values that it reads, directly or through others, each after those that it reads itself.
    prerequisites: Vec<Arc<Self>>,
}

/// How deep evaluations may nest before the values that a value reads are evaluated one after the other instead.
const MAX_LAZY_DEPTH: usize = 48;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl NamedValue {
    /// Creates the named value of a condition that reads these members of the call.
    pub fn from_condition(name: &str, condition: Box<dyn NamedBody>, reads: ConditionReads) -> Self {
        let ConditionReads { roots, context, arguments, definitions } = reads;
        let dependencies = ProgramDependencies::from_parts(roots, context, arguments, definitions);
        Self { is_condition: true, ..Self::new(name, NamedDefinition::Computed(condition), dependencies) }
    }

    pub(super) fn new(name: &str, definition: NamedDefinition, dependencies: ProgramDependencies) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let prerequisites = Vec::new();
        Self {
            name: name.to_owned(),
            id,
            definition,
            dependencies,
            is_condition: false,
            source: None,
            prerequisites,
        }
    }

    /// Sets the definition as written, with the location of its name.
    #[must_use]
    pub fn with_source(self, text: String, span: Span) -> Self {
        Self { source: Some((text, span)), ..self }
    }

    /// The definition as written, with the location of its name.
    pub fn source(&self) -> Option<(&str, Span)> {
        self.source.as_ref().map(|(text, span)| (text.as_str(), *span))
    }

    /// Sets the values that it names.
    #[must_use]
    pub(super) fn with_named<'v>(mut self, named: impl IntoIterator<Item = &'v Arc<Self>>) -> Self {
        let mut known = HashSet::new();
        for value in named {
            let computed =
                Some(value).filter(|value| matches!(value.definition, NamedDefinition::Computed(_)));
            for value in value.prerequisites.iter().chain(computed) {
                if known.insert(value.id) {
                    self.prerequisites.push(Arc::clone(value));
                }
            }
        }
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a condition, which keeps its truth where a policy names it.
    pub fn is_condition(&self) -> bool {
        self.is_condition
    }

    /// Whether it may be an argument of the call or a part of one. A path is one only if it begins at `input`.
    pub(super) fn may_be_argument(&self) -> bool {
        match &self.definition {
            NamedDefinition::Path(path, _) => path.begins_at_arguments(),
            NamedDefinition::Computed(_) => self.dependencies.roots.contains(&Root::Input),
        }
    }

    /// The constants and the keys to the one that it always is. Returns `None` for any other value.
    pub(super) fn constant_keys(&self) -> Option<(&Arc<DataSet>, Vec<String>)> {
        match &self.definition {
            NamedDefinition::Path(path, _) => path.constant_keys(),
            NamedDefinition::Computed(_) => None,
        }
    }

    /// The definitions that it names itself.
    pub fn definitions(&self) -> &BTreeSet<DefinitionName> {
        &self.dependencies.definitions
    }

    /// The members of the call that it reads, directly or through other named values.
    pub fn roots_read(&self) -> &BTreeSet<Root> {
        &self.dependencies.roots
    }

    /// The result for a call, if it was evaluated. Returns `None` also for a value that only reads a member.
    pub fn known_result<'m>(&self, memo: &'m LetMemo) -> Option<&'m NamedResult> {
        memo.find(self.id)
    }

    /// Evaluates it for a call, unless the call's memo holds the result.
    pub fn evaluate(&self, view: &CallView<'_>) -> NamedResult {
        let own_memo = LetMemo::default();
        let memo = view.lets.unwrap_or(&own_memo);
        let view = CallView { lets: Some(memo), elements: None, ..*view };
        match &self.definition {
            NamedDefinition::Path(path, _) => path.evaluate(&view),
            NamedDefinition::Computed(body) => self.evaluate_once(&**body, memo, &view).clone(),
        }
    }

    /// Evaluates the definition, unless the memo holds the result. In a deep evaluation the values that it reads come first, so that a
    /// long row of them does not exhaust the stack.
    pub(super) fn evaluate_once<'m>(
        &self,
        body: &dyn NamedBody,
        memo: &'m LetMemo,
        view: &CallView<'_>,
    ) -> &'m NamedResult {
        if evaluation_depth() > MAX_LAZY_DEPTH {
            for value in &self.prerequisites {
                if let NamedDefinition::Computed(body) = &value.definition {
                    memo.get_or_evaluate(value.id, || body.evaluate(view));
                }
            }
        }
        memo.get_or_evaluate(self.id, || body.evaluate(view))
    }
}

/// The value of a result.
///
/// # Errors
/// It is absent or undecided.
pub(super) fn read_result<'r>(name: &str, result: &'r NamedResult) -> Result<ScriptValue<'r>, EvalError> {
    match result {
        NamedResult::Value(value) => Ok(ScriptValue::Json(value)),
        NamedResult::Time(value) => Ok(ScriptValue::Time(*value)),
        NamedResult::OpenCondition => {
            Err(format!("`{name}` is open: a value that it tests is absent").into())
        }
        NamedResult::Absent(why) => Err(EvalError::Absent(why.clone()).in_named(name)),
        NamedResult::Undecided(why) => Err(EvalError::Error(why.clone()).in_named(name)),
    }
}

/// What a condition reads.
#[derive(Clone, Debug, Default)]
pub struct ConditionReads {
    /// The members of the call.
    pub roots: BTreeSet<Root>,
    /// The members of the context.
    pub context: ContextReads,
    /// The arguments.
    pub arguments: ArgumentNames,
    /// The definitions that it names.
    pub definitions: BTreeSet<DefinitionName>,
}
