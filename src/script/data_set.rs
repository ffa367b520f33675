//! Constants of a bundle (`data`): read by expressions, with hash look-up for membership in their lists.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::fuel::EvalError;
use super::value::{ScriptValue, ValueKind};
use super::value_type::TypeKind;
use crate::json::{Map, Number, Value};

/// Shorter lists are searched from the start.
const MIN_INDEXED: usize = 8;

/// The constants of a bundle by name.
#[derive(Debug, Default)]
pub struct DataSet {
    constants: Map,
    /// The indexes of lists, by the keys that lead to them.
    indexes: HashMap<Vec<String>, Arc<MemberIndex>>,
    /// The names whose definition has an error, which has been reported.
    invalid: HashSet<String>,
}

/// The elements of a list of strings or of numbers.
#[derive(Debug)]
pub(super) enum MemberIndex {
    Strings(HashSet<String>),
    Numbers(HashSet<Number>),
}

impl DataSet {
    /// Creates the set and indexes its long lists.
    pub fn new(constants: Map) -> Self {
        let mut indexes = HashMap::new();
        let mut keys = Vec::new();
        for (name, value) in &constants {
            keys.push(name.to_string());
            index_lists(value, &mut keys, &mut indexes);
            keys.pop();
        }
        Self { constants, indexes, invalid: HashSet::new() }
    }

    /// Adds names whose definition has an error: uses of them are not reported, too.
    #[must_use]
    pub fn with_invalid(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.invalid.extend(names);
        self
    }

    pub(super) fn is_invalid(&self, name: &str) -> bool {
        self.invalid.contains(name)
    }

    /// All constants.
    pub fn constants(&self) -> &Map {
        &self.constants
    }

    /// The constant with this name.
    pub fn constant(&self, name: &str) -> Option<&Value> {
        self.constants.get(name)
    }

    /// The names of all constants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.constants.keys().map(|name| &**name)
    }

    /// Reads the value at a path of keys, of which the first names a constant.
    ///
    /// # Errors
    /// It is absent.
    pub(super) fn read(&self, keys: &[String]) -> Result<ScriptValue<'_>, EvalError> {
        self.value(keys)
            .map(ScriptValue::Json)
            .ok_or_else(|| EvalError::Absent(format!("`data.{}` is missing", keys.join("."))))
    }

    /// The value at a path of keys, of which the first names a constant.
    pub(super) fn value(&self, keys: &[String]) -> Option<&Value> {
        let (name, rest) = keys.split_first()?;
        let constant = self.constants.get(name.as_str())?;
        rest.iter().try_fold(constant, |value, key| value.get(key.as_str()))
    }

    pub(super) fn member_index(&self, keys: &[String]) -> Option<&Arc<MemberIndex>> {
        self.indexes.get(keys)
    }
}

/// Adds an index for each long list below a value.
fn index_lists(value: &Value, keys: &mut Vec<String>, indexes: &mut HashMap<Vec<String>, Arc<MemberIndex>>) {
    match value {
        Value::Array(items) if items.len() >= MIN_INDEXED => {
            if let Some(index) = MemberIndex::new(items) {
                indexes.insert(keys.clone(), Arc::new(index));
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                keys.push(key.to_string());
                index_lists(member, keys, indexes);
                keys.pop();
            }
        }
        _ => {}
    }
}

impl MemberIndex {
    /// Indexes a list. Returns `None` unless all its elements are strings, or all are numbers.
    fn new(items: &[Value]) -> Option<Self> {
        let strings = || items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>();
        let numbers = || items.iter().map(|item| item.as_number().cloned()).collect::<Option<_>>();
        strings().map(Self::Strings).or_else(|| numbers().map(Self::Numbers))
    }

    /// Whether a value is in the list, as `in` decides it without the index. Returns `None` for a value of another type.
    pub(super) fn contains(&self, value: &ScriptValue<'_>) -> Option<bool> {
        match (self, value.kind()) {
            (Self::Strings(strings), ValueKind::String(text)) => Some(strings.contains(text)),
            (Self::Numbers(numbers), ValueKind::Number(_)) => match value {
                ScriptValue::Json(Value::Number(number)) => Some(numbers.contains(number)),
                ScriptValue::Number(number) => match number.to_json() {
                    Value::Number(number) => Some(numbers.contains(&number)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// The kind of the elements.
    pub(super) fn element_kinds(&self) -> &'static [TypeKind] {
        match self {
            Self::Strings(_) => &[TypeKind::String],
            Self::Numbers(_) => &[TypeKind::Number],
        }
    }

    /// The type of the elements, with an article.
    pub(super) fn element_type(&self) -> &'static str {
        match self {
            Self::Strings(_) => "strings",
            Self::Numbers(_) => "numbers",
        }
    }
}
