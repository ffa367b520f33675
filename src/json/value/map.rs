//! `Map`: the members of a JSON object in insertion order.

use std::fmt;
use std::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};

use super::Value;

/// The members of a JSON object, in insertion order. Equality ignores the order.
///
/// Each map has its own random hash seed, so that an attacker cannot choose colliding keys.
#[derive(Clone, Default)]
pub struct Map(IndexMap<String, Value, RandomState>);

/// An entry of a [`Map`], occupied or vacant.
pub type Entry<'a> = indexmap::map::Entry<'a, String, Value>;

impl Map {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// An object without members, with capacity for some.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(IndexMap::with_capacity_and_hasher(capacity, RandomState::default()))
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> Option<&Value> {
        self.0.get(key)
    }

    /// The mutable value of a key.
    pub fn get_mut<K: ?Sized + Hash + Equivalent<String>>(&mut self, key: &K) -> Option<&mut Value> {
        self.0.get_mut(key)
    }

    /// A key and its value.
    pub fn get_key_value<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> Option<(&String, &Value)> {
        self.0.get_key_value(key)
    }

    /// The member at a position.
    pub fn get_index(&self, index: usize) -> Option<(&String, &Value)> {
        self.0.get_index(index)
    }

    /// The position of a key.
    pub fn position<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> Option<usize> {
        self.0.get_index_of(key)
    }

    /// Whether the object has this key.
    pub fn contains_key<K: ?Sized + Hash + Equivalent<String>>(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Sets the value of a key. A new key comes last, an existing one keeps its position. Returns the replaced value.
    pub fn insert(&mut self, key: String, value: Value) -> Option<Value> {
        self.0.insert(key, value)
    }

    /// Sets the value of a key and moves it to a position. Returns the replaced value.
    pub fn shift_insert(&mut self, index: usize, key: String, value: Value) -> Option<Value> {
        let index = index.min(self.len());
        let before = self.remove(&key);
        self.0.shift_insert(index.min(self.len()), key, value);
        before
    }

    /// Removes a member. The others keep their order.
    pub fn remove<K: ?Sized + Hash + Equivalent<String>>(&mut self, key: &K) -> Option<Value> {
        self.0.shift_remove(key)
    }

    /// Removes a member and returns it with its key. The others keep their order.
    pub fn remove_entry<K: ?Sized + Hash + Equivalent<String>>(
        &mut self,
        key: &K,
    ) -> Option<(String, Value)> {
        self.0.shift_remove_entry(key)
    }

    /// The entry of a key.
    pub fn entry(&mut self, key: impl Into<String>) -> Entry<'_> {
        self.0.entry(key.into())
    }

    /// Keys and values in order.
    pub fn iter(&self) -> indexmap::map::Iter<'_, String, Value> {
        self.0.iter()
    }

    /// Keys and mutable values in order.
    pub fn iter_mut(&mut self) -> indexmap::map::IterMut<'_, String, Value> {
        self.0.iter_mut()
    }

    /// The keys in order.
    pub fn keys(&self) -> indexmap::map::Keys<'_, String, Value> {
        self.0.keys()
    }

    /// The values in order.
    pub fn values(&self) -> indexmap::map::Values<'_, String, Value> {
        self.0.values()
    }

    /// The mutable values in order.
    pub fn values_mut(&mut self) -> indexmap::map::ValuesMut<'_, String, Value> {
        self.0.values_mut()
    }

    /// The owned values in order.
    pub fn into_values(self) -> indexmap::map::IntoValues<String, Value> {
        self.0.into_values()
    }

    /// Keeps the members for which a condition is true.
    pub fn retain(&mut self, keep: impl FnMut(&String, &mut Value) -> bool) {
        self.0.retain(keep);
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Moves the members of another object to the end of this one.
    pub fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// Sorts the members by their keys.
    pub fn sort_keys(&mut self) {
        self.0.sort_unstable_keys();
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
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
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a String, &'a Value);
    type IntoIter = indexmap::map::Iter<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a String, &'a mut Value);
    type IntoIter = indexmap::map::IterMut<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl FromIterator<(String, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl Extend<(String, Value)> for Map {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, members: I) {
        self.0.extend(members);
    }
}

impl<K: ?Sized + Hash + Equivalent<String>> std::ops::Index<&K> for Map {
    type Output = Value;

    /// The value of a key, or `null` if there is none.
    fn index(&self, key: &K) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}
