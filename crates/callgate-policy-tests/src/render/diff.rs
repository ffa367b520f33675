//! A diff of two JSON values: equal parts abbreviated, differences marked.

use std::cmp::Ordering;

use callgate::json::{self, Map, Value};

/// The maximum length of a value on a line, in characters.
const MAX_VALUE: usize = 100;
/// Characters kept before the first difference of two long strings.
const CONTEXT_BEFORE: usize = 20;
/// The maximum number of lines of a diff.
const MAX_LINES: usize = 60;
/// The maximum length of lists that are aligned; longer ones are compared by index.
const MAX_ALIGNED: usize = 300;
/// The maximum number of successive equal members shown; more are only counted.
const MAX_EQUAL: usize = 2;

/// The side of a diff that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiffSide {
    Both,
    Expected,
    Actual,
    /// A note about omitted parts.
    Note,
}

/// One line; its text is JSON, in which the caller must escape control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiffLine {
    pub(super) side: DiffSide,
    pub(super) indent: usize,
    pub(super) text: String,
}

/// The lines of the differences and of their context.
pub(super) fn diff(expected: &Value, actual: &Value) -> Vec<DiffLine> {
    let mut page = DiffWriter { lines: Vec::new() };
    page.compare("", expected, actual, 0);
    let lines = page.lines.len();
    if lines > MAX_LINES {
        page.lines.truncate(MAX_LINES);
        page.push(DiffSide::Note, 0, format!("… {} more lines", lines - MAX_LINES));
    }
    page.lines
}

/// A value on one line, truncated if long.
pub(super) fn format_short(value: &Value) -> String {
    truncate_from(&value.to_string(), 0)
}

/// Two strings, truncated if long so that both show their first difference.
pub(super) fn truncate_pair(expected: &str, actual: &str) -> (String, String) {
    let same = expected.chars().zip(actual.chars()).take_while(|(one, other)| one == other).count();
    let is_long = expected.chars().count().max(actual.chars().count()) > MAX_VALUE;
    let from = if is_long { same.saturating_sub(CONTEXT_BEFORE) } else { 0 };
    (truncate_from(expected, from), truncate_from(actual, from))
}

fn truncate_from(text: &str, from: usize) -> String {
    let length = text.chars().count();
    let visible: String = text.chars().skip(from).take(MAX_VALUE).collect();
    let before = if from > 0 { "…" } else { "" };
    match from.saturating_add(MAX_VALUE).cmp(&length) {
        Ordering::Less => format!("{before}{visible}… ({length} characters)"),
        _ => format!("{before}{visible}"),
    }
}

struct DiffWriter {
    lines: Vec<DiffLine>,
}

/// A pair of aligned items of two lists, or an item of only one.
enum AlignedPair<'v> {
    Both(&'v Value, &'v Value),
    Expected(&'v Value),
    Actual(&'v Value),
}

impl DiffWriter {
    fn push(&mut self, side: DiffSide, indent: usize, text: String) {
        self.lines.push(DiffLine { side, indent, text });
    }

    /// Compares two values. `key`: the prefix of the value's line.
    fn compare(&mut self, key: &str, expected: &Value, actual: &Value, indent: usize) {
        // More would not help the reader; it also bounds the recursion.
        if self.lines.len() > MAX_LINES || indent > 2 * json::MAX_DEPTH {
            return self.push(DiffSide::Note, indent, "…".to_owned());
        }
        match (expected, actual) {
            _ if expected == actual => {
                self.push(DiffSide::Both, indent, format!("{key}{}", format_short(actual)))
            }
            (Value::Object(expected), Value::Object(actual)) => {
                self.push(DiffSide::Both, indent, format!("{key}{{"));
                self.compare_members(expected, actual, indent + 2);
                self.push(DiffSide::Both, indent, "}".to_owned());
            }
            (Value::Array(expected), Value::Array(actual)) => {
                self.push(DiffSide::Both, indent, format!("{key}["));
                self.compare_pairs(
                    indent + 2,
                    align(expected, actual).into_iter().map(|pair| (String::new(), pair)),
                );
                self.push(DiffSide::Both, indent, "]".to_owned());
            }
            _ => {
                let (expected, actual) = truncate_pair(&expected.to_string(), &actual.to_string());
                self.push(DiffSide::Expected, indent, format!("{key}{expected}"));
                self.push(DiffSide::Actual, indent, format!("{key}{actual}"));
            }
        }
    }

    fn compare_members(&mut self, expected: &Map, actual: &Map, indent: usize) {
        let both = expected.iter().map(|(key, value)| match actual.get(key) {
            Some(other) => (key, AlignedPair::Both(value, other)),
            None => (key, AlignedPair::Expected(value)),
        });
        let added = actual.iter().filter(|(key, _)| !expected.contains_key(key));
        let all = both.chain(added.map(|(key, value)| (key, AlignedPair::Actual(value))));
        self.compare_pairs(indent, all.map(|(key, pair)| (format!("{}: ", Value::from(key.as_str())), pair)));
    }

    /// Adds members or items in order, equal ones abbreviated.
    fn compare_pairs<'v>(&mut self, indent: usize, pairs: impl Iterator<Item = (String, AlignedPair<'v>)>) {
        let mut equal: Vec<(String, &Value)> = Vec::new();
        for (key, pair) in pairs {
            match pair {
                AlignedPair::Both(expected, actual) if expected == actual => {
                    equal.push((key, actual));
                    continue;
                }
                _ => self.push_equal(indent, &mut equal),
            }
            match pair {
                AlignedPair::Both(expected, actual) => self.compare(&key, expected, actual, indent),
                AlignedPair::Expected(value) => {
                    self.push(DiffSide::Expected, indent, format!("{key}{}", format_short(value)))
                }
                AlignedPair::Actual(value) => {
                    self.push(DiffSide::Actual, indent, format!("{key}{}", format_short(value)))
                }
            }
        }
        self.push_equal(indent, &mut equal);
    }

    fn push_equal(&mut self, indent: usize, members: &mut Vec<(String, &Value)>) {
        if members.len() > MAX_EQUAL {
            self.push(DiffSide::Note, indent, format!("… {} equal", members.len()));
            members.clear();
        }
        for (key, value) in members.drain(..) {
            self.push(DiffSide::Both, indent, format!("{key}{}", format_short(value)));
        }
    }
}

/// Aligns the items of two lists, so that an added or removed item does not make all others differ.
fn align<'v>(expected: &'v [Value], actual: &'v [Value]) -> Vec<AlignedPair<'v>> {
    let mut pairs = Vec::new();
    let (mut left, mut right) = (0, 0);
    for (at, other) in
        common_subsequence(expected, actual).into_iter().chain([(expected.len(), actual.len())])
    {
        let ones = expected.get(left..at).unwrap_or_default();
        let others = actual.get(right..other).unwrap_or_default();
        for index in 0..ones.len().max(others.len()) {
            pairs.extend(match (ones.get(index), others.get(index)) {
                (Some(one), Some(other)) => Some(AlignedPair::Both(one, other)),
                (Some(one), None) => Some(AlignedPair::Expected(one)),
                (None, other) => other.map(AlignedPair::Actual),
            });
        }
        pairs.extend(
            expected.get(at).zip(actual.get(other)).map(|(one, other)| AlignedPair::Both(one, other)),
        );
        (left, right) = (at.saturating_add(1), other.saturating_add(1));
    }
    pairs
}

/// The indices of a longest common subsequence of two lists.
fn common_subsequence(expected: &[Value], actual: &[Value]) -> Vec<(usize, usize)> {
    if expected.len().max(actual.len()) > MAX_ALIGNED {
        return Vec::new();
    }
    let [ones, others] = [expected, actual].map(|items| items.iter().map(json::digest).collect::<Vec<_>>());
    // For each pair of indices, the length of the longest common subsequence from there.
    let mut lengths = vec![vec![0_usize; others.len() + 1]; ones.len() + 1];
    let at = |lengths: &[Vec<usize>], left: usize, right: usize| {
        lengths.get(left).and_then(|row| row.get(right)).copied().unwrap_or(0)
    };
    for (left, one) in ones.iter().enumerate().rev() {
        for (right, other) in others.iter().enumerate().rev() {
            let length = match one == other {
                true => at(&lengths, left + 1, right + 1) + 1,
                false => at(&lengths, left + 1, right).max(at(&lengths, left, right + 1)),
            };
            if let Some(cell) = lengths.get_mut(left).and_then(|row| row.get_mut(right)) {
                *cell = length;
            }
        }
    }
    let (mut left, mut right, mut pairs) = (0, 0, Vec::new());
    while let (Some(one), Some(other)) = (ones.get(left), others.get(right)) {
        if one == other {
            pairs.push((left, right));
            (left, right) = (left + 1, right + 1);
        } else if at(&lengths, left + 1, right) >= at(&lengths, left, right + 1) {
            left += 1;
        } else {
            right += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    fn shown(expected: &Value, actual: &Value) -> String {
        let line = |line: &DiffLine| {
            let sign = match line.side {
                DiffSide::Expected => '-',
                DiffSide::Actual => '+',
                DiffSide::Both | DiffSide::Note => ' ',
            };
            format!("{sign}{:indent$}{}", "", line.text, indent = line.indent)
        };
        diff(expected, actual).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn abbreviates_equal_members_and_aligns_differences() {
        let expected = json!({ "a": 1, "b": 2, "c": 3.0, "d": { "x": [1, 2] }, "gone": [], "z": 0 });
        let actual = json!({ "z": 0, "a": 1, "b": 2, "c": 3, "d": { "x": [1, 5] }, "new": null });
        assert_eq!(
            shown(&expected, &actual),
            " {
   … 3 equal
   \"d\": {
     \"x\": [
       1
-      2
+      5
     ]
   }
-  \"gone\": []
   \"z\": 0
+  \"new\": null
 }"
        );
    }

    #[test]
    fn aligns_lists_around_an_added_item() {
        let expected = json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }, { "n": 4 }]);
        let actual = json!([{ "n": 0 }, { "n": 1 }, { "n": 2 }, { "n": 4 }]);
        assert_eq!(
            shown(&expected, &actual),
            " [\n+  {\"n\":0}\n   {\"n\":1}\n   {\"n\":2}\n-  {\"n\":3}\n   {\"n\":4}\n ]"
        );
    }

    #[test]
    fn shows_the_first_difference_of_long_strings() {
        let (expected, actual) =
            truncate_pair(&format!("{}A", "x".repeat(500)), &format!("{}B{0}", "x".repeat(500)));
        assert_eq!(expected, format!("…{}A", "x".repeat(20)));
        assert_eq!(actual, format!("…{}B{}… (1001 characters)", "x".repeat(20), "x".repeat(79)));
        assert_eq!(truncate_pair("short", "shirt"), ("short".to_owned(), "shirt".to_owned()));
    }

    #[test]
    fn truncates_many_differences_with_a_count() {
        let many = |from: u64| (0..500).map(|n| json!({ "n": n + from })).collect::<Value>();
        let text = shown(&many(0), &many(1000));
        assert!(text.lines().count() <= 61, "{text}");
        assert!(text.ends_with("more lines"), "{text}");
    }
}
