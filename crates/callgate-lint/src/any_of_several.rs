//! Lint: tests that permit a call if one of several values passes.

use crate::condition_source::{EachMode, TestSource};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::call::Root;
use callgate::diagnostic::{ANY_OF_SEVERAL, Diagnostics};

pub(super) static LINT: Lint = Lint { code: &ANY_OF_SEVERAL, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in &checked.policies {
        let permits = written.has_kind(&["allow", "respond"]);
        let restricts = written.stops_calls();
        for test in written.tests.iter().filter(|test| accepts_any_of_several(test)) {
            // Under `not`, a passing value lifts a restriction, and a failing one permits the call.
            let lifts = (permits && test.positive) || (restricts && !test.positive);
            if !lifts {
                continue;
            }
            let each_entry = test.operator("each");
            let span = each_entry.map_or(test.subject_node.span, |each| each.value.span);
            let path = test.text();
            let message = match permits {
                true => {
                    format!("one passing value of `{path}` permits the call, whatever the others are")
                }
                false => {
                    format!("one passing value of `{path}` lifts this restriction, whatever the others are")
                }
            };
            found.push(
                written
                    .diagnostic(&ANY_OF_SEVERAL, span, message)
                    .with_help("write `each: every` if all values must pass"),
            );
        }
    }
}

fn accepts_any_of_several(test: &TestSource<'_>) -> bool {
    let permissive =
        test.operators().any(|operator| !["ne", "not_in", "type", "length"].contains(&operator.key.as_str()));
    test.each == EachMode::Any && !test.is_singular() && test.root() == Some(Root::Input) && permissive
}
