//! Lint: policies that no policy test reaches, in a bundle with tests.

use std::collections::HashSet;

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, UNTESTED_POLICY};

pub(super) static LINT: Lint = Lint { code: &UNTESTED_POLICY, needs: RequiredInput::Tests, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    // Tests with errors don't show that a policy is untested.
    let Some(tests) = checked.tests.filter(|tests| !tests.diagnostics.has_errors()) else { return };
    let report = tests.suite.run(checked.compiled);
    let calls = report.cases().flat_map(|case| &case.calls);
    let mut reached: HashSet<&str> =
        calls.flat_map(|call| call.policies.iter().chain(&call.policy)).map(String::as_str).collect();
    // A policy that a test names counts as tested, also if the test expects that it does not match.
    reached.extend(tests.named_policies());
    for written in checked.enforced_policies().filter(|written| !reached.contains(written.id())) {
        found.push(
            written
                .diagnostic(&UNTESTED_POLICY, written.id_span(), format!("no test reaches `{}`", written.id()))
                .with_help("add a case with a call that it matches, and one with a call that it does not; `callgate test` runs them"),
        );
    }
}
