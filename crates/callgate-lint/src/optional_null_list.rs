//! Lint: tests of the elements of an argument that may be null.

use crate::argument_lookup::{ArgumentLookup, PathLookup, permitted_types};
use crate::condition_source::{EachMode, TestSource};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::diagnostic::{Diagnostics, OPTIONAL_NULL_LIST};
use callgate::json::JsonType;
use callgate::path::Path;

pub(super) static LINT: Lint = Lint { code: &OPTIONAL_NULL_LIST, needs: RequiredInput::Tools, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let arguments = ArgumentLookup::new(checked);
    for written in &checked.policies {
        for test in written.tests.iter().filter(|test| !test.is_singular()) {
            let Some(list) = nullable_list(&arguments, written, test) else { continue };
            let quantifier = match test.each {
                EachMode::Any => "any_of",
                EachMode::Every => "every",
                EachMode::None => "none",
            };
            let text = test.text();
            let message = format!(
                "`{list}` may be null according to the tool's schema, and then this test is undecided"
            );
            let help = format!(
                "write `{quantifier}: {{ path: \"{text}\", all: [ … ] }}`, for which null has no elements"
            );
            found.push(
                written.diagnostic(&OPTIONAL_NULL_LIST, test.subject_node.span, message).with_help(help),
            );
        }
    }
}

/// Returns the path of the list whose elements a test reads, if a schema permits both an array and null.
fn nullable_list<'a>(
    arguments: &ArgumentLookup<'_, 'a>,
    written: &PolicySource<'a>,
    test: &TestSource<'_>,
) -> Option<String> {
    let list = test.text().split_once("[*]").map(|(list, _)| list)?;
    let path = Path::parse(list).ok().filter(Path::is_singular)?;
    let PathLookup::Found(schemas) = arguments.find(written, &path) else { return None };
    let permits = |wanted| {
        schemas.iter().any(|schema| permitted_types(schema).is_some_and(|types| types.contains(&wanted)))
    };
    (permits(JsonType::Null) && permits(JsonType::Array)).then(|| list.to_owned())
}
