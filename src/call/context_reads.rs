//! The members of a call's context that a path, a template, an expression or a policy reads.

use std::collections::BTreeSet;

use crate::json::{Map, Value};

/// Members of a call's context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextReads {
    everything: bool,
    members: BTreeSet<String>,
}

impl ContextReads {
    /// Adds one member by its name.
    pub fn add(&mut self, member: &str) {
        if !self.everything {
            self.members.insert(member.to_owned());
        }
    }

    /// Adds the context as a whole.
    pub fn add_everything(&mut self) {
        self.everything = true;
        self.members.clear();
    }

    /// Adds the members that another set reads.
    pub fn extend(&mut self, other: &Self) {
        if other.everything {
            self.add_everything();
        }
        other.members.iter().for_each(|member| self.add(member));
    }

    /// The names of the members. Returns `None` if the context is read as a whole.
    pub fn members(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.everything).then(|| self.members.iter().map(String::as_str))
    }

    /// Whether a member may be read.
    pub fn may_read(&self, member: &str) -> bool {
        self.everything || self.members.contains(member)
    }

    /// The part of a context that is read: policies cannot distinguish contexts with equal parts. A context that is not an object
    /// is its own part, unless nothing is read.
    pub fn select(&self, context: &Value) -> Value {
        match context {
            _ if self.everything => context.clone(),
            _ if self.members.is_empty() => Value::Null,
            Value::Null => Value::Object(Map::new()),
            Value::Object(all) => {
                let part =
                    self.members.iter().filter_map(|name| Some((name.clone(), all.get(name)?.clone())));
                Value::Object(part.collect())
            }
            other => other.clone(),
        }
    }
}

impl<'m> FromIterator<&'m str> for ContextReads {
    fn from_iter<I: IntoIterator<Item = &'m str>>(members: I) -> Self {
        let mut reads = Self::default();
        members.into_iter().for_each(|member| reads.add(member));
        reads
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    #[test]
    fn selects_the_members_that_are_read() {
        let context = json!({ "roles": ["a"], "plan": null, "trace": 7 });
        let mut everything = ContextReads::default();
        everything.add_everything();
        everything.add("roles");
        for (reads, context, part) in [
            (ContextReads::default(), context.clone(), json!(null)),
            (
                ["roles", "plan", "absent"].into_iter().collect(),
                context.clone(),
                json!({ "plan": null, "roles": ["a"] }),
            ),
            (everything.clone(), context.clone(), context.clone()),
            (["roles"].into_iter().collect(), json!(null), json!({})),
            (["roles"].into_iter().collect(), json!(["x"]), json!(["x"])),
            (ContextReads::default(), json!(["x"]), json!(null)),
        ] {
            assert_eq!(reads.select(&context), part, "{reads:?}");
        }
        let mut sum: ContextReads = ["a"].into_iter().collect();
        sum.extend(&["b"].into_iter().collect());
        assert_eq!(sum.members().unwrap().collect::<Vec<_>>(), ["a", "b"]);
        sum.extend(&everything);
        assert!(sum.members().is_none());
    }
}
