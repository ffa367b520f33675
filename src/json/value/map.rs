//! `Map`: the members of a JSON object in insertion order.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};

use super::Value;

/// The members of an object that nothing else has.
///
/// Each has its own random hash seed, so that an attacker cannot choose colliding keys.
pub(crate) type Members = IndexMap<String, Value, RandomState>;

/// The members of a JSON object, in insertion order. Equality ignores the order.
///
/// Clones share their members until one of them is changed: a clone takes the same time for all sizes.
#[derive(Clone, Default)]
pub struct Map(Option<Arc<Members>>);

/// An entry of a [`Map`], occupied or vacant.
pub type Entry<'a> = indexmap::map::Entry<'a, String, Value>;

impl Map {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// An object without members, with capacity for some.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::from_members(Members::with_capacity_and_hasher(capacity, RandomState::default()))
    }

    /// An object with these members.
    pub(crate) fn from_members(members: Members) -> Self {
        Self(Some(Arc::new(members)))
    }

    /// The members, for changes: a copy of them, if other objects share them.
    fn members_mut(&mut self) -> &mut Members {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// The members, for a change of one: what is absent is no reason for a copy.
    fn members_with<K: ?Sized + Hash + Equivalent<String>>(&mut self, key: &K) -> Option<&mut Members> {
        let members = self.0.as_mut()?;
        if Arc::get_mut(members).is_none() {
            members.get(key)?;
        }
        Some(Arc::make_mut(members))
    }

    fn into_members(self) -> Members {
        self.0.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |members| members.len())
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }

    /// The mutable value of a key.
    pub fn get_mut<K: ?Sized + Hash + Equivalent<String>>(&mut self, key: &K) -> Option<&mut Value> {
        self.members_with(key)?.get_mut(key)
    }

    /// A key and its value.
    pub fn get_key_value<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> Option<(&String, &Value)> {
        self.0.as_ref()?.get_key_value(key)
    }

    /// The member at a position.
    pub fn get_index(&self, index: usize) -> Option<(&String, &Value)> {
        self.0.as_ref()?.get_index(index)
    }

    /// The position of a key.
    pub fn position<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> Option<usize> {
        self.0.as_ref()?.get_index_of(key)
    }

    /// Whether the object has this key.
    pub fn contains_key<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key. A new key comes last, an existing one keeps its position. Returns the replaced value.
    pub fn insert(&mut self, key: String, value: Value) -> Option<Value> {
        self.members_mut().insert(key, value)
    }

    /// Sets the value of a key and moves it to a position. Returns the replaced value.
    pub fn shift_insert(&mut self, index: usize, key: String, value: Value) -> Option<Value> {
        let before = self.remove(&key);
        let index = index.min(self.len());
        self.members_mut().shift_insert(index, key, value);
        before
    }

    /// Removes a member. The others keep their order.
    pub fn remove<K: ?Sized + Hash + Equivalent<String>>(&mut self, key: &K) -> Option<Value> {
        self.members_with(key)?.shift_remove(key)
    }

    /// Removes a member and returns it with its key. The others keep their order.
    pub fn remove_entry<K: ?Sized + Hash + Equivalent<String>>(
        &mut self,
        key: &K,
    ) -> Option<(String, Value)> {
        self.members_with(key)?.shift_remove_entry(key)
    }

    /// The entry of a key.
    pub fn entry(&mut self, key: impl Into<String>) -> Entry<'_> {
        self.members_mut().entry(key.into())
    }

    /// Keys and values in order.
    pub fn iter(&self) -> indexmap::map::Iter<'_, String, Value> {
        self.0.as_ref().map(|members| members.iter()).unwrap_or_default()
    }

    /// Keys and mutable values in order.
    pub fn iter_mut(&mut self) -> indexmap::map::IterMut<'_, String, Value> {
        self.0.as_mut().map(|members| Arc::make_mut(members).iter_mut()).unwrap_or_default()
    }

    /// The keys in order.
    pub fn keys(&self) -> indexmap::map::Keys<'_, String, Value> {
        self.0.as_ref().map(|members| members.keys()).unwrap_or_default()
    }

    /// The values in order.
    pub fn values(&self) -> indexmap::map::Values<'_, String, Value> {
        self.0.as_ref().map(|members| members.values()).unwrap_or_default()
    }

    /// The mutable values in order.
    pub fn values_mut(&mut self) -> indexmap::map::ValuesMut<'_, String, Value> {
        self.0.as_mut().map(|members| Arc::make_mut(members).values_mut()).unwrap_or_default()
    }

    /// The owned values in order.
    pub fn into_values(self) -> indexmap::map::IntoValues<String, Value> {
        self.into_members().into_values()
    }

    /// Keeps the members for which a condition is true.
    pub fn retain(&mut self, keep: impl FnMut(&String, &mut Value) -> bool) {
        if let Some(members) = &mut self.0 {
            Arc::make_mut(members).retain(keep);
        }
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Moves the members of another object to the end of this one.
    pub fn append(&mut self, other: &mut Self) {
        let mut others = std::mem::take(other).into_members();
        self.members_mut().append(&mut others);
    }

    /// Sorts the members by their keys.
    pub fn sort_keys(&mut self) {
        if let Some(members) = &mut self.0 {
            Arc::make_mut(members).sort_unstable_keys();
        }
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(members), Some(others)) => Arc::ptr_eq(members, others) || members == others,
            _ => self.is_empty() && other.is_empty(),
        }
    }
}

impl Eq for Map {}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl IntoIterator for Map {
    type Item = (String, Value);
    type IntoIter = indexmap::map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_members().into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a String, &'a Value);
    type IntoIter = indexmap::map::Iter<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a String, &'a mut Value);
    type IntoIter = indexmap::map::IterMut<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl FromIterator<(String, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self::from_members(members.into_iter().collect())
    }
}

impl Extend<(String, Value)> for Map {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, members: I) {
        self.members_mut().extend(members);
    }
}

impl<K: ?Sized + Hash + Equivalent<String>> std::ops::Index<&K> for Map {
    type Output = Value;

    /// The value of a key, or `null` if there is none.
    fn index(&self, key: &K) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn members(value: Value) -> Map {
        let Value::Object(members) = value else { panic!("an object") };
        members
    }

    #[test]
    fn a_change_of_a_clone_changes_no_other() {
        let changes: [fn(&mut Map); 12] = [
            |map| drop(map.insert("a".into(), 9.into())),
            |map| drop(map.insert("new".into(), 9.into())),
            |map| drop(map.shift_insert(0, "b".into(), 9.into())),
            |map| drop(map.remove("a")),
            |map| drop(map.remove_entry("a")),
            |map| *map.get_mut("a").unwrap() = 9.into(),
            |map| *map.entry("a").or_insert(Value::Null) = 9.into(),
            |map| map.iter_mut().for_each(|(_, value)| *value = 9.into()),
            |map| map.values_mut().for_each(|value| *value = 9.into()),
            |map| map.retain(|key, _| key == "b"),
            |map| map.append(&mut members(json!({ "c": 3 }))),
            Map::clear,
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let original = members(json!({ "b": { "inner": [1, 2] }, "a": 1 }));
            let (before, mut clone) = (json!(original), original.clone());
            change(&mut clone);
            assert_eq!(json!(original).to_string(), before.to_string(), "change {index}");
            assert_ne!(clone, original, "change {index}");
        }
        let original = members(json!({ "b": 1, "a": 2 }));
        let mut sorted = original.clone();
        sorted.sort_keys();
        assert_eq!(
            (original.keys().next().unwrap(), sorted.keys().next().unwrap()),
            (&"b".into(), &"a".into())
        );
    }

    #[test]
    fn inner_objects_of_clones_are_changed_alone() {
        let original = json!({ "outer": { "inner": { "a": 1 } } });
        let mut clone = original.clone();
        clone["outer"]["inner"]["a"] = json!(2);
        assert_eq!((&original["outer"]["inner"]["a"], &clone["outer"]["inner"]["a"]), (&json!(1), &json!(2)));
    }

    #[test]
    fn absent_keys_copy_nothing() {
        let original = members(json!({ "a": 1 }));
        let mut clone = original.clone();
        assert!(clone.get_mut("b").is_none() && clone.remove("b").is_none());
        let shared = |a: &Map, b: &Map| Arc::ptr_eq(a.0.as_ref().unwrap(), b.0.as_ref().unwrap());
        assert!(shared(&original, &clone));
        assert!(clone.get_mut("a").is_some());
        assert!(!shared(&original, &clone));
    }

    #[test]
    fn empty_objects_are_equal_whether_or_not_they_had_members() {
        let mut emptied = members(json!({ "a": 1 }));
        emptied.remove("a");
        assert_eq!(emptied, Map::new());
        assert_eq!(Map::new(), emptied);
        assert_ne!(Map::new(), members(json!({ "a": 1 })));
        assert_eq!(emptied.into_iter().count() + Map::new().into_values().count(), 0);
    }
}
