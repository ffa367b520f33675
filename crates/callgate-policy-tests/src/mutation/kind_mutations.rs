//! Mutations of a policy's kind: its numbers, durations, lists and keywords.
//!
//! Changes that no case can detect are not made: the calls of a case run one after the other, nothing waits in real time, and
//! the records of an `audit` are not checked.

use super::condition_mutations::adjacent_numbers;
use super::mutant::{entry_removal, item_removal};
use super::mutant_collector::MutantCollector;
use super::{CHOICE, EXPRESSION, ITEM_REMOVED, KEY_REMOVED, LIMIT, duration_mutations, expression_mutations};
use callgate::source::{MappingEntry, YamlNode};

/// A mutation of a key or its value.
#[derive(Clone, Copy)]
enum KeyMutation {
    /// Decrease and increase a number by one.
    Step,
    /// Halve and double a duration.
    Scale,
    /// Remove an item of a list.
    RemoveItem,
    /// Replace a keyword by each of the others.
    ReplaceKeyword(&'static [&'static str]),
    /// Remove the key.
    RemoveKey,
    /// Replace the operators of an expression.
    ReplaceOperators,
    /// Change keys of the mapping.
    Nested(&'static [(&'static str, Self)]),
}

use KeyMutation::{Nested, RemoveItem, RemoveKey, ReplaceKeyword, ReplaceOperators, Scale, Step};

/// The mutated keys of an approval request: who answers, until when, what they may change, and what a grant covers.
const APPROVAL_KEYS: &[(&str, KeyMutation)] = &[
    ("approvers", RemoveKey),
    ("approvers", RemoveItem),
    ("quorum", Step),
    ("expires", Scale),
    ("edits", RemoveItem),
    ("edits", Nested(&[("fields", RemoveItem)])),
    (
        "remember",
        Nested(&[
            ("scope", ReplaceKeyword(&["arguments", "fields"])),
            ("fields", RemoveItem),
            ("for", Scale),
        ]),
    ),
    ("present", ReplaceKeyword(&["all", "first"])),
    ("script", ReplaceOperators),
];

/// The mutated keys of each kind, with their operations.
const KEY_MUTATIONS: [(&str, &[(&str, KeyMutation)]); 14] = [
    ("approval", APPROVAL_KEYS),
    ("deny", &[("script", ReplaceOperators)]),
    ("halt", &[("script", ReplaceOperators)]),
    (
        "rate_limit",
        &[
            ("limit", Step),
            ("burst", Step),
            ("per", Scale),
            ("cost", RemoveKey),
            ("cost_after", RemoveKey),
            ("key", RemoveKey),
            ("key", RemoveItem),
            ("on_exceed", ReplaceKeyword(&["deny", "halt", "approval"])),
            ("approval", Nested(APPROVAL_KEYS)),
            ("count", ReplaceKeyword(&["executions", "attempts"])),
        ],
    ),
    ("require", &[("values", RemoveItem)]),
    ("budget", &[("calls", Step), ("on_exceed", ReplaceKeyword(&["halt", "deny"]))]),
    (
        "cache",
        &[
            ("ttl", Scale),
            ("key", RemoveKey),
            ("key", RemoveItem),
            ("scope", ReplaceKeyword(&["tenant", "principal", "shared"])),
            ("invalidate_on", RemoveItem),
        ],
    ),
    ("retry", &[("attempts", Step), ("on", RemoveItem), ("idempotent", ReplaceKeyword(&["true", "false"]))]),
    ("recover", &[("attempts", Step), ("on", RemoveItem)]),
    (
        "redact",
        &[
            ("in", RemoveItem),
            ("detect", RemoveItem),
            ("patterns", RemoveItem),
            ("with", ReplaceKeyword(&["mask", "hash", "remove"])),
        ],
    ),
    ("transform", &[("input", RemoveItem), ("output", RemoveItem)]),
    ("label", &[("add", RemoveItem)]),
    (
        "fact",
        &[
            ("key", RemoveKey),
            ("when", ReplaceKeyword(&["success", "attempted"])),
            ("max", Step),
            ("on_full", ReplaceKeyword(&["undecided", "drop_oldest"])),
        ],
    ),
    ("around", &[("script", ReplaceOperators)]),
];

/// Adds the mutations of a kind's value.
pub(super) fn mutate_kind(kind: &MappingEntry, collector: &mut MutantCollector<'_>) {
    if kind.key == "timeout" {
        return mutate_duration(&kind.value, collector);
    }
    let keys = KEY_MUTATIONS.iter().find(|(name, _)| *name == kind.key).map_or(&[][..], |(_, keys)| *keys);
    mutate_keys(&kind.value, keys, collector);
}

fn mutate_keys(node: &YamlNode, keys: &[(&str, KeyMutation)], collector: &mut MutantCollector<'_>) {
    let entries = node.entries().unwrap_or_default();
    for (index, entry) in entries.iter().enumerate() {
        for (_, operation) in keys.iter().filter(|(key, _)| *key == entry.key) {
            match operation {
                Step => mutate_number(entry, collector),
                Scale => mutate_duration(&entry.value, collector),
                RemoveItem => remove_items(entry, collector),
                ReplaceKeyword(words) => replace_keyword(entry, words, collector),
                RemoveKey => remove_key(entries, index, collector),
                ReplaceOperators => {
                    expression_mutations::mutate_operators(&entry.value, EXPRESSION, collector)
                }
                Nested(keys) => mutate_keys(&entry.value, keys, collector),
            }
        }
    }
}

fn mutate_number(entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    let Some(number) = entry.value.as_number() else { return };
    let Some((less, more)) = adjacent_numbers(&number.text()) else { return };
    let case = format!("a case that reaches `{}: {}`, and exceeds it by one", entry.key, number);
    for other in [less, more] {
        collector.replace(LIMIT, entry.value.span, other, case.clone());
    }
}

fn mutate_duration(node: &YamlNode, collector: &mut MutantCollector<'_>) {
    let Some(text) = node.as_str() else { return };
    let case = format!(
        "a case in which a little less, and one in which a little more than {text} passes, by a `wait` or the `takes` of a tool"
    );
    duration_mutations::scale_duration(node, &case, collector);
}

fn remove_items(entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    let items = entry.value.items().unwrap_or_default();
    for (index, item) in items.iter().enumerate() {
        if let Some(edit) = item_removal(collector.file_text(item.span), items, index) {
            let words: Vec<&str> = collector.span_text(item.span).split_whitespace().collect();
            let case = format!("a case that depends on this item of `{}`: `{}`", entry.key, words.join(" "));
            collector.remove(ITEM_REMOVED, item.span, edit, case);
        }
    }
}

fn replace_keyword(entry: &MappingEntry, words: &[&str], collector: &mut MutantCollector<'_>) {
    let written = collector.span_text(entry.value.span).to_owned();
    // A mapping, if the key allows one, is not a keyword.
    if !words.contains(&written.as_str()) {
        return;
    }
    for word in words.iter().filter(|word| **word != written) {
        let case = format!("a case whose result differs with `{}: {word}`", entry.key);
        collector.replace(CHOICE, entry.value.span, *word, case);
    }
}

fn remove_key(entries: &[MappingEntry], index: usize, collector: &mut MutantCollector<'_>) {
    let Some(entry) = entries.get(index) else { return };
    let Some(edit) = entry_removal(collector.file_text(entry.key_span), entries, index) else { return };
    let span = entry.key_span.until(entry.value.span.end().max(entry.key_span.end()));
    let case = match entry.key.as_str() {
        "cost" => "a case with a call that costs more than 1".to_owned(),
        "approvers" => "a case in which someone else approves the request, which does not count".to_owned(),
        "cost_after" => "a case with a call that costs more than `cost`, and another one after it".to_owned(),
        _ => "a case with two calls that differ only in this key, and must not share a count, a cache entry or a fact".to_owned(),
    };
    collector.remove(KEY_REMOVED, span, edit, case);
}
