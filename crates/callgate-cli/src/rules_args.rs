//! Rules arguments of commands: loads `--policies` and reports errors on stderr; with `--tools` and `--context`, what calls are evaluated
//! with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check;
use super::exit::{CommandError, ExitStatus};
use super::json_inputs::{read_context, read_tools};
use super::output::{print_build_errors, print_error, print_test_failures};
use callgate::engine::{self, RejectionReason};
use callgate::json::Map;
use callgate::policy::CompiledPolicies;
use callgate::reload;
use callgate::source::is_rules_file;
use callgate::tools::ToolDescriptor;
use callgate_policy_tests::PolicyTests;

// Not a doc comment, which would replace the description of the command.
// What the calls of a file are evaluated with.
#[derive(clap::Args)]
pub(super) struct EvaluationArgs {
    /// Rules files, or directories to search for them
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    policies: Vec<PathBuf>,
    /// The tool descriptors: a JSON array of {name, description?, input_schema?, annotations?, server?}, or the result of an MCP
    /// tools/list [default: the tools that the rules declare]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// A JSON object, the context of every call; members of a call's own context override it
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
}

impl EvaluationArgs {
    /// Separates rules and calls: in `--policies a b calls.jsonl`, the calls are among the values of the option. `which` is the error
    /// message if no calls are given.
    pub(super) fn split_rules_and_calls<'a>(
        &'a self,
        calls: Option<&'a Path>,
        which: &str,
    ) -> Result<(&'a [PathBuf], &'a Path), CommandError> {
        match (calls, self.policies.split_last()) {
            (Some(calls), _) => Ok((&self.policies, calls)),
            (None, Some((calls, policies)))
                if !policies.is_empty() && !calls.is_dir() && !is_rules_file(calls) =>
            {
                Ok((policies, calls))
            }
            _ => Err(CommandError::new(which)),
        }
    }

    /// Reads `--tools`. Without it, the tools are those that the rules declare.
    pub(super) fn read_tools(&self, rules: &CompiledPolicies) -> Result<Vec<ToolDescriptor>, CommandError> {
        match &self.tools {
            Some(path) => read_tools(path),
            None => Ok(rules.tools().to_vec()),
        }
    }

    /// Reads `--context`; empty without it.
    pub(super) fn read_context(&self) -> Result<Map, CommandError> {
        Ok(self.context.as_deref().map(read_context).transpose()?.unwrap_or_default())
    }
}

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
