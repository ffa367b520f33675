//! Lint: policies about a tool's execution that never happens, because a `respond` policy returns a result instead.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::subsumption_index::SubsumptionIndex;
use callgate::diagnostic::{Diagnostics, MOOT_BEHIND_RESPOND};

pub(super) static LINT: Lint = Lint { code: &MOOT_BEHIND_RESPOND, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let answering = SubsumptionIndex::new(checked, |written| written.has_kind(&["respond"]));
    for narrow in checked.enforced_policies() {
        let subject = match narrow.kind.key.as_str() {
            "approval" => "this requires approval of calls",
            "rate_limit" | "concurrency" => "this limits calls",
            "cache" => "this caches the results of calls",
            "around" | "retry" | "timeout" => "this wraps the execution of calls",
            _ => continue,
        };
        let Some(respond) = answering.covering(narrow).into_iter().next() else { continue };
        let message = format!("{subject} that `{}` answers: their tool never runs", respond.id());
        found.push(
            narrow
                .diagnostic(&MOOT_BEHIND_RESPOND, narrow.kind.key_span, message)
                .with_label(respond.kind.key_span, "answered here")
                .with_help(format!("remove `{}`, or let `{}` match fewer calls", narrow.id(), respond.id())),
        );
    }
}
