//! Runs the lints over a bundle.

use std::collections::HashSet;
use std::sync::Arc;

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::LintInputs;
use crate::registry::LINTS;
use crate::suppressions;
use crate::type_check;
use crate::untested_policy;
use callgate::diagnostic::{Code, Diagnostics, IMPOSSIBLE_TYPE, Span, UNKNOWN_ARGUMENT, UNKNOWN_MEMBER};
use callgate::policy::{CompiledPolicies, LoadedBundle};

/// A bundle with all its diagnostics, errors and lints.
#[derive(Debug)]
pub struct LintResult {
    /// The compiled bundle. `None` if there is an error.
    pub policies: Option<Arc<CompiledPolicies>>,
    /// The built bundle, with the lints among its diagnostics, and without its `policies`.
    pub bundle: LoadedBundle,
}

impl std::ops::Deref for LintResult {
    type Target = LoadedBundle;

    fn deref(&self) -> &LoadedBundle {
        &self.bundle
    }
}

/// Runs every lint whose input is available, and removes what comments in the files suppress. A bundle with errors is not linted.
pub fn lint(mut built: LoadedBundle, beside: &LintInputs<'_>) -> LintResult {
    let Some(policies) = built.policies.take().map(Arc::new) else {
        return LintResult { policies: None, bundle: built };
    };
    let checked = LintContext::new(&policies, &built, beside);
    let mut found = Diagnostics::default();
    let applicable: Vec<&Lint> = LINTS.into_iter().filter(|lint| checked.has_input(lint.needs)).collect();
    for lint in &applicable {
        (lint.check)(&checked, &mut found);
    }
    type_check::check(&checked, &mut found);
    let codes: Vec<&Code> = applicable.iter().map(|lint| lint.code).collect();
    suppressions::apply_suppressions(&checked, &codes, &mut found);
    untested_policy::merge_by_file(&mut found);
    merge_in_definitions(&built, &mut found);
    remove_repeated(&mut found);
    built.diagnostics.extend(found);
    built.diagnostics.sort();
    LintResult { policies: Some(policies), bundle: built }
}

/// Reports a name once: as an argument that no tool has, unless the type check proves more of it.
fn remove_repeated(found: &mut Diagnostics) {
    let spans = |code: &Code| -> HashSet<Option<Span>> {
        found.iter().filter(|diagnostic| diagnostic.code == code).map(|diagnostic| diagnostic.span).collect()
    };
    let (impossible, unknown) = (spans(&IMPOSSIBLE_TYPE), spans(&UNKNOWN_ARGUMENT));
    found.retain(|diagnostic| {
        let is = |code: &Code| diagnostic.code == code;
        !(is(&UNKNOWN_ARGUMENT) && impossible.contains(&diagnostic.span)
            || is(&UNKNOWN_MEMBER) && unknown.contains(&diagnostic.span))
    });
}

/// Reports a problem of a named value once, whatever the number of policies that use it.
fn merge_in_definitions(built: &LoadedBundle, found: &mut Diagnostics) {
    let sections = built.files.iter().flat_map(|file| [file.root.get("let"), file.root.get("defaults")]);
    let sections: Vec<Span> = sections.flatten().map(|section| section.span).collect();
    let contains = |outer: &Span, inner: &Span| {
        outer.source == inner.source && outer.start() <= inner.start() && inner.end() <= outer.end()
    };
    let mut known = HashSet::new();
    found.retain(|diagnostic| {
        let span = diagnostic.span.filter(|span| sections.iter().any(|section| contains(section, span)));
        span.is_none_or(|span| known.insert((diagnostic.code.id, span, diagnostic.message.clone())))
    });
}
