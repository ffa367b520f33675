//! Lint: caches that share results between principals or tenants with different permissions.
//!
//! Without `scope`, only calls of one tenant and principal share a result, and the gate phase applies to cache hits, too. So a result
//! reaches the wrong person only if the scope is wider, and if either the execution depends on the caller, or a gate policy decides
//! by an argument that is not part of the key.

use crate::condition_source::{TestSource, member_path};
use crate::expression_source::{condition_expressions, paths_read};
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
struct CacheKeySource {
    /// The paths and expressions. `None` if the key consists of all arguments, or is one expression.
    places: Option<Vec<String>>,
    reads_context: bool,
}

impl CacheKeySource {
    fn from_cache(cache: &PolicySource<'_>) -> Self {
        let Some(node) = cache.kind.value.get("key") else {
            return Self { places: None, reads_context: false };
        };
        if let Some(expression) = node.get("expr").and_then(YamlNode::as_str) {
            return Self { places: None, reads_context: expression.contains("context") };
        }
        let nodes = node.items().unwrap_or(std::slice::from_ref(node));
        let texts = nodes.iter().filter_map(YamlNode::as_str);
        let paths: Vec<String> =
            texts.map(|text| member_path(text).unwrap_or_else(|| text.to_owned())).collect();
        let reads_context =
            paths.iter().any(|path| path.starts_with("$.context") || path.contains("context."));
        Self { places: Some(paths), reads_context }
    }

    fn leaves_out(&self, path: &str) -> bool {
        let Some(paths) = &self.places else { return false };
        !paths.iter().any(|key_path| {
            path.strip_prefix(key_path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }
}

/// Returns how a policy makes a cached result depend on the caller, apart from what the scope separates.
fn caller_dependence(other: &PolicySource<'_>, scope: &str, key: &CacheKeySource) -> Option<(Span, String)> {
    if other.has_kind(&["around"]) {
        let script = other.kind.value.get("script")?;
        let reads = script.as_str()?.contains("context.");
        return reads.then(|| (script.span, "reads the caller in its script".to_owned()));
    }
    if !other.stops_calls() && !other.has_kind(&["allow"]) {
        return None;
    }
    let Some(caller_test) = other.tests.iter().find(|test| reads_caller(test, scope)) else {
        return caller_expression(other, scope, key);
    };
    let left_out =
        other.tests.iter().find(|test| test.root() == Some(Root::Input) && key.leaves_out(test.text()))?;
    let reason = format!("decides who may call by `{}`, which is not part of the key", left_out.text());
    Some((caller_test.node.span, reason))
}

/// The same for the expressions in the conditions of a policy.
fn caller_expression(other: &PolicySource<'_>, scope: &str, key: &CacheKeySource) -> Option<(Span, String)> {
    let conditions = other.node.get("match")?.get("where")?;
    let expressions = condition_expressions(conditions);
    let read: Vec<String> =
        expressions.iter().flat_map(|source| paths_read(source.text)).map(|(_, path)| path).collect();
    read.iter().find(|path| is_of_caller(path, scope))?;
    let left_out = read.iter().find(|path| path.starts_with("$.input.") && key.leaves_out(path))?;
    let reason = format!("decides who may call by `{left_out}`, which is not part of the key");
    Some((conditions.span, reason))
}

/// Whether a path leads to the caller, apart from the tenant that the scope separates.
fn is_of_caller(path: &str, scope: &str) -> bool {
    path.starts_with("$.context") && !(scope == "tenant" && path.starts_with("$.context.tenant"))
}

/// Whether a test reads the caller, apart from the tenant that the scope separates.
fn reads_caller(test: &TestSource<'_>, scope: &str) -> bool {
    let operands = test.operators().filter_map(|operator| {
        let path = operator.value.get("path").and_then(YamlNode::as_str).map(str::to_owned);
        path.or_else(|| member_path(operator.value.get("expr")?.as_str()?))
    });
    is_of_caller(test.text(), scope) || operands.into_iter().any(|path| is_of_caller(&path, scope))
}
