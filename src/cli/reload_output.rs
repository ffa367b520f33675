//! `--watch`: hot reload of rules, with the results reported on stderr.

use std::path::PathBuf;

use super::exit::CommandError;
use super::output::{amount, note, print_build_errors, print_test_failures, warn};
use crate::engine::{Engine, RejectionReason, ReloadEvent};
use crate::reload::{Reloader, RulesWatcher, WatcherOptions};

/// Number of characters shown of a revision.
const SHOWN: usize = 12;

/// Maximum number of changes listed for pending rules.
const MAX_LISTED_RELAXATIONS: usize = 20;

/// Starts watching, until the returned value is dropped.
pub(super) fn begin(engine: &Engine, policies: &[PathBuf]) -> Result<RulesWatcher, CommandError> {
    let active = engine.clone();
    engine.on_change(move |change| say(change, &active));
    RulesWatcher::start(Reloader::new(engine.clone(), policies), WatcherOptions::default())
        .map_err(|error| CommandError::trouble(format!("the rules can't be watched: {error}")))
}

fn short(revision: &str) -> &str {
    revision.get(..SHOWN).unwrap_or(revision)
}

fn say(change: &ReloadEvent, engine: &Engine) {
    let active = engine.revision();
    let active = short(&active);
    match change {
        ReloadEvent::Applied { from, to } => {
            note(format!("rules reloaded: revision {} → {}", short(from), short(to)));
        }
        ReloadEvent::Refused(refused) => {
            match &refused.why {
                RejectionReason::Errors(built) => print_build_errors(built),
                why @ RejectionReason::Tests(text) => print_test_failures(text, why),
                why => warn(why),
            }
            warn(format!("the reload is rejected, and revision {active} stays active; fix the rules"));
        }
        ReloadEvent::Held(held) => {
            for widening in held.widenings.iter().take(MAX_LISTED_RELAXATIONS) {
                warn(widening);
            }
            let more = held.widenings.len().saturating_sub(MAX_LISTED_RELAXATIONS);
            if more > 0 {
                warn(format!("and {}", amount(more, "more change", "more changes")));
            }
            warn(format!(
                "the changed rules (revision {}) may allow more, so revision {active} stays active; restart to apply \
                 them, or revert the changes",
                short(&held.revision)
            ));
        }
        ReloadEvent::Restored => note(format!("the rules match the active revision {active} again")),
    }
}
