//! Lint: tests of members of `$.output` where the bundle declares how the result is read.

use std::ops::Range;

use crate::expression_source::{condition_expressions, paths_read};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::call::Root;
use callgate::diagnostic::{Diagnostic, Diagnostics, Fix, OUTPUT_OF_DECLARED_RESULT, Span};
use callgate::matcher::NamePattern;
use callgate::source::span_in;

pub(super) static LINT: Lint =
    Lint { code: &OUTPUT_OF_DECLARED_RESULT, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in &checked.policies {
        let Some(tool) = declared_tool(checked, written) else { continue };
        let is_member =
            |path: &str| path.strip_prefix("$.output").is_some_and(|rest| rest.starts_with(['.', '[']));
        for test in written.tests.iter().filter(|test| test.root() == Some(Root::Output)) {
            if is_member(test.text()) {
                let node = test.subject_node;
                let word = span_in(checked.sources, node, word_range("$.".len()));
                let fix = fix(test.text(), word);
                found.push(diagnostic(written, tool, test.text(), node.span).with_fix(fix));
            }
        }
        let conditions = written.node.get("match").and_then(|matcher| matcher.get("where"));
        for source in conditions.map(condition_expressions).unwrap_or_default() {
            for (at, path) in paths_read(source.text).into_iter().filter(|(_, path)| is_member(path)) {
                // In an expression, no `$.` stands before the path.
                let at = source.start + at;
                let span = span_in(checked.sources, source.node, at..at + path.len().saturating_sub(2));
                let word = span_in(checked.sources, source.node, word_range(at));
                found.push(diagnostic(written, tool, &path, span).with_fix(fix(&path, word)));
            }
        }
    }
}

/// The range of `output` in a text.
fn word_range(start: usize) -> Range<usize> {
    start..start + Root::Output.name().len()
}

/// The fix, unless the path leads to a member that MCP results have and `$.result` has not.
fn fix(path: &str, word: Span) -> Option<Fix> {
    let name = path.strip_prefix("$.output.")?.split(['.', '[']).next()?;
    let is_of_mcp = ["content", "structuredContent", "isError", "_meta"].contains(&name);
    (!is_of_mcp).then(|| Fix::replace("read it as declared", word, Root::Result.name()))
}

/// A tool of a policy whose results have a declared format.
fn declared_tool<'a>(checked: &LintContext<'a>, written: &PolicySource<'a>) -> Option<&'a str> {
    let declared = |tool: &&str| checked.compiled.results().declares(tool);
    let exact = written.policy.matcher.tools.iter().filter_map(|pattern| match pattern {
        NamePattern::Exact(name) => Some(name.as_str()),
        _ => None,
    });
    let known = checked.tools_for(written).into_iter().map(|tool| tool.name.as_str());
    exact.chain(known).find(declared)
}

fn diagnostic(written: &PolicySource<'_>, tool: &str, path: &str, span: Span) -> Diagnostic {
    let message = format!(
        "`{path}` is read from the output as the tool returned it, and `results` declares how `{tool}` is read"
    );
    let result = path.replacen("$.output", "$.result", 1);
    written.diagnostic(&OUTPUT_OF_DECLARED_RESULT, span, message).with_help(format!("write `{result}`"))
}
