//! Edits of a JSON value at the locations that a path selected: set, remove, rename.

use super::ast::PathStep;
use super::evaluator::ChildKey;
use super::singular_path::resolve_index;
use crate::json::{Key, Map, Value};

/// The location of one node below its root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeLocation {
    steps: Vec<PathStep>,
}

impl NodeLocation {
    /// The steps from the root; empty for the root itself. No index is negative.
    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }
}

impl<'a> FromIterator<ChildKey<'a>> for NodeLocation {
    fn from_iter<I: IntoIterator<Item = ChildKey<'a>>>(keys: I) -> Self {
        let step = |key| match key {
            ChildKey::Name(name) => PathStep::Name(name.to_owned()),
            ChildKey::Index(index) => PathStep::Index(i64::try_from(index).unwrap_or(i64::MAX)),
        };
        Self { steps: keys.into_iter().map(step).collect() }
    }
}

/// A failed edit; the value is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The parent of a member to set is not an object.
    #[error("`{0}` can't be set, because its parent is not an object")]
    NotAnObject(String),
    /// The array has no item at this index, or the parent is not an array.
    #[error("there is no item {0} to set, and arrays are not extended")]
    NoItem(i64),
    /// The member to rename does not exist.
    #[error("there is no member to rename")]
    NoMember,
    /// A member with the new name exists.
    #[error("a member `{0}` already exists")]
    NameTaken(String),
}

/// The value at a location. Returns `None` if there is none.
pub fn get_mut<'v>(root: &'v mut Value, location: &NodeLocation) -> Option<&'v mut Value> {
    descend(root, &location.steps)
}

/// Removes the value at a location from its object or array and returns it. A root can't be removed.
pub fn remove(root: &mut Value, location: &NodeLocation) -> Option<Value> {
    let (last, parents) = location.steps.split_last()?;
    match (last, descend(root, parents)?) {
        (PathStep::Name(name), Value::Object(members)) => members.remove(name),
        (PathStep::Index(index), Value::Array(items)) => {
            resolve_index(*index, items.len()).map(|index| items.remove(index))
        }
        _ => None,
    }
}

/// Removes the values at all locations, which refer to the state before the first removal. Returns how many were removed.
pub fn remove_all(root: &mut Value, mut locations: Vec<NodeLocation>) -> usize {
    // From last to first item and from inner to outer values, no removal moves a value that is still to be removed.
    locations.sort();
    locations.dedup();
    locations.iter().rev().filter(|location| remove(root, location).is_some()).count()
}

/// Renames the member at a location. It keeps its position among its siblings.
///
/// # Errors
/// [`EditError::NoMember`] if the location is not a member of an object, [`EditError::NameTaken`] if the object has
/// another member with that name.
pub fn rename(root: &mut Value, location: &NodeLocation, new_name: &str) -> Result<(), EditError> {
    let Some((PathStep::Name(name), parents)) = location.steps.split_last() else {
        return Err(EditError::NoMember);
    };
    let Some(Value::Object(members)) = descend(root, parents) else { return Err(EditError::NoMember) };
    if !members.contains_key(name) {
        return Err(EditError::NoMember);
    }
    if name == new_name {
        return Ok(());
    }
    if members.contains_key(new_name) {
        return Err(EditError::NameTaken(new_name.to_owned()));
    }
    let renamed = |(key, value)| if key == *name { (Key::from(new_name), value) } else { (key, value) };
    *members = std::mem::take(members).into_iter().map(renamed).collect();
    Ok(())
}

/// Sets the value at `steps` and creates missing objects on the way. No steps set the root itself.
///
/// # Errors
/// [`EditError::NotAnObject`] if a value on the way is not an object (null included); [`EditError::NoItem`] if an
/// index has no existing item.
pub fn set(root: &mut Value, steps: &[PathStep], value: Value) -> Result<(), EditError> {
    let mut at = root;
    for (passed, step) in steps.iter().enumerate() {
        at = match (step, at) {
            (PathStep::Name(name), Value::Object(members)) => {
                if !members.contains_key(name) {
                    let below = steps.get(passed + 1..).unwrap_or_default();
                    let wrapped = wrap_in_objects(below, value)?;
                    members.insert(name.clone(), wrapped);
                    return Ok(());
                }
                members.get_mut(name).ok_or(EditError::NoMember)?
            }
            (PathStep::Index(index), Value::Array(items)) => resolve_index(*index, items.len())
                .and_then(|index| items.get_mut(index))
                .ok_or(EditError::NoItem(*index))?,
            (PathStep::Name(name), _) => return Err(EditError::NotAnObject(name.clone())),
            (PathStep::Index(index), _) => return Err(EditError::NoItem(*index)),
        };
    }
    *at = value;
    Ok(())
}

/// Wraps the value in one new object for each name.
fn wrap_in_objects(names: &[PathStep], value: Value) -> Result<Value, EditError> {
    names.iter().rev().try_fold(value, |value, step| match step {
        PathStep::Name(name) => Ok(Value::Object(Map::from_iter([(name.clone(), value)]))),
        PathStep::Index(index) => Err(EditError::NoItem(*index)),
    })
}

fn descend<'v>(root: &'v mut Value, steps: &[PathStep]) -> Option<&'v mut Value> {
    steps.iter().try_fold(root, |at, step| match (step, at) {
        (PathStep::Name(name), Value::Object(members)) => members.get_mut(name),
        (PathStep::Index(index), Value::Array(items)) => {
            resolve_index(*index, items.len()).and_then(|index| items.get_mut(index))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    fn at(steps: &[&str]) -> NodeLocation {
        let step =
            |step: &&str| step.parse().map_or_else(|_| PathStep::Name((*step).to_owned()), PathStep::Index);
        NodeLocation { steps: steps.iter().map(step).collect() }
    }

    #[test]
    fn removes_several_items_by_their_original_indices() {
        let mut value = json!({ "a": (0..12).collect::<Vec<_>>(), "b": { "c": 1 }, "d": 2 });
        let locations =
            vec![at(&["a", "2"]), at(&["a", "10"]), at(&["a", "2"]), at(&["b"]), at(&["b", "c"]), at(&["x"])];
        assert_eq!(remove_all(&mut value, locations), 4);
        assert_eq!(value.to_string(), r#"{"a":[0,1,3,4,5,6,7,8,9,11],"d":2}"#);
        assert_eq!(remove(&mut value, &at(&[])), None);
    }

    #[test]
    fn rename_keeps_the_position_of_the_member() {
        let mut value = json!({ "v": { "a": 1, "b": 2, "c": 3 } });
        assert_eq!(rename(&mut value, &at(&["v", "b"]), "z"), Ok(()));
        assert_eq!(value.to_string(), r#"{"v":{"a":1,"z":2,"c":3}}"#);
        assert_eq!(rename(&mut value, &at(&["v", "z"]), "a"), Err(EditError::NameTaken("a".into())));
        assert_eq!(rename(&mut value, &at(&["v", "b"]), "q"), Err(EditError::NoMember));
        assert_eq!(rename(&mut value, &at(&["v", "z"]), "z"), Ok(()));
        assert_eq!(value.to_string(), r#"{"v":{"a":1,"z":2,"c":3}}"#);
    }

    #[test]
    fn set_creates_missing_objects_and_overwrites_nothing_else() {
        let before = json!({ "a": { "b": 1 }, "list": [1, 2], "null": null });
        for (steps, after) in [
            (&["a", "b"][..], Ok(r#"{"a":{"b":9},"list":[1,2],"null":null}"#)),
            (&["x", "y", "z"], Ok(r#"{"a":{"b":1},"list":[1,2],"null":null,"x":{"y":{"z":9}}}"#)),
            (&["list", "-1"], Ok(r#"{"a":{"b":1},"list":[1,9],"null":null}"#)),
            (&[], Ok("9")),
            (&["a", "b", "c"], Err(EditError::NotAnObject("c".into()))),
            (&["null", "c"], Err(EditError::NotAnObject("c".into()))),
            (&["list", "2"], Err(EditError::NoItem(2))),
            (&["x", "0"], Err(EditError::NoItem(0))),
            (&["a", "0"], Err(EditError::NoItem(0))),
        ] {
            let mut value = before.clone();
            let set = set(&mut value, at(steps).steps(), json!(9));
            assert_eq!(set.as_ref().err(), after.as_ref().err(), "{steps:?}");
            assert_eq!(value.to_string(), after.map_or(before.to_string(), str::to_owned), "{steps:?}");
        }
    }
}
