//! Mutations of `shell` conditions: removed tests and keys, other quantifiers.

use super::mutate_condition;
use crate::mutation::mutant::{entry_removal, item_removal};
use crate::mutation::mutant_collector::MutantCollector;
use crate::mutation::{ITEM_REMOVED, KEY_REMOVED, QUANTIFIER, TEST_REMOVED};
use callgate::source::{MappingEntry, YamlNode};

/// The keys of a test of a command that are lists, of which each item matters.
const LISTS: [&str; 6] = ["program", "subcommand", "flags", "only_flags", "input_from", "run_by"];

/// Mutates the value of `shell`.
pub(super) fn mutate_shell(shell: &YamlNode, collector: &mut MutantCollector<'_>) {
    for entry in shell.entries().unwrap_or_default() {
        match entry.key.as_str() {
            "any" | "all" | "every" | "none" => {
                let (other, case) = match entry.key.as_str() {
                    "any" => ("every", "a case in which some commands pass these tests, and not all"),
                    "every" => ("none", "a case in which all commands pass these tests"),
                    _ => ("any", "a case in which some commands pass these tests, and not all"),
                };
                collector.replace(QUANTIFIER, entry.key_span, other, case);
                mutate_tests(&entry.value, collector);
            }
            "trusted_code" | "wrappers" => {
                let items = entry.value.items().unwrap_or_default();
                for (index, item) in items.iter().enumerate() {
                    if let Some(edit) = item_removal(collector.file_text(item.span), items, index) {
                        let case = format!("a case that depends on this item of `{}`", entry.key);
                        collector.remove(ITEM_REMOVED, item.span, edit, case);
                    }
                }
            }
            _ => {}
        }
    }
}

fn mutate_tests(tests: &YamlNode, collector: &mut MutantCollector<'_>) {
    let items = tests.items().unwrap_or_default();
    for (index, item) in items.iter().enumerate() {
        if let Some(edit) = item_removal(collector.file_text(item.span), items, index) {
            let case = "a case with a command that passes this test, and none of those beside it";
            collector.remove(TEST_REMOVED, item.span, edit, case);
        }
        mutate_test(item, collector);
    }
}

/// Removes each key of a test, and mutates what it contains.
fn mutate_test(test: &YamlNode, collector: &mut MutantCollector<'_>) {
    let entries = test.entries().unwrap_or_default();
    for (index, entry) in entries.iter().enumerate() {
        if entries.len() > 1
            && let Some(edit) = entry_removal(collector.file_text(test.span), entries, index)
        {
            let case =
                format!("a case with a command that differs from this test in its `{}` only", entry.key);
            let span = entry.key_span.until(entry.value.span.end());
            collector.remove(KEY_REMOVED, span, edit, case);
        }
        mutate_key(entry, collector);
    }
}

fn mutate_key(entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    match entry.key.as_str() {
        "all" | "any" => mutate_tests(&entry.value, collector),
        "not" => mutate_test(&entry.value, collector),
        "arguments" | "operands" | "reads" | "writes" => mutate_condition(&entry.value, collector),
        key if LISTS.contains(&key) => {
            let items = entry.value.items().unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                if let Some(edit) = item_removal(collector.file_text(item.span), items, index) {
                    let case = format!("a case with a command for which this item of `{key}` matters");
                    collector.remove(ITEM_REMOVED, item.span, edit, case);
                }
            }
        }
        _ => {}
    }
}
