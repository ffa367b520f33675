//! Changes of what a policy does: its numbers, spans of time, lists and words.
//!
//! What no case can tell apart is left alone: calls of a case run one after the other, nobody waits in earnest, and the
//! records of an `audit` are not looked at.

use super::change::{without_entry, without_item};
use super::condition::neighbours;
use super::find::Finder;
use super::{CHOICE, DURATION, EXPRESSION, ITEM_REMOVED, KEY_REMOVED, LIMIT, expression};
use crate::diagnostic::Span;
use crate::source::{Entry, Node};
use crate::spans;

/// What is done with the value of a key.
#[derive(Clone, Copy)]
enum Operation {
    /// A number is one less, one more.
    Step,
    /// A span of time is half as long, twice as long.
    Stretch,
    /// An item of a list is left out.
    DropItem,
    /// Another of these words is said.
    Choose(&'static [&'static str]),
    /// The key is left out.
    DropKey,
    /// Operators of an expression are others.
    Express,
}

use Operation::{Choose, DropItem, DropKey, Express, Step, Stretch};

/// Each key of a kind that is changed, and how.
const KEYS: [(&str, &[(&str, Operation)]); 10] = [
    (
        "rate_limit",
        &[
            ("limit", Step),
            ("burst", Step),
            ("per", Stretch),
            ("cost", DropKey),
            ("key", DropKey),
            ("key", DropItem),
            ("on_exceed", Choose(&["deny", "halt"])),
            ("count", Choose(&["executions", "attempts"])),
        ],
    ),
    ("budget", &[("calls", Step), ("on_exceed", Choose(&["halt", "deny"]))]),
    (
        "cache",
        &[
            ("ttl", Stretch),
            ("key", DropKey),
            ("key", DropItem),
            ("scope", Choose(&["tenant", "principal", "shared"])),
            ("invalidate_on", DropItem),
        ],
    ),
    ("retry", &[("attempts", Step), ("on", DropItem), ("idempotent", Choose(&["true", "false"]))]),
    ("recover", &[("attempts", Step), ("on", DropItem)]),
    (
        "redact",
        &[
            ("in", DropItem),
            ("detect", DropItem),
            ("patterns", DropItem),
            ("with", Choose(&["mask", "hash", "remove"])),
        ],
    ),
    ("transform", &[("input", DropItem), ("output", DropItem)]),
    ("label", &[("add", DropItem)]),
    ("fact", &[("key", DropKey)]),
    ("around", &[("script", Express)]),
];

/// The changes of the value of a kind.
pub(super) fn of_kind(kind: &Entry, finder: &mut Finder<'_>) {
    if kind.key == "timeout" {
        return stretch(&kind.value, finder);
    }
    let keys = KEYS.iter().find(|(name, _)| *name == kind.key).map_or(&[][..], |(_, keys)| *keys);
    let entries = kind.value.entries().unwrap_or_default();
    for (index, entry) in entries.iter().enumerate() {
        for (_, operation) in keys.iter().filter(|(key, _)| *key == entry.key) {
            match operation {
                Step => step(entry, finder),
                Stretch => stretch(&entry.value, finder),
                DropItem => drop_items(entry, finder),
                Choose(words) => choose(entry, words, finder),
                DropKey => drop_key(entries, index, finder),
                Express => expression::of_text(&entry.value, EXPRESSION, finder),
            }
        }
    }
}

fn step(entry: &Entry, finder: &mut Finder<'_>) {
    let Some(number) = entry.value.as_number() else { return };
    let Some((less, more)) = neighbours(&number.text()) else { return };
    let case = format!("a case that comes to `{}: {}`, and one step beyond it", entry.key, number);
    for other in [less, more] {
        finder.replace(LIMIT, entry.value.span, other, case.clone());
    }
}

fn stretch(node: &Node, finder: &mut Finder<'_>) {
    let Some(text) = node.as_str() else { return };
    let Some(time) = spans::parse(text) else { return };
    for (other, passes) in [(time / 2, "almost"), (time.saturating_mul(2), "a little more than")] {
        let other = spans::in_words(other).replace(' ', "");
        let case =
            format!("a case in which {passes} {text} passes, by a `wait` or a tool that `takes` so long");
        finder.replace(DURATION, node.span, other, case);
    }
}

fn drop_items(entry: &Entry, finder: &mut Finder<'_>) {
    let items = entry.value.items().unwrap_or_default();
    for (index, item) in items.iter().enumerate() {
        if let Some(edit) = without_item(finder.file(item.span), items, index) {
            let words: Vec<&str> = finder.text(item.span).split_whitespace().collect();
            let case = format!("a case in which this item of `{}` counts: `{}`", entry.key, words.join(" "));
            finder.leave_out(ITEM_REMOVED, item.span, edit, case);
        }
    }
}

fn choose(entry: &Entry, words: &[&str], finder: &mut Finder<'_>) {
    let written = finder.text(entry.value.span).to_owned();
    // A mapping, where one is allowed, is no word.
    if !words.contains(&written.as_str()) {
        return;
    }
    for word in words.iter().filter(|word| **word != written) {
        let case = format!("a case that comes out otherwise with `{}: {word}`", entry.key);
        finder.replace(CHOICE, entry.value.span, *word, case);
    }
}

fn drop_key(entries: &[Entry], index: usize, finder: &mut Finder<'_>) {
    let Some(entry) = entries.get(index) else { return };
    let Some(edit) = without_entry(finder.file(entry.key_span), entries, index) else { return };
    let place = Span { end: entry.value.span.end.max(entry.key_span.end), ..entry.key_span };
    let case = match entry.key.as_str() {
        "cost" => "a case with a call that costs more than 1".to_owned(),
        _ => "a case with two calls that differ only there, and do not share".to_owned(),
    };
    finder.leave_out(KEY_REMOVED, place, edit, case);
}
