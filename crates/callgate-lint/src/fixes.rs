//! Fixes: applies the fixes of diagnostics in passes, until none is left.

use std::collections::BTreeMap;

use crate::lint_inputs::LintInputs;
use crate::linter::{LintResult, lint};
use crate::registry::SUPPRESSION_CODES;
use callgate::diagnostic::Fix;
use callgate::policy::build_replacements;

/// Maximum number of passes. A fix can enable another one; the limit stops two that undo each other.
const MAX_FIX_PASSES: usize = 16;

/// Result of applying fixes to a bundle.
#[derive(Debug)]
pub struct FixResult {
    /// The bundle after the last pass, with the diagnostics that remain.
    pub linted: LintResult,
    /// The changed files by name, each with its text before and after.
    pub changed: BTreeMap<String, (String, String)>,
    /// The number of applied fixes.
    pub fixes: usize,
}

/// Applies the fixes of all diagnostics, and then of those in the fixed bundle. A pass that would cause an error is discarded. Nothing
/// is written to disk.
pub fn fix(linted: LintResult, beside: &LintInputs<'_>) -> FixResult {
    let mut fixed = FixResult { linted, changed: BTreeMap::new(), fixes: 0 };
    for _ in 0..MAX_FIX_PASSES {
        let Some((texts, applied)) = apply_fixes(&fixed.linted) else { break };
        let next = lint(build_replacements(texts.clone(), &fixed.linted.sources), beside);
        if next.diagnostics.has_errors() {
            break;
        }
        for (name, text) in texts {
            let before = fixed.linted.sources.iter().find(|(_, source)| source.name() == name);
            let before = before.map(|(_, source)| source.text().to_owned()).unwrap_or_default();
            if before != text {
                fixed.changed.entry(name).or_insert((before, String::new())).1 = text;
            }
        }
        fixed.fixes += applied;
        fixed.linted = next;
    }
    fixed
}

/// Returns the texts of all rules files after one pass, and the number of fixes. Returns `None` if there are no fixes to apply.
fn apply_fixes(linted: &LintResult) -> Option<(Vec<(String, String)>, usize)> {
    let all = || {
        linted.diagnostics.iter().filter_map(|diagnostic| Some((diagnostic.code, diagnostic.fix.as_ref()?)))
    };
    // Fix suppression comments first: a corrected comment may suppress a diagnostic that would be fixed otherwise.
    let of_comments = all().filter(|(code, _)| SUPPRESSION_CODES.contains(code));
    let mut fixes: Vec<&Fix> = of_comments.map(|(_, fix)| fix).collect();
    if fixes.is_empty() {
        fixes = all().map(|(_, fix)| fix).collect();
    }
    if fixes.is_empty() || linted.policies.is_none() {
        return None;
    }
    let mut applied = 0;
    let mut texts = Vec::new();
    for file in &linted.files {
        let source = linted.sources.get(file.source)?;
        let (text, count) = Fix::apply(fixes.iter().copied(), &linted.sources, file.source)?;
        applied += count;
        texts.push((source.name().to_owned(), text));
    }
    (applied > 0).then_some((texts, applied))
}
