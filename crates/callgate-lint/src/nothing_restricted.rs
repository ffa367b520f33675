//! Lint: bundles that restrict nothing.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostic, Diagnostics, NOTHING_RESTRICTED};
use callgate::policy::{Defaults, Unmatched};

pub(super) static LINT: Lint = Lint { code: &NOTHING_RESTRICTED, needs: RequiredInput::Nothing, check };

const RESTRICTING_KINDS: [&str; 7] =
    ["deny", "halt", "require", "approval", "validate", "rate_limit", "concurrency"];

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let Defaults { unmatched, unmatched_methods, .. } = checked.compiled.defaults();
    let permissive = unmatched == Unmatched::Allow && unmatched_methods == Unmatched::Allow;
    if !permissive || checked.policies.iter().any(|written| written.has_kind(&RESTRICTING_KINDS)) {
        return;
    }
    let help = "write `defaults: { unmatched: deny }` if only matched calls may run, or add `deny`, `halt` or `approval` policies";
    let unmatched = checked.files.iter().find_map(|file| file.root.get("defaults")?.get("unmatched"));
    let allow = checked.policies.iter().find(|written| written.has_kind(&["allow"]));
    let diagnostic = match (unmatched, allow) {
        (_, Some(allow)) => allow.diagnostic(
            &NOTHING_RESTRICTED,
            allow.kind.key_span,
            "this has no effect: unmatched calls are allowed, and no policy denies, halts or requires approval",
        ),
        (Some(unmatched), None) => Diagnostic::new(
            &NOTHING_RESTRICTED,
            unmatched.span,
            "every call runs: unmatched calls are allowed, and no policy denies, halts or requires approval",
        ),
        // A bundle that only redacts or records may be meant to stop no calls.
        (None, None) => return,
    };
    found.push(diagnostic.with_help(help));
}
