//! Lint: policies that read the task, in a bundle whose tests set none.

use crate::expression_source::{SourceKind, collect_expressions, find_name};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, TASK_NEVER_SET};

pub(super) static LINT: Lint = Lint { code: &TASK_NEVER_SET, needs: RequiredInput::Tests, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    // Tests with errors don't show that none sets a task.
    let tests = checked.tests.filter(|tests| !tests.diagnostics.has_errors());
    if tests.is_none_or(|tests| tests.suite.sets_task()) {
        return;
    }
    let reads = collect_expressions(checked.files).into_iter().find_map(|source| {
        let is_path = source.kind == SourceKind::Path;
        let at = find_name(source.text, "task").find(|at| {
            let before = source.text.get(..*at).unwrap_or_default();
            let behind = source.text.get(at + "task".len()..).unwrap_or_default();
            let is_member = behind.starts_with(['.', '[', '?']) || is_path && behind.is_empty();
            let is_root = if is_path { before == "$." } else { !before.ends_with(['.', '"', '\'', '`']) };
            is_root && is_member
        })?;
        Some((source, at))
    });
    if let Some((source, at)) = reads {
        let message = "policies read the task, and no test of this bundle sets one".to_owned();
        let diagnostic = source.diagnostic(checked.sources, &TASK_NEVER_SET, at..at + "task".len(), message);
        found.push(diagnostic.with_help(
            "add `task: …` to a case with a value that the user mentions, and a case without one",
        ));
    }
}
