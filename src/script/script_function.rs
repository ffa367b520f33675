//! One function of the language: its name, parameters and description, and how it is evaluated.

use super::fuel::{EvalError, Fuel};
use super::value::ScriptValue;

/// One function of the language.
#[derive(Debug)]
pub struct ScriptFunction {
    /// The name.
    pub name: &'static str,
    /// The parameters as in the docs. The first can be a receiver: `to_lower(x)` is `x.to_lower()`.
    pub parameters: &'static [&'static str],
    /// What it returns.
    pub description: &'static str,
    pub(super) implementation: Implementation,
    availability: Availability,
}

/// The languages that have a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Availability {
    Everywhere,
    ScriptsOnly,
}

/// The implementation of a function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Implementation {
    One(for<'r> fn(&Fuel, &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>),
    Two(for<'r> fn(&Fuel, &ScriptValue<'r>, &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>),
    /// The second argument is optional.
    OneOrTwo(
        for<'r> fn(&Fuel, &ScriptValue<'r>, Option<&ScriptValue<'r>>) -> Result<ScriptValue<'r>, EvalError>,
    ),
    Three(
        for<'r> fn(
            &Fuel,
            &ScriptValue<'r>,
            &ScriptValue<'r>,
            &ScriptValue<'r>,
        ) -> Result<ScriptValue<'r>, EvalError>,
    ),
    /// Whether a value exists.
    Existence(Existence),
    /// A string literal with a tool pattern.
    IsTool,
    /// A string and a regex literal.
    Matches,
    /// A value, and detectors as literals.
    Detects,
    /// A value, a source, and the kind of token as a literal.
    Mentioned,
    /// An array and a closure for its elements.
    Closure(ClosureFunction),
    /// Changes the variable, or the member or element of it, that the first argument names.
    Mutation(MutatingFunction),
    /// Writes a line to the trace.
    Print(PrintForm),
    /// Requests an effect from the host.
    Effect(EffectKind),
}

/// A function that runs a closure on the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosureFunction {
    All,
    Some,
    Filter,
    Map,
    Find,
    Reduce,
    Sort,
}

impl ClosureFunction {
    /// The number of parameters that a closure needs. It can have one more, for the index of the element.
    pub(super) fn closure_parameters(self) -> usize {
        match self {
            Self::Reduce | Self::Sort => 2,
            Self::All | Self::Some | Self::Filter | Self::Map | Self::Find => 1,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Some => "some",
            Self::Filter => "filter",
            Self::Map => "map",
            Self::Find => "find",
            Self::Reduce => "reduce",
            Self::Sort => "sort",
        }
    }
}

/// What a test for existence accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existence {
    /// Any value.
    OrNull,
    /// Any value but null.
    NotNull,
}

/// A function that changes its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MutatingFunction {
    Push,
    Pop,
    Insert,
    Remove,
}

/// How a value is written to the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintForm {
    /// A string unchanged, any other value as JSON.
    Text,
    /// Every value as JSON.
    Json,
}

/// An effect that a script can request from its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffectKind {
    Next,
    Approve,
    Now,
    Random,
    CacheGet,
    CacheSet,
    Audit,
}

impl ScriptFunction {
    /// The function as a caller writes it: `contains(string or array, part)`.
    pub fn signature(&self) -> String {
        format!("{}({})", self.name, self.parameters.join(", "))
    }

    /// Whether only scripts have it, not expressions.
    pub fn is_scripts_only(&self) -> bool {
        self.availability == Availability::ScriptsOnly
    }

    /// Whether it is an effect: a request to the host whose result is recorded in the journal.
    pub fn is_effect(&self) -> bool {
        matches!(self.implementation, Implementation::Effect(_))
    }

    /// The minimum number of arguments.
    pub(super) fn min_arguments(&self) -> usize {
        self.parameters.iter().filter(|parameter| !parameter.ends_with('?')).count()
    }

    pub(super) const fn new(
        name: &'static str,
        parameters: &'static [&'static str],
        description: &'static str,
        implementation: Implementation,
    ) -> Self {
        Self { name, parameters, description, implementation, availability: Availability::Everywhere }
    }

    pub(super) const fn new_for_scripts(
        name: &'static str,
        parameters: &'static [&'static str],
        description: &'static str,
        implementation: Implementation,
    ) -> Self {
        Self { name, parameters, description, implementation, availability: Availability::ScriptsOnly }
    }
}
