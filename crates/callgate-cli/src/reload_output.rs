//! `--watch`: hot reload of rules, with the results reported on stderr.

use std::path::PathBuf;

use super::exit::CommandError;
use super::output::{
    count_noun, print_displayed_build_errors, print_note, print_test_failures, print_warning,
};
use callgate::engine::{Candidate, Engine, RejectionReason, ReloadEvent};
use callgate::reload::{Reloader, RulesWatcher, WatcherOptions};
use callgate_policy_tests::PolicyTests;

/// Number of characters shown of a revision.
const REVISION_LENGTH: usize = 12;

/// Maximum number of changes listed for pending rules.
const MAX_LISTED_RELAXATIONS: usize = 20;

/// Starts watching, until the returned value is dropped.
pub(super) fn start_watcher(engine: &Engine, policies: &[PathBuf]) -> Result<RulesWatcher, CommandError> {
    let output = ReloadOutput {
        confirm: "restart to apply them, or revert the changes".to_owned(),
        displayed: Box::new(str::to_owned),
    };
    report_changes(engine, output);
    watch(Reloader::new(engine.clone(), policies).with_tests(PolicyTests))
}

/// The same for candidate rules.
pub(super) fn start_candidate_watcher(
    candidate: &Candidate,
    policies: &[PathBuf],
) -> Result<RulesWatcher, CommandError> {
    let changed = candidate.clone();
    candidate.engine().on_change(move |change| report_candidate_event(change, &changed));
    let mut reloader = Reloader::for_candidate(candidate, policies).with_tests(PolicyTests);
    if !candidate.is_loaded() {
        // Reports at once why.
        reloader.reload();
    }
    watch(reloader)
}

/// What differs in the reports of rules from different sources.
pub(super) struct ReloadOutput {
    /// What to do with pending rules.
    pub(super) confirm: String,
    /// A text with the names of files as the user knows them.
    pub(super) displayed: Box<dyn Fn(&str) -> String + Send + Sync>,
}

/// Reports changes of the rules of an engine.
pub(super) fn report_changes(engine: &Engine, output: ReloadOutput) {
    let active = engine.clone();
    engine.on_change(move |change| report_event(change, &active, &output));
}

fn watch(reloader: Reloader) -> Result<RulesWatcher, CommandError> {
    RulesWatcher::start(reloader, WatcherOptions::default())
        .map_err(|error| CommandError::new(format!("the rules can't be watched: {error}")))
}

fn short_revision(revision: &str) -> &str {
    revision.get(..REVISION_LENGTH).unwrap_or(revision)
}

fn report_event(change: &ReloadEvent, engine: &Engine, output: &ReloadOutput) {
    let active = engine.revision();
    let active = short_revision(&active);
    match change {
        ReloadEvent::Applied { from, to, .. } => {
            print_note(format!("rules reloaded: revision {} → {}", short_revision(from), short_revision(to)));
        }
        ReloadEvent::Rejected(refused) => {
            print_reason(&refused.reason, &output.displayed);
            print_warning(format!(
                "the reload is rejected, and revision {active} stays active; fix the rules"
            ));
        }
        ReloadEvent::Pending(held) => {
            for widening in held.relaxations.iter().take(MAX_LISTED_RELAXATIONS) {
                print_warning(widening);
            }
            let more = held.relaxations.len().saturating_sub(MAX_LISTED_RELAXATIONS);
            if more > 0 {
                print_warning(format!("and {}", count_noun(more, "more change", "more changes")));
            }
            print_warning(format!(
                "the changed rules (revision {}) may allow more, so revision {active} stays active; {}",
                short_revision(&held.revision),
                output.confirm
            ));
        }
        ReloadEvent::Reverted => print_note(format!("the rules match the active revision {active} again")),
        // The library may add events.
        _ => {}
    }
}

fn report_candidate_event(change: &ReloadEvent, candidate: &Candidate) {
    match change {
        ReloadEvent::Applied { to, .. } => {
            print_note(format!("candidate rules loaded: revision {}", short_revision(to)));
        }
        ReloadEvent::Rejected(refused) => {
            print_reason(&refused.reason, &str::to_owned);
            print_warning(match candidate.is_loaded() {
                true => {
                    "the reload of the candidate rules is rejected, and those before stay loaded; fix the rules"
                }
                false => "the candidate rules can't be loaded, and evaluate no calls; fix the rules",
            });
        }
        ReloadEvent::Reverted => print_note("the candidate rules match the loaded ones again"),
        // Candidate rules are never pending, and the library may add events.
        _ => {}
    }
}

/// Prints why rules are rejected.
pub(super) fn print_reason(reason: &RejectionReason, displayed: &dyn Fn(&str) -> String) {
    match reason {
        RejectionReason::Errors(built) => print_displayed_build_errors(built, displayed),
        why @ RejectionReason::TestFailures(text) => print_test_failures(&displayed(text), why),
        why => print_warning(why),
    }
}
