//! A section of definitions over all files of a bundle: which definition of a name counts.

use std::collections::BTreeMap;

use super::DefinitionReader;
use super::shapes::{DATA, GROUPS, LETS};
use crate::call::Root;
use crate::diagnostic::{DUPLICATE_NAME, Diagnostic, INVALID_DATA, UNKNOWN_VALUE};
use crate::rules_schema::FieldShape;
use crate::script::is_function_name;
use crate::source::MappingEntry;

/// Names that expressions use for other things.
const RESERVED: [&str; 7] = ["data", "item", "task", "now", "options", "true", "false"];
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 128;

impl<'a> DefinitionReader<'a> {
    /// The definitions of a section by name. One definition outside `defaults` replaces those under `defaults`.
    pub(super) fn section(&mut self, section: &FieldShape) -> BTreeMap<&'a str, &'a MappingEntry> {
        let key = section.name;
        let mut found: BTreeMap<&'a str, &'a MappingEntry> = BTreeMap::new();
        for entry in self.entries(key, true) {
            match found.get(entry.key.as_str()) {
                Some(first) if first.value.to_json() != entry.value.to_json() => {
                    self.report_duplicate(key, first, entry, "two files define different defaults");
                }
                Some(_) => {}
                None => {
                    found.insert(&entry.key, entry);
                }
            }
        }
        let mut own: BTreeMap<&'a str, &'a MappingEntry> = BTreeMap::new();
        for entry in self.entries(key, false) {
            match own.get(entry.key.as_str()) {
                Some(first) => self.report_duplicate(key, first, entry, "a name has one definition"),
                None => {
                    own.insert(&entry.key, entry);
                }
            }
        }
        found.extend(own);
        found.retain(|_, entry| self.check_name(key, entry) && self.check_inherited(section, entry));
        found
    }

    fn entries(&self, key: &str, of_defaults: bool) -> Vec<&'a MappingEntry> {
        let sections = self.files.iter().filter_map(|file| match of_defaults {
            true => file.root.get("defaults")?.get(key),
            false => file.root.get(key),
        });
        sections.flat_map(|section| section.entries().unwrap_or_default()).collect()
    }

    fn report_duplicate(&mut self, key: &str, first: &MappingEntry, second: &MappingEntry, why: &str) {
        let message = format!("`{}` is defined twice under `{key}`", second.key);
        self.diagnostics.push(
            Diagnostic::new(&DUPLICATE_NAME, second.key_span, message)
                .with_label(first.key_span, "first defined here")
                .with_help(format!("{why}; rename or remove one of them")),
        );
    }

    /// Whether the bundle that a layer belongs to does not define a name; reports it otherwise.
    fn check_inherited(&mut self, section: &FieldShape, entry: &MappingEntry) -> bool {
        let name = entry.key.as_str();
        let is_known = match section.name {
            key if key == GROUPS.name => self.inherited.group(name).is_some(),
            key if key == DATA.name => self.inherited.data().constant(name).is_some(),
            _ => self.inherited.find_let(name).is_some(),
        };
        if is_known {
            let message = format!("the bundle defines `{name}` under `{}` already", section.name);
            self.diagnostics.push(
                Diagnostic::new(&DUPLICATE_NAME, entry.key_span, message)
                    .with_help("a lower layer can add names, and not change those of the bundle: rename it"),
            );
        }
        !is_known
    }

    /// Whether a name can be defined; reports it otherwise.
    fn check_name(&mut self, key: &str, entry: &MappingEntry) -> bool {
        let name = entry.key.as_str();
        let is_group = key == GROUPS.name;
        let mut letters = name.chars();
        let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        let rest = letters.all(|c| c.is_ascii_alphanumeric() || c == '_' || (is_group && c == '-'));
        let problem = if !starts || !rest || name.len() > MAX_NAME_BYTES {
            "a name has letters, digits and `_`, and begins with a letter"
        } else if key == LETS.name && (RESERVED.contains(&name) || Root::from_name(name).is_some()) {
            "this name has another meaning in expressions"
        } else if key == LETS.name && is_function_name(name) {
            "a built-in function has this name"
        } else {
            return true;
        };
        let message = format!("`{}` cannot be defined under `{key}`: {problem}", name.escape_debug());
        let code = if key == DATA.name { &INVALID_DATA } else { &UNKNOWN_VALUE };
        self.diagnostics.push(
            Diagnostic::new(code, entry.key_span, message)
                .with_help("choose another name, such as `order_limit`"),
        );
        false
    }
}
