//! `--watch`: what becomes of rules that change while calls are read, said on stderr.

use std::path::PathBuf;

use super::exit::Stop;
use super::output::{amount, complain_of_rules, complain_of_tests, note, warn};
use crate::engine::{Change, Engine, Refusal};
use crate::reload::{Reloader, Watch, WatchOptions};

/// Of a revision so much is shown.
const SHOWN: usize = 12;

/// Of what rules would allow, so much is listed.
const LISTED: usize = 20;

/// Watches until what it returns is dropped.
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
            note(format!("changed rules are taken in: revision {} → {}", short(from), short(to)));
        }
        Change::Refused(refused) => {
            match &refused.why {
                Refusal::Errors(built) => complain_of_rules(built),
                why @ Refusal::Tests(text) => complain_of_tests(text, why),
                why => warn(why),
            }
            warn(format!("the changed rules are refused, and revision {active} stays: mend them"));
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
                "the changed rules (revision {}) may allow more, so revision {active} stays: start the run anew to take \
                 them in, or take these changes back",
                short(&held.revision)
            ));
        }
        Change::Restored => note(format!("the rules are again those of revision {active}")),
    }
}
