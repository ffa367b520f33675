//! Lint: policies that no policy test reaches, in a bundle with tests.

use std::collections::{BTreeMap, HashSet};

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostic, Diagnostics, SourceId, UNTESTED_POLICY};

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

/// The maximum number of policies that a diagnostic names.
const MAX_NAMED: usize = 20;

/// Merges the diagnostics of each file into one, at its first policy, so that a bundle with few tests is reported briefly. Comments
/// have been applied to each policy before.
pub(super) fn merge_by_file(found: &mut Diagnostics) {
    let mut by_file: BTreeMap<Option<SourceId>, Vec<Diagnostic>> = BTreeMap::new();
    for diagnostic in found.iter().filter(|diagnostic| diagnostic.code == &UNTESTED_POLICY) {
        by_file.entry(diagnostic.span.map(|span| span.source)).or_default().push(diagnostic.clone());
    }
    found.retain(|diagnostic| diagnostic.code != &UNTESTED_POLICY);
    for mut of_file in by_file.into_values() {
        of_file.sort_by_key(|diagnostic| diagnostic.span);
        let ids: Vec<String> = of_file
            .iter()
            .filter_map(|diagnostic| Some(format!("`{}`", diagnostic.policy.as_ref()?)))
            .collect();
        let count = of_file.len();
        let Some(first) = of_file.into_iter().next() else { continue };
        if count == 1 {
            found.push(first);
            continue;
        }
        let named = ids.get(..MAX_NAMED).unwrap_or(&ids);
        let more = match count - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("no test reaches {count} policies of this file: {}{more}", named.join(", "));
        let help = "add for each a case with a call that it matches, and one with a call that it does not; `callgate test` runs them";
        found.push(Diagnostic { message, help: Some(help.to_owned()), policy: None, ..first });
    }
}
