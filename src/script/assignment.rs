//! Property and element access in values, and assignment to them.

use std::borrow::Cow;

use super::fuel::{EvalError, Fuel};
use super::script_function::MutatingFunction;
use super::value::{ScriptValue, ValueKind, depth, resolve_index};
use crate::json::JsonType;

/// One step of a path, with its index evaluated.
pub(super) enum ResolvedStep<'r> {
    Key(&'r str),
    Index(ScriptValue<'r>),
}

impl<'r> ResolvedStep<'r> {
    pub(super) fn read(&self, container: &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError> {
        match self {
            Self::Key(key) => read_property(container, key),
            Self::Index(index) => read_element(container, index),
        }
    }
}

pub(super) fn read_property<'r>(object: &ScriptValue<'r>, key: &str) -> Result<ScriptValue<'r>, EvalError> {
    match object.kind() {
        ValueKind::Object(object) => {
            object.get(key).ok_or_else(|| EvalError::Absent(format!("the object has no key `{key}`")))
        }
        _ => Err(format!("`{key}` is read from a value that is not an object").into()),
    }
}

pub(super) fn read_element<'r>(
    container: &ScriptValue<'r>,
    index: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, EvalError> {
    match (container.kind(), index.kind()) {
        (ValueKind::Object(_), ValueKind::String(key)) => read_property(container, key),
        (ValueKind::Array(list), ValueKind::Number(index)) => {
            let Some(index) = index.to_i64() else { return Err(whole_index_error()) };
            resolve_index(index, list.len())
                .and_then(|index| list.get(index))
                .ok_or_else(|| EvalError::Absent(format!("the array has no element {index}")))
        }
        (container, index) => Err(index_type_error(container.json_type(), index.json_type())),
    }
}

fn whole_index_error() -> EvalError {
    "an array index must be a whole number".into()
}

fn index_type_error(container: JsonType, index: JsonType) -> EvalError {
    format!(
        "an array takes a whole number as index and an object a string, these are of type {container} and {index}"
    )
    .into()
}

type TargetAction<'a, 'r> = &'a mut dyn FnMut(&mut ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>;

/// Applies an action to the value at a path. Values on the way that other variables share are copied (copy on write).
pub(super) fn apply_at<'r>(
    work: &Fuel,
    target: Option<&mut ScriptValue<'r>>,
    steps: &[ResolvedStep<'r>],
    action: TargetAction<'_, 'r>,
) -> Result<ScriptValue<'r>, EvalError> {
    let Some(target) = target else {
        return Err(EvalError::LimitExceeded("the variable is missing".to_owned()));
    };
    let Some((step, rest)) = steps.split_first() else { return action(target) };
    work.spend_step()?;
    // Returns the error message of an invalid step.
    step.read(target)?;
    let key = match step {
        ResolvedStep::Key(key) => Some((*key).to_owned()),
        ResolvedStep::Index(index) => match index.kind() {
            ValueKind::String(key) => Some(key.to_owned()),
            _ => None,
        },
    };
    match (key, step) {
        (Some(key), _) => {
            let Some(members) = target.members_mut(work)? else { return Err(missing_error()) };
            let Some(member) = members.content.get_mut(key.as_str()) else { return Err(missing_error()) };
            let given = apply_at(work, Some(&mut *member), rest, action)?;
            let depth = depth(member);
            members.update_depth(depth)?;
            Ok(given)
        }
        (None, ResolvedStep::Index(index)) => {
            let ValueKind::Number(index) = index.kind() else { return Err(missing_error()) };
            let Some(index) = index.to_i64() else { return Err(whole_index_error()) };
            let Some(items) = target.items_mut(work)? else { return Err(missing_error()) };
            let item =
                resolve_index(index, items.content.len()).and_then(|index| items.content.get_mut(index));
            let Some(item) = item else { return Err(missing_error()) };
            let given = apply_at(work, Some(&mut *item), rest, action)?;
            let depth = depth(item);
            items.update_depth(depth)?;
            Ok(given)
        }
        (None, ResolvedStep::Key(_)) => Err(missing_error()),
    }
}

fn missing_error() -> EvalError {
    EvalError::Error("this member or element does not exist".to_owned())
}

/// Assigns a value at a path. The last step may be a new key.
pub(super) fn assign<'r>(
    work: &Fuel,
    target: Option<&mut ScriptValue<'r>>,
    steps: &[ResolvedStep<'r>],
    value: ScriptValue<'r>,
) -> Result<(), EvalError> {
    let mut value = Some(value);
    let (last, before) = match steps.split_last() {
        Some((last, before)) => (Some(last), before),
        None => (None, steps),
    };
    let mut action = |container: &mut ScriptValue<'r>| {
        let value = value.take().unwrap_or(ScriptValue::Null);
        match last {
            None => *container = value,
            Some(step) => set_member(work, container, step, value)?,
        }
        Ok(ScriptValue::Null)
    };
    apply_at(work, target, before, &mut action).map(|_| ())
}

fn set_member<'r>(
    work: &Fuel,
    container: &mut ScriptValue<'r>,
    step: &ResolvedStep<'r>,
    value: ScriptValue<'r>,
) -> Result<(), EvalError> {
    let found = container.json_type();
    let key = match step {
        ResolvedStep::Key(key) => Some(Cow::Borrowed(*key)),
        ResolvedStep::Index(index) => match (index.as_borrowed_str(), index.kind()) {
            (Some(key), _) => Some(Cow::Borrowed(key)),
            (None, ValueKind::String(key)) => Some(Cow::Owned(key.to_owned())),
            _ => None,
        },
    };
    let inner = depth(&value);
    if let Some(key) = key {
        let Some(members) = container.members_mut(work)? else {
            return Err(format!("`{key}` is set in a value that is not an object but of type {found}").into());
        };
        if !members.content.contains_key(&key) {
            work.spend_values(1)?;
        }
        members.content.insert(key, value);
        return members.update_depth(inner);
    }
    let ResolvedStep::Index(index) = step else { return Err(missing_error()) };
    let ValueKind::Number(index_number) = index.kind() else {
        return Err(index_type_error(found, index.json_type()));
    };
    let Some(index_number) = index_number.to_i64() else { return Err(whole_index_error()) };
    let Some(items) = container.items_mut(work)? else {
        return Err(index_type_error(found, index.json_type()));
    };
    let element =
        resolve_index(index_number, items.content.len()).and_then(|index| items.content.get_mut(index));
    let Some(element) = element else {
        return Err(format!("the array has no element {index_number}: `push(array, value)` adds one").into());
    };
    *element = value;
    items.update_depth(inner)
}

pub(super) fn mutate<'r>(
    how: MutatingFunction,
    target: &mut ScriptValue<'r>,
    arguments: &[ScriptValue<'r>],
    work: &Fuel,
) -> Result<ScriptValue<'r>, EvalError> {
    let found = target.json_type();
    let argument = arguments.first();
    match how {
        MutatingFunction::Push => {
            let Some(items) = target.items_mut(work)? else {
                return Err(format!("`push` takes an array, this is of type {found}").into());
            };
            let value = argument.cloned().unwrap_or(ScriptValue::Null);
            work.spend_values(1)?;
            items.update_depth(depth(&value))?;
            items.content.push(value);
            Ok(ScriptValue::Null)
        }
        MutatingFunction::Insert => {
            let [index, value] = arguments else { return Err("`insert` takes an index and a value".into()) };
            let index = match index.kind() {
                ValueKind::Number(index) => index.to_i64(),
                _ => None,
            };
            let Some(index) = index else { return Err(whole_index_error()) };
            let Some(items) = target.items_mut(work)? else {
                return Err(format!("`insert` takes an array, this is of type {found}").into());
            };
            let length = items.content.len();
            // As in Rhai: an index beyond an end means that end.
            let index = match usize::try_from(index) {
                Ok(index) => index.min(length),
                Err(_) => resolve_index(index, length).unwrap_or(0),
            };
            work.spend_values(1)?;
            work.spend_scan(length - index)?;
            items.update_depth(depth(value))?;
            items.content.insert(index, value.clone());
            Ok(ScriptValue::Null)
        }
        MutatingFunction::Pop => {
            let Some(items) = target.items_mut(work)? else {
                return Err(format!("`pop` takes an array, this is of type {found}").into());
            };
            items
                .content
                .pop()
                .ok_or_else(|| "`pop` takes an array with at least one element, this one is empty".into())
        }
        MutatingFunction::Remove => {
            let key = match argument.map(ScriptValue::kind) {
                Some(ValueKind::String(key)) => key.to_owned(),
                _ => return Err("`remove` takes an object and a string".into()),
            };
            let Some(members) = target.members_mut(work)? else {
                return Err(format!("`remove` takes an object, this is of type {found}").into());
            };
            // In place: keeps the order of the other members.
            Ok(ScriptValue::Boolean(members.content.shift_remove(key.as_str()).is_some()))
        }
    }
}
