//! Lint: scripts that are near the evaluation limits.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::diagnostic::{COSTLY_SCRIPT, Diagnostics};
use callgate::script::{MAX_SCRIPT, SCRIPT_LIMITS};
use callgate::source::{YamlNode, YamlValue, span_in};

pub(super) static LINT: Lint = Lint { code: &COSTLY_SCRIPT, needs: RequiredInput::Nothing, check };

/// Approximate minimum number of steps of a loop iteration.
const STEPS_PER_ITERATION: u64 = 4;

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in &checked.policies {
        let script = written.kind.value.get("script").filter(|_| written.has_kind(&["around"]));
        let mut texts: Vec<&YamlNode> = script.into_iter().collect();
        collect_expressions(written.node, &mut texts);
        for node in texts {
            let text = node.as_str().unwrap_or_default();
            if text.len() > MAX_SCRIPT / 4 * 3 {
                let message = format!(
                    "this script has {} KiB, and the maximum is {} KiB",
                    text.len() >> 10,
                    MAX_SCRIPT >> 10
                );
                let help = "a script of that size is hard to review; split it into several policies";
                found.push(written.diagnostic(&COSTLY_SCRIPT, node.span, message).with_help(help));
            }
            if let Some((at, turns)) = max_iterations(text) {
                report_iterations(checked, written, node, at, turns, found);
            }
        }
    }
}

fn report_iterations(
    checked: &LintContext<'_>,
    written: &PolicySource<'_>,
    node: &YamlNode,
    at: usize,
    turns: u64,
    found: &mut Diagnostics,
) {
    let steps = SCRIPT_LIMITS.steps;
    if turns.saturating_mul(STEPS_PER_ITERATION) <= steps {
        return;
    }
    let word = if written.has_kind(&["around"]) {
        "beyond them the call fails"
    } else {
        "beyond them the condition is undecided"
    };
    let message = format!("these loops may iterate {turns} times, and a script has {steps} steps: {word}");
    let span = span_in(checked.sources, node, at..at + "for".len());
    found
        .push(written.diagnostic(&COSTLY_SCRIPT, span, message).with_help("reduce the number of iterations"));
}

fn collect_expressions<'a>(node: &'a YamlNode, texts: &mut Vec<&'a YamlNode>) {
    match &node.value {
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect_expressions(item, texts)),
        YamlValue::Mapping(entries) => {
            for entry in entries {
                if entry.key == "expr" && entry.value.as_str().is_some() {
                    texts.push(&entry.value);
                } else {
                    collect_expressions(&entry.value, texts);
                }
            }
        }
        _ => {}
    }
}

/// Finds the nested loops with the most iterations among those with literal bounds. Returns the position of the outermost loop, and
/// the number of iterations of the innermost one.
fn max_iterations(text: &str) -> Option<(usize, u64)> {
    let mut most: Option<(usize, u64)> = None;
    // The open loops, each with its start, the brace depth at which it ends, and the product of iterations so far.
    let mut open: Vec<(usize, usize, u64)> = Vec::new();
    let mut depth = 0usize;
    let mut waiting: Option<(usize, u64)> = None;
    for (at, c) in text.char_indices() {
        match c {
            'f' if is_word(text, at, "for") => {
                let head = text.get(at..).and_then(|rest| rest.split('{').next()).unwrap_or_default();
                waiting = literal_iterations(head).map(|turns| (at, turns));
            }
            '{' => {
                if let Some((at, turns)) = waiting.take() {
                    let (outermost, outer) = open.last().map_or((at, 1), |(at, _, turns)| (*at, *turns));
                    let turns = turns.saturating_mul(outer);
                    open.push((outermost, depth, turns));
                    if most.is_none_or(|(_, known)| turns > known) {
                        most = Some((outermost, turns));
                    }
                }
                depth += 1;
            }
            '}' => {
                depth = depth.saturating_sub(1);
                open.retain(|(_, ends_at, _)| *ends_at < depth);
            }
            _ => {}
        }
    }
    most
}

fn is_word(text: &str, at: usize, word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let rest = text.get(at..).and_then(|rest| rest.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(letter))
        && !text.get(..at).unwrap_or_default().ends_with(letter)
}

/// Returns the number of iterations of a loop with literal bounds, such as `for i in range(0, 100)`. Returns `None` for other loops.
fn literal_iterations(head: &str) -> Option<u64> {
    let number = |text: &str| text.trim().trim_end_matches(')').trim().replace('_', "").parse::<u64>().ok();
    let inside = head.split_once(" in ")?.1.trim().strip_prefix("range(")?;
    let mut numbers = inside.split(',').map(number);
    let (low, high) = (numbers.next()??, numbers.next()??);
    Some(high.saturating_sub(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_of_nested_loops_multiply() {
        for (script, turns) in [
            ("for i in range(0, 10) { x(); }", Some(10)),
            (
                "for i in range(0, 10) { for k in range(0, 20) { x(); } } for i in range(0, 30) { y(); }",
                Some(200),
            ),
            ("for i in range(5, 1_000) { x(); }", Some(995)),
            ("for x in input.items { y(x); }", None),
            ("let format = 1; while true { }", None),
        ] {
            assert_eq!(max_iterations(script).map(|(_, turns)| turns), turns, "{script}");
        }
    }
}
