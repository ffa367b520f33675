//! Policies about running a tool that never runs, because another policy answers in its place.

use super::checked::Checked;
use super::covering::Covering;
use super::{Lint, Needs};
use crate::diagnostic::{Diagnostics, MOOT_BEHIND_RESPOND};

pub(super) static LINT: Lint = Lint { code: &MOOT_BEHIND_RESPOND, needs: Needs::Nothing, check };

fn check(checked: &Checked<'_>, found: &mut Diagnostics) {
    let answering = Covering::new(checked, |written| written.is(&["respond"]));
    for narrow in checked.acting() {
        let what = match narrow.kind.key.as_str() {
            "approval" => "a person is asked about calls",
            "rate_limit" | "concurrency" => "this limits calls",
            "cache" => "this keeps the results of calls",
            "around" | "retry" | "timeout" => "this wraps the execution of calls",
            _ => continue,
        };
        let Some(respond) = answering.of(narrow).into_iter().next() else { continue };
        let message = format!("{what} that `{}` answers: their tool never runs", respond.id());
        found.push(
            narrow
                .tells(&MOOT_BEHIND_RESPOND, narrow.kind.key_span, message)
                .label(respond.kind.key_span, "answered here")
                .help(format!("take `{}` away, or let `{}` answer fewer calls", narrow.id(), respond.id())),
        );
    }
}
