//! `--watch`: hot reload of rules, with the results reported on stderr.

use std::path::PathBuf;

use super::exit::Stop;
use super::output::{amount, complain_of_rules, complain_of_tests, note, warn};
use crate::engine::{Change, Engine, Refusal};
use crate::reload::{Reloader, Watch, WatchOptions};

/// Number of characters shown of a revision.
const SHOWN: usize = 12;

/// Maximum number of changes listed for pending rules.
const LISTED: usize = 20;

/// Starts watching, until the returned value is dropped.
pub(super) fn begin(engine: &Engine, policies: &[PathBuf]) -> Result<Watch, Stop> {
    let active = engine.clone();
    engine.on_change(move |change| say(change, &active));
    Watch::start(Reloader::new(engine.clone(), policies), WatchOptions::default())
        .map_err(|error| Stop::trouble(format!("the rules can't be watched: {error}")))
}

fn short(revision: &str) -> &str {
    revision.get(..SHOWN).unwrap_or(revision)
}

fn say(change: &Change, engine: &Engine) {
    let active = engine.revision();
    let active = short(&active);
    match change {
        Change::TakenIn { from, to } => {
            note(format!("rules reloaded: revision {} → {}", short(from), short(to)));
        }
        Change::Refused(refused) => {
            match &refused.why {
                Refusal::Errors(built) => complain_of_rules(built),
                why @ Refusal::Tests(text) => complain_of_tests(text, why),
                why => warn(why),
            }
            warn(format!("the reload is rejected, and revision {active} stays active; fix the rules"));
        }
        Change::Held(held) => {
            for widening in held.widenings.iter().take(LISTED) {
                warn(widening);
            }
            let more = held.widenings.len().saturating_sub(LISTED);
            if more > 0 {
                warn(format!("and {}", amount(more, "more change", "more changes")));
            }
            warn(format!(
                "the changed rules (revision {}) may allow more, so revision {active} stays active; restart to apply \
                 them, or revert the changes",
                short(&held.revision)
            ));
        }
        Change::Restored => note(format!("the rules match the active revision {active} again")),
    }
}
