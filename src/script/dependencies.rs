//! Dependencies of a program: the members of the call, context, session and arguments that it reads, collected at compile time.

use std::collections::BTreeSet;

use super::definition_name::DefinitionName;
use crate::call::{ContextReads, Root, SessionState};
use crate::json::{Map, Value};
use crate::path::ArgumentNames;

/// All data that a program reads.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramDependencies {
    pub(super) roots: BTreeSet<Root>,
    pub(super) context: ContextReads,
    /// The session paths that it reads, as far as their keys are literals: `facts`, `order`; empty for the whole session.
    session: BTreeSet<Vec<String>>,
    /// The argument paths that it reads, as far as their keys are literals.
    input: BTreeSet<Vec<String>>,
    /// The names of members that it reads from other values, which may come from the arguments.
    members: BTreeSet<String>,
    /// The arguments that conditions which it names read.
    arguments: ArgumentNames,
    /// The definitions that it names.
    pub(super) definitions: BTreeSet<DefinitionName>,
    /// Whether it reads a named value that is computed, directly or through others: a memo must hold the result.
    pub(super) needs_memo: bool,
    /// Whether it may print.
    pub(super) prints: bool,
}

impl ProgramDependencies {
    /// The dependencies of a condition.
    pub(super) fn from_parts(
        roots: BTreeSet<Root>,
        context: ContextReads,
        arguments: ArgumentNames,
        definitions: BTreeSet<DefinitionName>,
    ) -> Self {
        Self { roots, context, arguments, definitions, ..Self::default() }
    }

    /// Adds what a named value reads, except the definitions that it names.
    pub(super) fn add_reads_of(&mut self, other: &Self) {
        self.roots.extend(&other.roots);
        self.context.extend(&other.context);
        self.session.extend(other.session.iter().cloned());
        self.input.extend(other.input.iter().cloned());
        self.members.extend(other.members.iter().cloned());
        self.arguments.merge(&other.arguments);
        self.needs_memo |= other.needs_memo;
    }

    /// Records a read of a member of the call document, at the path of these keys.
    pub(super) fn add(&mut self, root: Root, keys: Vec<String>) {
        self.roots.insert(root);
        match (root, keys.first()) {
            (Root::Context, Some(member)) => self.context.add(member),
            (Root::Context, None) => self.context.add_everything(),
            (Root::Session, _) => {
                self.session.insert(keys);
            }
            (Root::Input, _) => {
                self.input.insert(keys);
            }
            (Root::Element(_), _) => self.members.extend(keys),
            _ => {}
        }
    }

    /// Records the name of a member that the program reads from a value which may come from the arguments.
    pub(super) fn add_member(&mut self, name: &str) {
        self.members.insert(name.to_owned());
    }

    /// Whether it reads the arguments, or elements that come from them.
    pub(super) fn reads_arguments(&self) -> bool {
        self.roots.iter().any(|root| *root == Root::Input || root.is_argument())
    }

    /// The names of members that it reads from elements and other values.
    pub(super) fn member_names(&self) -> &BTreeSet<String> {
        &self.members
    }

    /// The arguments that the program reads.
    pub(super) fn argument_names(&self) -> ArgumentNames {
        let mut names = self.arguments.clone();
        for keys in &self.input {
            let member = names.add_member(keys);
            self.members.iter().for_each(|name| member.add_descendant(name));
        }
        names
    }

    /// Checks the session for undecided parts.
    ///
    /// # Errors
    /// The program reads a part of the session that could not be decided.
    pub(super) fn check_decided(&self, session: &SessionState) -> Result<(), String> {
        for unsettled in session.unknown_parts() {
            if self.session.iter().any(|read| paths_overlap(&read.join("."), unsettled)) {
                return Err(format!("`{unsettled}` of the session could not be decided earlier"));
            }
        }
        Ok(())
    }

    /// A copy of the parts of the session that the program reads.
    pub(super) fn copy_session(&self, document: &Value) -> Value {
        let mut copy = Value::Object(Map::new());
        for keys in &self.session {
            copy_path(document, keys, &mut copy);
        }
        copy
    }
}

fn copy_path(from: &Value, keys: &[String], to: &mut Value) {
    match (keys.split_first(), from) {
        (Some((key, rest)), Value::Object(members)) => {
            let Some(member) = members.get(key) else { return };
            // If `to` is not an object, all of this was already copied for another path.
            if let Value::Object(copied) = to {
                let empty = || if member.is_object() { Value::Object(Map::new()) } else { Value::Null };
                copy_path(member, rest, copied.entry(key.as_str()).or_insert_with(empty));
            }
        }
        _ => to.clone_from(from),
    }
}

/// Whether two paths are equal, or one is a prefix of the other.
fn paths_overlap(a: &str, b: &str) -> bool {
    let inside = |inner: &str, outer: &str| {
        outer.is_empty()
            || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    inside(a, b) || inside(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn copies_only_the_session_parts_that_are_read() {
        let document =
            json!({"facts": {"order": {"o1": {"a": 1}, "o2": 2}, "n": 3}, "labels": ["x"], "calls": {}});
        for (paths, copied) in [
            (vec!["facts.order.o1"], json!({"facts": {"order": {"o1": {"a": 1}}}})),
            (vec!["facts.n.x", "labels"], json!({"facts": {"n": 3}, "labels": ["x"]})),
            (vec!["facts.n", "facts.order.o2"], json!({"facts": {"n": 3, "order": {"o2": 2}}})),
            (vec!["facts.order", "facts.order.o1.a"], json!({"facts": {"order": {"o1": {"a": 1}, "o2": 2}}})),
            (vec!["facts.order.o1.a", "facts.order"], json!({"facts": {"order": {"o1": {"a": 1}, "o2": 2}}})),
            (vec!["facts.missing"], json!({"facts": {}})),
            (vec!["facts.order.o2", ""], document.clone()),
        ] {
            let mut reads = ProgramDependencies::default();
            for path in paths {
                reads.add(
                    Root::Session,
                    path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect(),
                );
            }
            assert_eq!(reads.copy_session(&document), copied);
        }
    }
}
