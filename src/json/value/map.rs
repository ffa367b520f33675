//! `Map`: the members of a JSON object in insertion order.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use super::Value;
pub use key::Key;
pub(crate) use members::Members;

mod key;
mod members;

/// The members of a JSON object, in insertion order. Equality ignores the order.
///
/// Clones share their members until one of them is changed: a clone takes the same time for all sizes.
#[derive(Clone, Default)]
pub struct Map(Option<Arc<Members>>);

impl Map {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// An object without members, with capacity for some.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::from_members(Members::with_capacity(capacity))
    }

    /// An object with these members.
    pub(crate) fn from_members(members: Members) -> Self {
        Self(Some(Arc::new(members)))
    }

    /// The members, for changes: a copy of them, if other objects share them.
    fn members_mut(&mut self) -> &mut Members {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// The members and the position of a key, for a change of one: what is absent is no reason for a copy.
    fn members_with(&mut self, key: &str) -> Option<(&mut Members, usize)> {
        let members = self.0.as_mut()?;
        let position = members.position(key)?;
        Some((Arc::make_mut(members), position))
    }

    fn entries(&self) -> &[(Key, Value)] {
        self.0.as_ref().map_or(&[], |members| members.entries())
    }

    fn into_entries(self) -> Vec<(Key, Value)> {
        self.0.map(|members| Arc::unwrap_or_clone(members).into_entries()).unwrap_or_default()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The mutable value of a key.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let (members, position) = self.members_with(key)?;
        members.value_mut(position)
    }

    /// A key and its value.
    pub fn get_key_value(&self, key: &str) -> Option<(&Key, &Value)> {
        let members = self.0.as_ref()?;
        members.entries().get(members.position(key)?).map(as_pair)
    }

    /// The member at a position.
    pub fn get_index(&self, index: usize) -> Option<(&Key, &Value)> {
        self.entries().get(index).map(as_pair)
    }

    /// The position of a key.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.0.as_ref()?.position(key)
    }

    /// Whether the object has this key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Sets the value of a key. A new key comes last, an existing one keeps its position. Returns the replaced value.
    pub fn insert(&mut self, key: impl Into<Key>, value: Value) -> Option<Value> {
        self.members_mut().insert(key.into(), value)
    }

    /// Sets the value of a key and moves it to a position. Returns the replaced value.
    pub fn shift_insert(&mut self, index: usize, key: impl Into<Key>, value: Value) -> Option<Value> {
        let key = key.into();
        let before = self.remove(&key);
        self.members_mut().insert_at(index, key, value);
        before
    }

    /// Removes a member. The others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a member and returns it with its key. The others keep their order.
    pub fn remove_entry(&mut self, key: &str) -> Option<(Key, Value)> {
        let (members, position) = self.members_with(key)?;
        Some(members.remove(position))
    }

    /// The value of a key, to be set if there is none.
    pub fn entry(&mut self, key: impl Into<Key>) -> Entry<'_> {
        Entry { members: self.members_mut(), key: key.into() }
    }

    /// Keys and values in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.entries().iter())
    }

    /// Keys and mutable values in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Value)> {
        self.0.as_mut().into_iter().flat_map(|members| Arc::make_mut(members).iter_mut())
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Key> + ExactSizeIterator + Clone {
        self.entries().iter().map(|(key, _)| key)
    }

    /// The values in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator + Clone {
        self.entries().iter().map(|(_, value)| value)
    }

    /// The mutable values in order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The owned values in order.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = Value> + ExactSizeIterator {
        self.into_entries().into_iter().map(|(_, value)| value)
    }

    /// Keeps the members for which a condition is true.
    pub fn retain(&mut self, keep: impl FnMut(&Key, &mut Value) -> bool) {
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
        self.extend(std::mem::take(other));
    }

    /// Sorts the members by their keys.
    pub fn sort_keys(&mut self) {
        if let Some(members) = &mut self.0 {
            Arc::make_mut(members).sort_keys();
        }
    }
}

fn as_pair((key, value): &(Key, Value)) -> (&Key, &Value) {
    (key, value)
}

/// The place of a key in a [`Map`], whether or not the map has it.
pub struct Entry<'a> {
    members: &'a mut Members,
    key: Key,
}

impl<'a> Entry<'a> {
    /// The value of the key, which is set to this one if there is none.
    pub fn or_insert(self, value: Value) -> &'a mut Value {
        self.or_insert_with(|| value)
    }

    /// The value of the key, which is set to the function's result if there is none.
    pub fn or_insert_with(self, value: impl FnOnce() -> Value) -> &'a mut Value {
        self.members.get_or_insert_with(self.key, value)
    }
}

/// Keys and values of a [`Map`] in order.
#[derive(Clone, Debug, Default)]
pub struct Iter<'a>(std::slice::Iter<'a, (Key, Value)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Key, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(as_pair)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(as_pair)
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        let is_shared =
            matches!((&self.0, &other.0), (Some(these), Some(those)) if Arc::ptr_eq(these, those));
        is_shared
            || self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl Eq for Map {}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl IntoIterator for Map {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_entries().into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Key, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Into<Key>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(members: I) -> Self {
        let mut map = Self::new();
        map.extend(members);
        map
    }
}

impl<K: Into<Key>> Extend<(K, Value)> for Map {
    fn extend<I: IntoIterator<Item = (K, Value)>>(&mut self, added: I) {
        let members = self.members_mut();
        for (key, value) in added {
            members.insert(key.into(), value);
        }
    }
}

impl std::ops::Index<&str> for Map {
    type Output = Value;

    /// The value of a key, or `null` if there is none.
    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

#[cfg(test)]
mod tests;
