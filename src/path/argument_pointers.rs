//! JSON pointers to the argument values that policies read.
//!
//! Argument names + arguments → pointers, the arguments themselves before their parts.

use super::argument_names::ArgumentNames;
use crate::json::{MAX_DEPTH, Value};

/// JSON pointers without duplicates, up to a limit.
#[derive(Debug)]
pub struct ArgumentPointers {
    pointers: Vec<String>,
    limit: usize,
}

impl ArgumentPointers {
    /// Creates an empty collection of at most `limit` pointers.
    pub fn new(limit: usize) -> Self {
        Self { pointers: Vec::new(), limit }
    }

    /// Adds the argument with this name, if it exists.
    pub fn add_argument(&mut self, input: &Value, name: &str) {
        if input.get(name).is_some() {
            self.add(join_pointer("", name));
        }
    }

    /// Adds the arguments that are read by name.
    pub fn add_named(&mut self, names: &ArgumentNames, input: &Value) {
        names.member_names().for_each(|name| self.add_argument(input, name));
    }

    /// Adds the arguments that wildcards and descendants match, as in `$.input.*` and `$.input..email`.
    pub fn add_matched(&mut self, names: &ArgumentNames, input: &Value) {
        for (name, member) in input.as_object().into_iter().flatten() {
            if self.is_full() {
                return;
            }
            if names.any_member().is_some() || is_read_below(names, name, member, 0) {
                self.add(join_pointer("", name));
            }
        }
    }

    /// Adds the read values below the arguments.
    pub fn add_nested(&mut self, names: &ArgumentNames, input: &Value) {
        self.walk(&[names], &[], input, "", 0);
    }

    /// The pointers, in insertion order.
    pub fn into_vec(self) -> Vec<String> {
        self.pointers
    }

    fn is_full(&self) -> bool {
        self.pointers.len() >= self.limit
    }

    fn add(&mut self, pointer: String) {
        if !self.is_full() && !self.pointers.contains(&pointer) {
            self.pointers.push(pointer);
        }
    }

    /// Walks a value. `here` holds the names read from this value, `everywhere` those read from it and everything below it.
    fn walk(
        &mut self,
        here: &[&ArgumentNames],
        everywhere: &[&ArgumentNames],
        value: &Value,
        at: &str,
        depth: usize,
    ) {
        let mut everywhere = everywhere.to_vec();
        everywhere.extend(here.iter().filter_map(|names| names.descendants()));
        if depth > MAX_DEPTH || self.is_full() {
            return;
        }
        // A value that is read as a whole, or that has none of the parts that are read.
        let is_end =
            |names: &&ArgumentNames| names.is_empty() || !matches!(value, Value::Object(_) | Value::Array(_));
        if depth > 0 && here.iter().any(is_end) {
            self.add(at.to_owned());
        }
        let all = || here.iter().chain(&everywhere).copied();
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let below: Vec<_> = all()
                        .filter_map(|names| names.member(name))
                        .chain(all().filter_map(ArgumentNames::any_member))
                        .collect();
                    if !below.is_empty() || !everywhere.is_empty() {
                        self.walk(&below, &everywhere, member, &join_pointer(at, name), depth + 1);
                    }
                }
            }
            Value::Array(items) => {
                let below: Vec<_> = all().filter_map(ArgumentNames::any_member).collect();
                if !below.is_empty() || !everywhere.is_empty() {
                    for (index, item) in items.iter().enumerate() {
                        self.walk(
                            &below,
                            &everywhere,
                            item,
                            &join_pointer(at, &index.to_string()),
                            depth + 1,
                        );
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether a name that is read at any depth is this member or lies in it.
fn is_read_below(names: &ArgumentNames, name: &str, member: &Value, depth: usize) -> bool {
    let Some(below) = names.descendants() else { return false };
    if below.any_member().is_some() || below.member(name).is_some() {
        return true;
    }
    match member {
        _ if depth > MAX_DEPTH => false,
        Value::Object(members) => {
            members.iter().any(|(name, member)| is_read_below(names, name, member, depth + 1))
        }
        Value::Array(items) => items.iter().any(|item| is_read_below(names, "", item, depth + 1)),
        _ => false,
    }
}

fn join_pointer(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::path::Path;

    fn places(paths: &[&str], input: &Value) -> Vec<String> {
        let mut names = ArgumentNames::default();
        paths.iter().for_each(|path| names.merge(Path::parse(path).unwrap().argument_names()));
        let mut pointers = ArgumentPointers::new(6);
        pointers.add_named(&names, input);
        pointers.add_matched(&names, input);
        pointers.add_nested(&names, input);
        pointers.into_vec()
    }

    #[test]
    fn finds_what_policies_read_with_arguments_before_their_parts() {
        let input = json!({
            "x": 1, "items": [{ "price": 1, "n": 2 }, { "price": 3 }], "to": "a", "order": { "a/b": { "email": "e" } }
        });
        for (paths, found) in [
            (vec!["$.input.to", "$.input.none"], vec!["/to"]),
            (
                vec!["$.input.to", "$.input.items[*].price"],
                vec!["/items", "/to", "/items/0/price", "/items/1/price"],
            ),
            (vec!["$.input..email"], vec!["/order", "/order/a~1b/email"]),
            (
                vec!["$.input.items[?@.n > 1].price"],
                vec!["/items", "/items/0/price", "/items/0/n", "/items/1/price"],
            ),
            (vec!["$.input.to.name"], vec!["/to"]),
            (vec!["$.input.*"], vec!["/x", "/items", "/to", "/order"]),
            (vec!["$.input", "$.tool"], vec![]),
        ] {
            let mut expected: Vec<String> = found.into_iter().map(str::to_owned).collect();
            let mut pointers = places(&paths, &input);
            expected.sort();
            pointers.sort();
            assert_eq!(pointers, expected, "{paths:?}");
        }
        assert_eq!(places(&["$.input.*", "$.input.to"], &input).first().unwrap(), "/to");
    }

    #[test]
    fn named_arguments_come_before_those_that_an_agent_can_add() {
        let many: Value =
            (0..50).map(|n| (format!("a{n}"), json!({ "email": n }))).collect::<crate::json::Map>().into();
        let mut input = many;
        input["to"] = json!("a");
        let found = places(&["$.input..email", "$.input.to"], &input);
        assert_eq!((found.len(), found[0].as_str()), (6, "/to"));
    }
}
