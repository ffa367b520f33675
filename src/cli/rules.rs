//! Rules that a command decides calls by.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check;
use super::exit::{Exit, Stop};
use super::output::{complain, complain_of_rules, complain_of_tests};
use crate::engine::{self, Refusal};
use crate::policy::Chains;
use crate::reload;
use crate::source::is_rules_file;

/// Rules, or how the command ends where they can't be used, which is told.
pub(super) fn load(policies: &[PathBuf]) -> Result<Arc<Chains>, Exit> {
    reload::load(policies).map_err(|why| {
        match &why {
            Refusal::Errors(built) => {
                complain_of_rules(built);
                return check::exit(&built.diagnostics);
            }
            Refusal::Tests(text) => complain_of_tests(text, &why),
            Refusal::NoTests | Refusal::Failure(_) => complain(why.summary()),
        }
        Exit::Fails
    })
}

/// The same where there need not be any: without paths every call passes.
pub(super) fn of(policies: &[PathBuf]) -> Result<Arc<Chains>, Exit> {
    if !policies.is_empty() {
        return load(policies);
    }
    engine::load_text("policies: []").map_err(|error| {
        complain(error);
        Exit::Trouble
    })
}

/// The rules and the calls. In `--policies a b calls.jsonl` the calls stand among the values of the option. `which` is said where none
/// are named.
pub(super) fn and_calls<'a>(
    policies: &'a [PathBuf],
    calls: Option<&'a Path>,
    which: &str,
) -> Result<(&'a [PathBuf], &'a Path), Stop> {
    match (calls, policies.split_last()) {
        (Some(calls), _) => Ok((policies, calls)),
        (None, Some((calls, policies)))
            if !policies.is_empty() && !calls.is_dir() && !is_rules_file(calls) =>
        {
            Ok((policies, calls))
        }
        _ => Err(Stop::trouble(which)),
    }
}
