//! Caches shared by people of whom others may not see what one of them may.
//!
//! Without `scope` a result is shared by calls of one tenant and principal only, and gate is asked of every call, also of
//! one that a cache answers. So a result reaches the wrong person only where it is shared by several, and either the
//! execution itself depends on who calls, or gate decides by an argument that the key leaves out.

use super::checked::Checked;
use super::condition::WrittenTest;
use super::written::Written;
use super::{Lint, Needs};
use crate::call::Root;
use crate::diagnostic::{CACHE_SHARED_TOO_WIDELY, Diagnostics, Span};
use crate::source::Node;

pub(super) static LINT: Lint = Lint { code: &CACHE_SHARED_TOO_WIDELY, needs: Needs::Nothing, check };

fn check(checked: &Checked<'_>, found: &mut Diagnostics) {
    for cache in checked.acting().filter(|written| written.is(&["cache"])) {
        let Some(scope) = cache.kind.value.get("scope") else { continue };
        let Some(word @ ("shared" | "tenant")) = scope.as_str() else { continue };
        let key = Key::of(cache);
        if key.reads_context {
            continue;
        }
        for other in checked.beside(cache).into_iter().filter(|other| other.acts()) {
            let Some((span, what)) = dependence(other, word, &key) else { continue };
            let who = if word == "shared" { "everyone" } else { "all of a tenant" };
            let message = format!("{who} shares what is kept, and `{}` {what}", other.id());
            found.push(
                cache
                    .tells(&CACHE_SHARED_TOO_WIDELY, scope.span, message)
                    .label(span, "it depends on who calls")
                    .help("leave `scope` out, so that nobody gets what another one asked for, or put what it depends on into `key`"),
            );
            break;
        }
    }
}

/// What a cache's key is made of.
struct Key<'a> {
    /// Places; none where all arguments are the key, or an expression is.
    places: Option<Vec<&'a str>>,
    reads_context: bool,
}

impl<'a> Key<'a> {
    fn of(cache: &Written<'a>) -> Self {
        let Some(node) = cache.kind.value.get("key") else {
            return Self { places: None, reads_context: false };
        };
        if let Some(expression) = node.get("expr").and_then(Node::as_str) {
            return Self { places: None, reads_context: expression.contains("context") };
        }
        let nodes = node.items().unwrap_or(std::slice::from_ref(node));
        let places: Vec<&str> = nodes.iter().filter_map(Node::as_str).collect();
        let reads_context = places.iter().any(|place| place.starts_with("$.context"));
        Self { places: Some(places), reads_context }
    }

    fn leaves_out(&self, path: &str) -> bool {
        let Some(places) = &self.places else { return false };
        !places.iter().any(|place| {
            path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }
}

/// How a policy makes what is kept depend on who calls, beyond what the scope keeps apart.
fn dependence(other: &Written<'_>, scope: &str, key: &Key<'_>) -> Option<(Span, String)> {
    if other.is(&["around"]) {
        let script = other.kind.value.get("script")?;
        let reads = script.as_str()?.contains("context.");
        return reads.then(|| (script.span, "asks in its script who calls".to_owned()));
    }
    if !other.is(&["deny", "halt", "approval", "allow"]) {
        return None;
    }
    let asks_who = other.tests.iter().find(|test| names_caller(test, scope))?;
    let left_out = other
        .tests
        .iter()
        .find(|test| test.path.root() == Root::Input && key.leaves_out(test.path.text()))?;
    let what = format!("decides by `{}`, which is not in the key, who may ask", left_out.path.text());
    Some((asks_who.node.span, what))
}

/// Whether a test looks at who calls, other than at the tenant that the scope keeps apart.
fn names_caller(test: &WrittenTest<'_>, scope: &str) -> bool {
    let kept_apart = |path: &str| scope == "tenant" && path.starts_with("$.context.tenant");
    let of_caller = |path: &str| path.starts_with("$.context") && !kept_apart(path);
    let operands = test.operators().filter_map(|operator| operator.value.get("path").and_then(Node::as_str));
    of_caller(test.path.text()) || operands.into_iter().any(of_caller)
}
