//! Bundles that permit what is permitted anyway, and stop nothing.

use super::checked::Checked;
use super::{Lint, Needs};
use crate::diagnostic::{Diagnostic, Diagnostics, NOTHING_RESTRICTED};
use crate::policy::Unmatched;

pub(super) static LINT: Lint = Lint { code: &NOTHING_RESTRICTED, needs: Needs::Nothing, check };

const STOPPING: [&str; 6] = ["deny", "halt", "approval", "validate", "rate_limit", "concurrency"];

fn check(checked: &Checked<'_>, found: &mut Diagnostics) {
    let permissive = checked.chains.defaults().unmatched == Unmatched::Allow;
    if !permissive || checked.policies.iter().any(|written| written.is(&STOPPING)) {
        return;
    }
    let help = "write `defaults: { unmatched: deny }` if only what is named may run, or say with `deny`, `halt` or `approval` what may not";
    let said = checked.files.iter().find_map(|file| file.root.get("defaults")?.get("unmatched"));
    let allow = checked.policies.iter().find(|written| written.is(&["allow"]));
    let diagnostic = match (said, allow) {
        (_, Some(allow)) => allow.tells(
            &NOTHING_RESTRICTED,
            allow.kind.key_span,
            "this permits what would run anyway: calls that nothing matches are allowed, and nothing here denies, halts or asks",
        ),
        (Some(said), None) => Diagnostic::new(
            &NOTHING_RESTRICTED,
            said.span,
            "every call runs: calls that nothing matches are allowed, and nothing here denies, halts or asks",
        ),
        // Who only hides or records has not said that calls are to be stopped.
        (None, None) => return,
    };
    found.push(diagnostic.help(help));
}
