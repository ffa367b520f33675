//! Functions of scripts: those that change a variable, and effects.

use crate::script::script_function::{
    EffectKind, Implementation, MutatingFunction, PrintForm, ScriptFunction,
};

pub(super) const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new_for_scripts(
        "insert",
        &["array", "index", "value"],
        "inserts an element before an index; beyond the end it is appended, and a negative index counts from the end",
        Implementation::Mutation(MutatingFunction::Insert),
    ),
    ScriptFunction::new_for_scripts(
        "pop",
        &["array"],
        "removes the last element of an array and returns it",
        Implementation::Mutation(MutatingFunction::Pop),
    ),
    ScriptFunction::new_for_scripts(
        "push",
        &["array", "value"],
        "appends an element to an array",
        Implementation::Mutation(MutatingFunction::Push),
    ),
    ScriptFunction::new_for_scripts(
        "remove",
        &["object", "key"],
        "removes a key from an object and returns whether it existed",
        Implementation::Mutation(MutatingFunction::Remove),
    ),
    ScriptFunction::new_for_scripts(
        "print",
        &["value"],
        "writes a string, or any other value as JSON, to the trace of the outcome: at most 64 lines of a run of the script, redacted. A function \
         that a condition calls prints nothing",
        Implementation::Print(PrintForm::Text),
    ),
    ScriptFunction::new_for_scripts(
        "debug",
        &["value"],
        "as `print`, but a string as JSON, too",
        Implementation::Print(PrintForm::Json),
    ),
    ScriptFunction::new_for_scripts(
        "next",
        &["input", "options?"],
        "runs the tool, or the next inner wrapper, with this input (and these options for the host's executor), and \
         returns its output; its error is thrown as `#{message, kind}`, with an empty string for a missing `kind`",
        Implementation::Effect(EffectKind::Next),
    ),
    ScriptFunction::new_for_scripts(
        "approve",
        &["message"],
        "requests human approval; returns `true` once approved, and throws otherwise",
        Implementation::Effect(EffectKind::Approve),
    ),
    ScriptFunction::new_for_scripts(
        "now",
        &[],
        "the current time, in milliseconds since 1970 (UTC)",
        Implementation::Effect(EffectKind::Now),
    ),
    ScriptFunction::new_for_scripts(
        "random",
        &[],
        "a random number from 0 to below 1",
        Implementation::Effect(EffectKind::Random),
    ),
    ScriptFunction::new_for_scripts(
        "cache_get",
        &["key"],
        "the cached value of a key (any JSON value), or null",
        Implementation::Effect(EffectKind::CacheGet),
    ),
    ScriptFunction::new_for_scripts(
        "cache_set",
        &["key", "value", "ttl"],
        "caches a value under a key for a duration such as `\"60s\"`",
        Implementation::Effect(EffectKind::CacheSet),
    ),
    ScriptFunction::new_for_scripts(
        "audit",
        &["object"],
        "adds fields to the audit record",
        Implementation::Effect(EffectKind::Audit),
    ),
];
