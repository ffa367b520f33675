//! `--candidate`: rules that evaluate every call beside the active ones, without any effect.

use std::path::PathBuf;
use std::time::Duration;

use super::exit::{CommandError, ExitStatus};
use super::output::{count_noun, print_note};
use super::reload_output;
use super::rules_args;
use callgate::engine::{Candidate, CandidateOptions, EngineBuilder, OnFullQueue};
use callgate::reload::{self, RulesWatcher};
use callgate_policy_tests::PolicyTests;

/// How long the end of a gateway waits for its candidate.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);

/// The candidate rules of a command.
#[derive(clap::Args)]
pub(super) struct CandidateArgs {
    /// Also evaluate every call against these candidate rules, without any effect. What they decide otherwise is recorded in the logs
    /// (`--log`) as `candidate_differs`, and summarized by `callgate report`
    #[arg(long, value_name = "PATH", num_args = 1)]
    candidate: Vec<PathBuf>,
}

/// Candidate rules that evaluate calls.
pub(super) struct OpenCandidate {
    candidate: Candidate,
    paths: Vec<PathBuf>,
}

impl CandidateArgs {
    /// Loads the candidate of a command that evaluates recorded calls, and waits for it. If the rules can't be used, reports the errors and
    /// returns the exit status.
    pub(super) fn load(&self) -> Result<Option<OpenCandidate>, ExitStatus> {
        if self.candidate.is_empty() {
            return Ok(None);
        }
        let options = CandidateOptions { on_full: OnFullQueue::Wait };
        let candidate = Candidate::new(rules_args::load(&self.candidate)?, options);
        Ok(Some(OpenCandidate { candidate, paths: self.candidate.clone() }))
    }

    /// Loads the candidate of a command that serves, with further paths. Rules that can't be used are none: the watcher reports why, and
    /// loads them when they are fixed.
    pub(super) fn load_for_service(
        &self,
        configured: Vec<PathBuf>,
    ) -> Result<Option<OpenCandidate>, CommandError> {
        let paths = [self.candidate.clone(), configured].concat();
        if paths.is_empty() {
            return Ok(None);
        }
        let options = CandidateOptions::default();
        let candidate = match reload::load(&paths, &PolicyTests) {
            Ok(rules) => Candidate::new(rules, options),
            Err(_) => Candidate::unloaded(options)
                .ok_or_else(|| CommandError::new("the candidate rules can't be prepared"))?,
        };
        Ok(Some(OpenCandidate { candidate, paths }))
    }
}

impl OpenCandidate {
    /// Adds the candidate to an engine.
    pub(super) fn observe(&self, engine: EngineBuilder) -> EngineBuilder {
        engine.candidate(&self.candidate)
    }

    /// Starts to reload the candidate rules when their files change, until the returned value is dropped.
    pub(super) fn watch(&self) -> Result<RulesWatcher, CommandError> {
        reload_output::start_candidate_watcher(&self.candidate, &self.paths)
    }

    /// Waits for the evaluation of every call, and reports the differences.
    pub(super) fn finish(&self) {
        self.candidate.finish();
        self.report();
    }

    /// Waits for the evaluation of the last calls, for a few seconds at most, and reports the differences.
    pub(super) fn shut_down(&self) {
        self.candidate.finish_within(SHUTDOWN_PATIENCE);
        self.report();
    }

    fn report(&self) {
        if !self.candidate.is_loaded() {
            return;
        }
        let summary = self.candidate.summary();
        let count = |calls: u64| usize::try_from(calls).unwrap_or(usize::MAX);
        let kinds = [
            (summary.stricter, "stricter"),
            (summary.looser, "looser"),
            (summary.different, "different"),
            (summary.arguments, "with other arguments"),
            (summary.result, "with another result"),
            (summary.not_compared, "not compared"),
            (summary.skipped, "skipped, because the candidate was too slow"),
        ];
        let kinds = kinds.iter().enumerate();
        // Whether nothing is stricter or looser is what the reader wants to know.
        let shown = kinds.filter(|(index, (calls, _))| *calls > 0 || *index < 2);
        let shown: Vec<String> = shown.map(|(_, (calls, what))| format!("{calls} {what}")).collect();
        let compared = count_noun(count(summary.compared), "call", "calls");
        print_note(format!("candidate rules: {compared} compared, {}", shown.join(", ")));
    }
}
