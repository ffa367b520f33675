//! The graph of subschemas: which one applies which, with references resolved.

use std::collections::HashMap;

use super::{CostLevel, MAX_CHAIN, quote};
use crate::argument_schema::schema_error::SchemaError;
use crate::json::{Key, MAX_DEPTH, Map, Value};
use crate::regex_compiler;

/// Keywords that apply one schema to the same value.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that apply each schema of an array to the same value.
const SAME_VALUE_ARRAYS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that apply the schemas of an object to the same value.
const SAME_VALUE_OBJECTS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords that refer to a schema for the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that apply one schema (`items`, in old drafts, an array) to child values.
const CHILD_VALUES: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];

/// The maximum number of regular expressions in one schema: each uses memory while the schema is loaded.
const MAX_PATTERNS: usize = 128;

/// One subschema: the indices of the subschemas that it applies.
#[derive(Default)]
struct Subschema {
    same_value: Vec<usize>,
    /// Applied to child values; several may apply to the same one.
    child_values: Vec<usize>,
    /// Applied to child values, each to a different one.
    separate_children: Vec<usize>,
    /// Whether `unevaluated…` evaluates the subschemas of the same value a second time.
    asks_twice: bool,
}

pub(super) struct SubschemaGraph<'a> {
    root: &'a Value,
    /// The root's `$id` without fragment.
    id: Option<&'a str>,
    anchors: HashMap<&'a str, (&'a Value, String)>,
    numbers: HashMap<*const Value, usize>,
    parts: Vec<Subschema>,
    unread: Vec<(usize, &'a Value, String)>,
    patterns: usize,
}

impl<'a> SubschemaGraph<'a> {
    /// Reads all subschemas that are reachable from the root.
    pub(super) fn read(root: &'a Value) -> Result<Self, SchemaError> {
        let id = ["$id", "id"].into_iter().find_map(|key| root.get(key)?.as_str());
        let id = id.and_then(|id| id.split('#').next()).filter(|id| !id.is_empty());
        let mut graph = Self {
            root,
            id,
            anchors: HashMap::new(),
            numbers: HashMap::new(),
            parts: Vec::new(),
            unread: Vec::new(),
            patterns: 0,
        };
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let id_keyword = if dialect.contains("draft-04") { "id" } else { "$id" };
        graph.find_anchors(root, String::new(), id_keyword)?;
        graph.number(root, String::new());
        while let Some((number, schema, pointer)) = graph.unread.pop() {
            let part = graph.part(schema, &pointer)?;
            if let Some(slot) = graph.parts.get_mut(number) {
                *slot = part;
            }
        }
        if graph.patterns > MAX_PATTERNS {
            return Err(SchemaError::at("", format!("the schema has more than {MAX_PATTERNS} patterns")));
        }
        Ok(graph)
    }

    fn find_anchors(&mut self, value: &'a Value, pointer: String, id: &str) -> Result<(), SchemaError> {
        let Value::Object(map) = value else {
            let items = value.as_array().into_iter().flatten().enumerate();
            return items
                .into_iter()
                .try_for_each(|(index, item)| self.find_anchors(item, format!("{pointer}/{index}"), id));
        };
        for (key, item) in map {
            let below = join(&pointer, key);
            let text = item.as_str();
            if key == id && text.is_some() && !pointer.is_empty() {
                let message = format!(
                    "`{id}` below the root of a schema is not supported: refer to the subschema by its JSON pointer, as in `#/$defs/…`"
                );
                return Err(SchemaError::at(below, message));
            }
            if let (Some(anchor), "$anchor" | "$dynamicAnchor") = (text, key.as_str())
                && let Some((other, _)) = self.anchors.insert(anchor, (value, pointer.clone()))
                && !std::ptr::eq(other, value)
            {
                return Err(SchemaError::at(
                    below,
                    format!("the anchor {} is duplicate: rename one of the two", quote(anchor)),
                ));
            }
            self.find_anchors(item, below, id)?;
        }
        Ok(())
    }

    /// Returns the index of a subschema; a new one is read later.
    fn number(&mut self, schema: &'a Value, pointer: String) -> usize {
        let next = self.parts.len();
        *self.numbers.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.parts.push(Subschema::default());
            self.unread.push((next, schema, pointer));
            next
        })
    }

    fn part(&mut self, schema: &'a Value, pointer: &str) -> Result<Subschema, SchemaError> {
        let mut part = Subschema::default();
        let Value::Object(map) = schema else { return Ok(part) };
        for (key, value) in map {
            let key = key.as_str();
            let location = join(pointer, key);
            if SAME_VALUE.contains(&key) {
                part.same_value.push(self.number(value, location));
            } else if SAME_VALUE_ARRAYS.contains(&key) {
                part.same_value.extend(self.list(value, &location));
            } else if SAME_VALUE_OBJECTS.contains(&key) {
                part.same_value.extend(self.mapping(value, &location));
            } else if let (true, Some(reference)) = (REFERENCES.contains(&key), value.as_str()) {
                let (target, target_location) = self.resolve(reference, &location)?;
                part.same_value.push(self.number(target, target_location));
            } else if key == "prefixItems" || key == "items" && value.is_array() {
                part.separate_children.extend(self.list(value, &location));
            } else if CHILD_VALUES.contains(&key) {
                part.child_values.push(self.number(value, location));
            } else if key == "patternProperties" {
                part.child_values.extend(self.mapping(value, &location));
            } else if key == "properties" {
                part.separate_children.extend(self.mapping(value, &location));
            } else if key == "$defs" || key == "definitions" {
                // Unused definitions cost nothing, but their references are checked.
                self.mapping(value, &location);
            }
            if key == "pattern" {
                self.add_patterns(value.as_str(), pointer)?;
            } else if key == "patternProperties" {
                self.add_patterns(
                    value.as_object().into_iter().flat_map(Map::keys).map(Key::as_str),
                    pointer,
                )?;
            }
            part.asks_twice |= key.starts_with("unevaluated");
        }
        Ok(part)
    }

    /// Counts patterns, and charges them to the memory limit. The validator reports syntax errors.
    fn add_patterns<'p>(
        &mut self,
        patterns: impl IntoIterator<Item = &'p str>,
        location: &str,
    ) -> Result<(), SchemaError> {
        for pattern in patterns {
            self.patterns += 1;
            let is_many = self.patterns > MAX_PATTERNS;
            if !is_many && matches!(regex_compiler::compile(pattern), Err(regex::Error::CompiledTooBig(_))) {
                let pattern = quote(pattern);
                return Err(SchemaError::at(
                    location,
                    format!("the pattern {pattern} takes too much memory"),
                ));
            }
        }
        Ok(())
    }

    fn list(&mut self, value: &'a Value, location: &str) -> Vec<usize> {
        let items = value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, item)| self.number(item, format!("{location}/{index}"))).collect()
    }

    fn mapping(&mut self, value: &'a Value, location: &str) -> Vec<usize> {
        let entries = value.as_object().into_iter().flatten();
        entries.map(|(key, item)| self.number(item, join(location, key))).collect()
    }

    /// Resolves the reference at `location`: returns the target and its pointer.
    fn resolve(&self, reference: &str, location: &str) -> Result<(&'a Value, String), SchemaError> {
        let own = self.id.and_then(|id| reference.strip_prefix(id));
        let rest = own.filter(|rest| rest.is_empty() || rest.starts_with('#')).unwrap_or(reference);
        let fragment = match rest.strip_prefix('#') {
            Some(fragment) => fragment,
            None if rest.is_empty() => "",
            None => {
                let message = format!(
                    "`$ref` to {} points outside of the schema, and nothing is fetched: copy the target to `$defs` \
                     and refer to it as `#/$defs/…`",
                    quote(reference)
                );
                return Err(SchemaError::at(location, message));
            }
        };
        let target = if fragment.is_empty() || fragment.starts_with('/') {
            let pointer = percent_decoded(fragment);
            pointer.and_then(|pointer| Some((self.root.pointer(&pointer)?, pointer)))
        } else {
            self.anchors.get(fragment).cloned()
        };
        target.ok_or_else(|| {
            SchemaError::at(location, format!("`$ref` to {} does not exist in the schema", quote(reference)))
        })
    }

    /// For each depth of an instance, the maximum cost at or above it; the last entry applies to all greater depths.
    pub(super) fn levels(&self) -> Result<Vec<CostLevel>, SchemaError> {
        let mut order = Vec::with_capacity(self.parts.len());
        let mut marks = vec![VisitMark::New; self.parts.len()];
        self.sort_dependencies_first(0, 0, &mut marks, &mut order)?;
        for number in 0..self.parts.len() {
            self.sort_dependencies_first(number, 0, &mut marks, &mut order)?;
        }
        let mut levels: Vec<CostLevel> = Vec::new();
        let mut above = vec![CostLevel::default(); self.parts.len()];
        for depth in 0..=MAX_DEPTH {
            let now = self.level(depth, &order, &above);
            let root = now.first().copied().unwrap_or_default();
            if root.chain == 0 {
                break;
            }
            let most = levels.last().copied().unwrap_or_default();
            levels.push(CostLevel {
                applications: root.applications.max(most.applications),
                chain: root.chain.max(most.chain),
            });
            above = now;
        }
        Ok(levels)
    }

    /// For each subschema, its applications `depth` levels further down, computed from those one level up.
    fn level(&self, depth: usize, order: &[usize], nearer: &[CostLevel]) -> Vec<CostLevel> {
        let mut now = vec![CostLevel::default(); self.parts.len()];
        let start = if depth == 0 { CostLevel { applications: 1.0, chain: 1 } } else { CostLevel::default() };
        for &number in order {
            let Some(part) = self.parts.get(number) else { continue };
            let mut level = start;
            let mut apply = |other: Option<&CostLevel>, times: f64| {
                if let Some(other) = other.filter(|other| other.chain > 0) {
                    level.applications += times * other.applications;
                    level.chain = level.chain.max(other.chain + 1);
                }
            };
            let times = if part.asks_twice { 2.0 } else { 1.0 };
            part.same_value.iter().for_each(|other| apply(now.get(*other), times));
            part.child_values.iter().for_each(|other| apply(nearer.get(*other), 1.0));
            let apart = part.separate_children.iter().filter_map(|other| nearer.get(*other));
            let most = apart.fold(CostLevel::default(), |most, other| CostLevel {
                applications: most.applications.max(other.applications),
                chain: most.chain.max(other.chain),
            });
            apply(Some(&most), 1.0);
            if let Some(slot) = now.get_mut(number) {
                *slot = level;
            }
        }
        now
    }

    /// Sorts the subschemas so that those applied to the same value come first.
    fn sort_dependencies_first(
        &self,
        number: usize,
        depth: usize,
        marks: &mut [VisitMark],
        order: &mut Vec<usize>,
    ) -> Result<(), SchemaError> {
        match marks.get(number) {
            Some(VisitMark::New) => {}
            Some(VisitMark::Open) => {
                let message = "a `$ref` refers to itself without descending into a child value";
                return Err(SchemaError { message: message.to_owned(), pointer: None });
            }
            Some(VisitMark::Done) | None => return Ok(()),
        }
        if depth > MAX_CHAIN {
            let message = format!("the schema has a chain of more than {MAX_CHAIN} `$ref`s");
            return Err(SchemaError { message, pointer: None });
        }
        let mut mark = |mark| marks.get_mut(number).into_iter().for_each(|slot| *slot = mark);
        mark(VisitMark::Open);
        for other in self.parts.get(number).into_iter().flat_map(|part| &part.same_value) {
            self.sort_dependencies_first(*other, depth + 1, marks, order)?;
        }
        let mut mark = |mark| marks.get_mut(number).into_iter().for_each(|slot| *slot = mark);
        mark(VisitMark::Done);
        order.push(number);
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum VisitMark {
    New,
    Open,
    Done,
}

fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(piece.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
