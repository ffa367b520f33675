//! Rules arguments of commands: loads `--policies` and reports errors on stderr.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check;
use super::exit::{CommandError, ExitStatus};
use super::output::{print_build_errors, print_error, print_test_failures};
use callgate::engine::{self, RejectionReason};
use callgate::policy::CompiledPolicies;
use callgate::reload;
use callgate::source::is_rules_file;
use callgate_policy_tests::PolicyTests;

/// Loads rules. If they can't be used, reports the errors and returns the exit status.
pub(super) fn load(policies: &[PathBuf]) -> Result<Arc<CompiledPolicies>, ExitStatus> {
    reload::load(policies, &PolicyTests).map_err(|why| {
        match &why {
            RejectionReason::Errors(built) => {
                print_build_errors(built);
                return check::exit_status(&built.diagnostics);
            }
            RejectionReason::TestFailures(text) => print_test_failures(text, &why),
            why => print_error(why.summary()),
        }
        ExitStatus::Failure
    })
}

/// Loads rules as [`load`] does; without paths, returns rules that allow every call.
pub(super) fn load_or_allow_all(policies: &[PathBuf]) -> Result<Arc<CompiledPolicies>, ExitStatus> {
    if !policies.is_empty() {
        return load(policies);
    }
    engine::load_text("policies: []").map_err(|error| {
        print_error(error);
        ExitStatus::Error
    })
}

/// Separates rules and calls: in `--policies a b calls.jsonl`, the calls are among the values of the option. `which` is the error
/// message if no calls are given.
pub(super) fn split_rules_and_calls<'a>(
    policies: &'a [PathBuf],
    calls: Option<&'a Path>,
    which: &str,
) -> Result<(&'a [PathBuf], &'a Path), CommandError> {
    match (calls, policies.split_last()) {
        (Some(calls), _) => Ok((policies, calls)),
        (None, Some((calls, policies)))
            if !policies.is_empty() && !calls.is_dir() && !is_rules_file(calls) =>
        {
            Ok((policies, calls))
        }
        _ => Err(CommandError::new(which)),
    }
}
