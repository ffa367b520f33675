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
    assert_eq!((original.keys().next().unwrap(), sorted.keys().next().unwrap()), (&"b".into(), &"a".into()));
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
