//! Lint: caches for tools with side effects.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{CACHE_OF_CHANGES, Diagnostics};
use callgate::json::Value;
use callgate::matcher::NamePattern;

pub(super) static LINT: Lint = Lint { code: &CACHE_OF_CHANGES, needs: RequiredInput::Nothing, check };

/// First words of the names of tools with side effects.
const MUTATING_VERBS: [&str; 40] = [
    "add", "approve", "append", "archive", "book", "buy", "cancel", "charge", "clear", "close", "commit",
    "create", "delete", "deploy", "disable", "drop", "edit", "enable", "grant", "insert", "invite", "merge",
    "modify", "move", "pay", "post", "publish", "purge", "push", "refund", "remove", "rename", "reset",
    "revoke", "send", "submit", "transfer", "update", "upload", "write",
];

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in checked.enforced_policies().filter(|written| written.has_kind(&["cache"])) {
        for (pattern, node) in written.tool_patterns() {
            let name = match pattern {
                NamePattern::Exact(name) => name.as_str(),
                NamePattern::Glob(glob) => glob.split('*').next().unwrap_or_default(),
                NamePattern::Regex(_) | NamePattern::Nothing => continue,
            };
            let hints: Vec<bool> = checked
                .matching_tools(pattern)
                .iter()
                .filter_map(|tool| has_side_effects(tool.annotations.as_ref()?))
                .collect();
            let why = if hints.contains(&true) {
                "according to its hint (`readOnlyHint: false`)"
            } else if hints.is_empty()
                && first_word(name).is_some_and(|word| MUTATING_VERBS.contains(&word.as_str()))
            {
                "according to its name"
            } else {
                continue;
            };
            let message =
                format!("`{}` may have side effects {why}, and a cache hit has none", pattern.text());
            found.push(
                written
                    .diagnostic(&CACHE_OF_CHANGES, node.span, message)
                    .with_label(written.kind.key_span, "the second of two equal calls does not reach the tool")
                    .with_help("cache only read-only tools; list the tools that change their data under `invalidate_on`"),
            );
        }
    }
}

/// Returns whether a tool has side effects according to its hints. Returns `None` if they don't tell.
fn has_side_effects(annotations: &Value) -> Option<bool> {
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(read_only), _) => Some(!read_only),
        (None, Some(true)) => Some(true),
        (None, _) => None,
    }
}

/// Returns the first word of a name after its namespace: `create` for `createRefund`, `create-refund` and `shop.create_refund`, but
/// `postal`, not `post`, for `postal_codes`.
fn first_word(name: &str) -> Option<String> {
    let own = name.rsplit(['.', '/', ':']).find(|part| !part.is_empty())?;
    let own = own.rsplit("__").next().unwrap_or(own);
    let first = own.chars().next()?;
    let mut end = own.len();
    for (at, c) in own.char_indices().skip(1) {
        if !c.is_alphanumeric()
            || (c.is_uppercase() && !own.starts_with(|_: char| first.is_uppercase() && at == 1))
        {
            end = at;
            break;
        }
    }
    own.get(..end).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_word_is_the_verb_without_namespace() {
        for (name, word) in [
            ("createRefund", "create"),
            ("create_refund", "create"),
            ("shop.create-refund", "create"),
            ("mcp__shop__create_refund", "create"),
            ("CreateRefund", "create"),
            ("send", "send"),
            ("postal_codes", "postal"),
            ("listUpdates", "list"),
        ] {
            assert_eq!(first_word(name).as_deref(), Some(word), "{name}");
        }
    }
}
