//! What a shell knows at a point of the text: its directory and variables.

use std::collections::BTreeMap;

use super::effects::Effects;
use crate::directories::Directories;

/// Directories and variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) directories: Directories,
    /// Variables that the text sets: their values, or `None` if these are not known. Any other variable is not known.
    variables: BTreeMap<String, Option<String>>,
    /// Whether any variable may have been set.
    pub(super) is_any_set: bool,
}

impl State {
    pub(super) fn new(directory: Option<&str>) -> Self {
        Self { directories: Directories::new(directory), variables: BTreeMap::new(), is_any_set: false }
    }

    /// The value of a variable, if it is known.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.as_deref().filter(|_| !self.is_any_set)
    }

    /// Whether the text may set a variable.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.is_any_set || self.variables.contains_key(name)
    }

    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        self.variables.insert(name.to_owned(), value);
    }

    /// Forgets the values of variables, which another shell may not get.
    pub(super) fn forget_values(&mut self) {
        self.variables.values_mut().for_each(|value| *value = None);
    }

    /// Forgets what may change.
    pub(super) fn forget(&mut self, effects: &Effects) {
        self.is_any_set |= effects.is_any;
        if effects.changes_directory {
            self.directories = Directories::Unknown;
        }
        for name in &effects.names {
            self.set(name, None);
        }
    }

    /// What is known if either of two states is the case.
    pub(super) fn or(mut self, other: Self) -> Self {
        if self == other {
            return self;
        }
        for (name, value) in &mut self.variables {
            if other.variables.get(name) != Some(value) {
                *value = None;
            }
        }
        for name in other.variables.into_keys() {
            self.variables.entry(name).or_insert(None);
        }
        Self {
            directories: self.directories.union(other.directories),
            variables: self.variables,
            is_any_set: self.is_any_set || other.is_any_set,
        }
    }
}

/// The states behind a command that has succeeded, and behind one that has failed.
pub(super) struct Flow {
    pub(super) succeeded: State,
    pub(super) failed: State,
}

impl Flow {
    /// The same state in both cases.
    pub(super) fn same(state: State) -> Self {
        Self { failed: state.clone(), succeeded: state }
    }

    pub(super) fn either(self) -> State {
        self.succeeded.or(self.failed)
    }
}
