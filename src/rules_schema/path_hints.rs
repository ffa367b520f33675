//! Help texts for invalid paths.

use super::did_you_mean::did_you_mean;
use crate::call::Root;
use crate::path::Path;

/// Returns the fix for an invalid path, where `given` is the help of the parser's error: that help if it is specific, else
/// the probable path, else the general form of a path.
pub(super) fn path_help(text: &str, given: Option<String>) -> String {
    if text.trim().strip_prefix("$.data").is_some_and(|rest| rest.starts_with(['.', '['])) {
        return "a path below `$.data` has names and indices only; write an expression, as in `expr: data.limits.filter(|x| x > 1)`"
            .to_owned();
    }
    let general = |help: &String| help.starts_with("write ") || help.starts_with("start with ");
    if let Some(expression) = rewrite_as_expression(text) {
        return format!("write an expression: `expr: {expression}`");
    }
    let certain = given.clone().filter(|help| !general(help));
    certain
        .or_else(|| rewrite_as_path(text).map(|path| format!("write `{path}`")))
        .or(given.filter(|help| help.starts_with("start with ")))
        .unwrap_or_else(|| "write a path such as `$.input.amount` or `$.input.items[0].name`".to_owned())
}

/// Rewrites a path with an index that is read from the call, `$.input.items[$.input.k]`, as the expression `input.items[input.k]`.
fn rewrite_as_expression(text: &str) -> Option<String> {
    let expression = text.trim().strip_prefix("$.")?.replace("[$.", "[");
    let has_index =
        |root: &str| expression.contains(&format!("[{root}.")) || expression.contains(&format!("[{root}]"));
    let is_plain = !expression.contains(['?', '*', '@', '\'', '"', ' ', '$']) && !expression.contains("..");
    (is_plain && Root::ALL.map(Root::name).into_iter().any(has_index)).then_some(expression)
}

/// Rewrites `text` (`input.amount`, `/input/amount`, `{{ input.amount }}`, `$.input[amount]`) as a path over the call.
fn rewrite_as_path(text: &str) -> Option<String> {
    if text.contains(['?', '(', ')', '"', '\'', ' ']) && !text.starts_with("{{") {
        return None;
    }
    let bare = text.trim_start_matches("{{").trim_end_matches("}}").trim();
    let mut words = bare.split(['.', '/', '[', ']']).filter(|word| !word.is_empty()).peekable();
    if words.peek() == Some(&"$") {
        words.next();
    }
    let first = words.next()?.trim_start_matches('$');
    let mut path = "$".to_owned();
    match Root::from_name(first)
        .map(Root::name)
        .or_else(|| did_you_mean(first, Root::ALL.map(Root::name).into_iter()))
    {
        Some(root) => push_segment(&mut path, root),
        None => {
            push_segment(&mut path, Root::Input.name());
            push_segment(&mut path, first);
        }
    }
    words.for_each(|word| push_segment(&mut path, word));
    Path::parse(&path).is_ok().then_some(path)
}

fn push_segment(path: &mut String, word: &str) {
    let plain =
        word.chars().all(|c| c.is_alphanumeric() || c == '_') && !word.starts_with(|c: char| c.is_numeric());
    match word {
        "*" => path.push_str("[*]"),
        _ if plain => path.push_str(&format!(".{word}")),
        _ if word.parse::<u32>().is_ok() => path.push_str(&format!("[{word}]")),
        _ => path.push_str(&format!("['{word}']")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_computed_indices_as_expressions() {
        for (text, meant) in [
            ("$.input.items[$.input.k]", Some("input.items[input.k]")),
            ("$.session.facts.order[input.id].status", Some("session.facts.order[input.id].status")),
            ("$.input.items[0]", None),
            ("$.input[amount]", None),
            ("$.input.items[?@.a == $.input.b]", None),
        ] {
            assert_eq!(rewrite_as_expression(text).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn rewrites_other_notations_as_paths() {
        for (text, meant) in [
            ("input.amount", Some("$.input.amount")),
            (".input.amount", Some("$.input.amount")),
            ("$input.amount", Some("$.input.amount")),
            ("$.input.", Some("$.input")),
            ("/input/items/0", Some("$.input.items[0]")),
            ("{{ input.amount }}", Some("$.input.amount")),
            ("{{ $.input.amount }}", Some("$.input.amount")),
            ("$.input[amount]", Some("$.input.amount")),
            ("$.input[0", Some("$.input[0]")),
            ("$.input.total-amount", Some("$.input['total-amount']")),
            ("$.inptu.amount", Some("$.input.amount")),
            ("arguments.amount", Some("$.input.amount")),
            ("amount", Some("$.input.amount")),
            ("amount > 100", None),
            ("$.input.items[?(@.price >)]", None),
            ("", None),
            ("$", None),
        ] {
            assert_eq!(rewrite_as_path(text).as_deref(), meant, "{text}");
        }
    }
}
