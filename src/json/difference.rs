//! Differences between two JSON values, with their paths.

use super::{MAX_DEPTH, Value};

/// One difference between two values.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference<'a> {
    /// The path of the difference.
    pub path: String,
    /// The first value at this path, if any.
    pub before: Option<&'a Value>,
    /// The second value at this path, if any.
    pub after: Option<&'a Value>,
}

/// The differences between two values, with paths from `root`; at most `at_most`. Empty if the values are equal.
pub fn differences<'a>(
    root: &str,
    before: &'a Value,
    after: &'a Value,
    at_most: usize,
) -> Vec<Difference<'a>> {
    let mut found = DifferenceCollector { list: Vec::new(), at_most };
    found.compare(root, Some(before), Some(after), MAX_DEPTH);
    found.list
}

struct DifferenceCollector<'a> {
    list: Vec<Difference<'a>>,
    at_most: usize,
}

impl<'a> DifferenceCollector<'a> {
    fn compare(&mut self, path: &str, before: Option<&'a Value>, after: Option<&'a Value>, depth: usize) {
        if self.list.len() >= self.at_most {
            return;
        }
        match (before, after) {
            (Some(before), Some(after)) if before == after => {}
            (Some(Value::Object(before)), Some(Value::Object(after))) if depth > 0 => {
                let added = after.keys().filter(|key| !before.contains_key(key));
                for key in before.keys().chain(added) {
                    self.compare(&member_path(path, key), before.get(key), after.get(key), depth - 1);
                }
            }
            (Some(Value::Array(before)), Some(Value::Array(after))) if depth > 0 => {
                for index in 0..before.len().max(after.len()) {
                    let item_path = format!("{path}[{index}]");
                    self.compare(&item_path, before.get(index), after.get(index), depth - 1);
                }
            }
            (before, after) => self.list.push(Difference { path: path.to_owned(), before, after }),
        }
    }
}

fn member_path(path: &str, key: &str) -> String {
    let plain = key.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !key.starts_with(|c: char| c.is_numeric())
        && !key.is_empty();
    if plain { format!("{path}.{key}") } else { format!("{path}[{}]", Value::from(key)) }
}
