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

    fn entries_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Value)> {
        self.0.as_mut().into_iter().flat_map(|members| Arc::make_mut(members).iter_mut())
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
        self.entries_mut()
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
        self.entries_mut().map(|(_, value)| value)
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
            |map| drop(map.insert("a", 9.into())),
            |map| drop(map.insert("new", 9.into())),
            |map| drop(map.shift_insert(0, "b", 9.into())),
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

    proptest::proptest! {
        #[test]
        fn every_change_has_the_result_that_it_has_in_an_indexmap(
            changes in proptest::collection::vec((0..7u8, 0..24usize, 0..24usize), 0..80),
        ) {
            let mut map = Map::new();
            let mut expected: indexmap::IndexMap<String, Value> = indexmap::IndexMap::new();
            // Keys on both sides of what fits into a `Key` without the heap.
            let key_of = |number: usize| format!("{number}{}", "k".repeat(number % 2 * 30));
            for (number, (change, key, place)) in changes.into_iter().enumerate() {
                let (key, value) = (key_of(key), Value::from(number));
                match change {
                    0..=2 => assert_eq!(map.insert(&key, value.clone()), expected.insert(key, value)),
                    3 => assert_eq!(map.remove(&key), expected.shift_remove(&key)),
                    4 => {
                        let (place, before) = (place.min(expected.len()), expected.shift_remove(&key));
                        expected.shift_insert(place.min(expected.len()), key.clone(), value.clone());
                        assert_eq!(map.shift_insert(place, key, value), before);
                    }
                    5 => {
                        *map.entry(&key).or_insert(Value::Null) = value.clone();
                        expected.insert(key, value);
                    }
                    _ => {
                        map.retain(|name, _| name.len() % 5 != place % 5);
                        expected.retain(|name, _| name.len() % 5 != place % 5);
                    }
                }
                let found = (0..24).map(|number| map.position(&key_of(number)));
                proptest::prop_assert!(found.eq((0..24).map(|number| expected.get_index_of(&key_of(number)))));
                proptest::prop_assert!(map.iter().map(|(key, value)| (key.as_str(), value)).eq(expected.iter().map(|(key, value)| (key.as_str(), value))));
            }
        }
    }
}
