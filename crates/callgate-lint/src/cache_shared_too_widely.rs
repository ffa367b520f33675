//! Lint: caches that share results between principals or tenants with different permissions.
//!
//! Without `scope`, only calls of one tenant and principal share a result, and the gate phase applies to cache hits, too. So a result
//! reaches the wrong person only if the scope is wider, and if either the execution depends on the caller, or a gate policy decides
//! by an argument that is not part of the key.

use crate::condition_source::TestSource;
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::call::Root;
use callgate::diagnostic::{CACHE_SHARED_TOO_WIDELY, Diagnostics, Span};
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &CACHE_SHARED_TOO_WIDELY, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for cache in checked.enforced_policies().filter(|written| written.has_kind(&["cache"])) {
        let Some(scope) = cache.kind.value.get("scope") else { continue };
        let Some(word @ ("shared" | "tenant")) = scope.as_str() else { continue };
        let key = CacheKeySource::from_cache(cache);
        if key.reads_context {
            continue;
        }
        for other in checked.related_policies(cache).into_iter().filter(|other| other.is_enforced()) {
            let Some((span, reason)) = caller_dependence(other, word, &key) else { continue };
            let callers = if word == "shared" { "all callers" } else { "all callers of a tenant" };
            let message = format!("{callers} share cached results, but `{}` {reason}", other.id());
            found.push(
                cache
                    .diagnostic(&CACHE_SHARED_TOO_WIDELY, scope.span, message)
                    .with_label(span, "depends on the caller")
                    .with_help("remove `scope`, so that callers don't share results, or add what the result depends on to `key`"),
            );
            break;
        }
    }
}

/// The key of a cache.
struct CacheKeySource<'a> {
    /// The paths. `None` if the key consists of all arguments, or is an expression.
    places: Option<Vec<&'a str>>,
    reads_context: bool,
}

impl<'a> CacheKeySource<'a> {
    fn from_cache(cache: &PolicySource<'a>) -> Self {
        let Some(node) = cache.kind.value.get("key") else {
            return Self { places: None, reads_context: false };
        };
        if let Some(expression) = node.get("expr").and_then(YamlNode::as_str) {
            return Self { places: None, reads_context: expression.contains("context") };
        }
        let nodes = node.items().unwrap_or(std::slice::from_ref(node));
        let paths: Vec<&str> = nodes.iter().filter_map(YamlNode::as_str).collect();
        let reads_context = paths.iter().any(|path| path.starts_with("$.context"));
        Self { places: Some(paths), reads_context }
    }

    fn leaves_out(&self, path: &str) -> bool {
        let Some(paths) = &self.places else { return false };
        !paths.iter().any(|key_path| {
            path.strip_prefix(key_path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }
}

/// Returns how a policy makes a cached result depend on the caller, apart from what the scope separates.
fn caller_dependence(
    other: &PolicySource<'_>,
    scope: &str,
    key: &CacheKeySource<'_>,
) -> Option<(Span, String)> {
    if other.has_kind(&["around"]) {
        let script = other.kind.value.get("script")?;
        let reads = script.as_str()?.contains("context.");
        return reads.then(|| (script.span, "reads the caller in its script".to_owned()));
    }
    if !other.stops_calls() && !other.has_kind(&["allow"]) {
        return None;
    }
    let caller_test = other.tests.iter().find(|test| reads_caller(test, scope))?;
    let left_out =
        other.tests.iter().find(|test| test.root() == Some(Root::Input) && key.leaves_out(test.text()))?;
    let reason = format!("decides who may call by `{}`, which is not part of the key", left_out.text());
    Some((caller_test.node.span, reason))
}

/// Whether a test reads the caller, apart from the tenant that the scope separates.
fn reads_caller(test: &TestSource<'_>, scope: &str) -> bool {
    let is_separated = |path: &str| scope == "tenant" && path.starts_with("$.context.tenant");
    let of_caller = |path: &str| path.starts_with("$.context") && !is_separated(path);
    let operands =
        test.operators().filter_map(|operator| operator.value.get("path").and_then(YamlNode::as_str));
    of_caller(test.text()) || operands.into_iter().any(of_caller)
}
