//! The entries of a mapping while it is read, each key once.

use std::collections::HashMap;

use super::document_tree::MappingEntry;

/// Up to so many keys are compared one by one: hashing them would take longer.
const MAX_COMPARED: usize = 16;

/// The entries of a mapping so far.
#[derive(Default)]
pub(super) struct MappingEntries {
    entries: Vec<MappingEntry>,
    /// The positions of all keys, if there are many.
    positions: HashMap<String, usize>,
}

impl MappingEntries {
    /// The entry of a key, if there is one.
    pub(super) fn get(&self, key: &str) -> Option<&MappingEntry> {
        match self.positions.is_empty() {
            true => self.entries.iter().find(|entry| entry.key == key),
            false => self.entries.get(*self.positions.get(key)?),
        }
    }

    /// Adds an entry whose key is new.
    pub(super) fn push(&mut self, entry: MappingEntry) {
        self.entries.push(entry);
        if self.entries.len() > MAX_COMPARED {
            let known = self.positions.len();
            let unknown = self.entries.iter().enumerate().skip(known);
            self.positions.extend(unknown.map(|(position, entry)| (entry.key.clone(), position)));
        }
    }

    pub(super) fn into_vec(self) -> Vec<MappingEntry> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{SourceMap, Span};
    use crate::source::document_tree::{YamlNode, YamlValue};

    #[test]
    fn every_key_is_found_in_small_and_in_large_mappings() {
        let source = SourceMap::default().add("rules.yaml", "");
        let mut entries = MappingEntries::default();
        for number in 0..3 * MAX_COMPARED {
            let span = Span::new(source, number, number + 1);
            for known in 0..number {
                assert_eq!(
                    entries.get(&format!("k{known}")).map(|entry| entry.key_span.start()),
                    Some(known)
                );
            }
            let key = format!("k{number}");
            assert!(entries.get(&key).is_none());
            entries.push(MappingEntry {
                key,
                key_span: span,
                value: YamlNode { value: YamlValue::Null, span },
            });
        }
        assert_eq!(entries.into_vec().len(), 3 * MAX_COMPARED);
    }
}
