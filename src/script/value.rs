//! Values of expressions and scripts: data of the call is borrowed, new values are shared and copied on write.

use std::borrow::Cow;
use std::rc::Rc;

use indexmap::IndexMap;

use super::exact_number::{ExactNumber, NumberView};
use super::fuel::{EvalError, Fuel, VALUE_BYTES};
use crate::json::{JsonType, MAX_DEPTH, Value};
use crate::time::TimeValue;

/// The maximum nesting of a value that an expression or script creates, not counting borrowed data of the call.
pub(super) const MAX_NESTING: usize = 64;

/// The members of an object, in order.
pub(super) type MemberMap<'r> = IndexMap<Cow<'r, str>, ScriptValue<'r>>;

/// A value. `'r` is the lifetime of borrowed data: the call, the results of effects, the program's constants.
#[derive(Clone, Debug)]
pub(super) enum ScriptValue<'r> {
    Null,
    Boolean(bool),
    Number(ExactNumber),
    Borrowed(&'r str),
    String(Rc<str>),
    Array(Rc<NestedContainer<Vec<ScriptValue<'r>>>>),
    Object(Rc<NestedContainer<MemberMap<'r>>>),
    /// Borrowed JSON.
    Json(&'r Value),
    /// A timestamp or a duration.
    Time(TimeValue),
}

/// A new container with its nesting depth: deeper than [`MAX_NESTING`], dropping it could overflow the stack.
#[derive(Clone, Debug)]
pub(super) struct NestedContainer<T> {
    pub(super) content: T,
    depth: usize,
}

/// A view of a value by JSON type.
pub(super) enum ValueKind<'v, 'r> {
    Null,
    Boolean(bool),
    Number(NumberView<'v>),
    String(&'v str),
    Array(ArrayView<'v, 'r>),
    Object(ObjectView<'v, 'r>),
    Time(TimeValue),
}

/// A view of an array, borrowed or created.
#[derive(Clone, Copy)]
pub(super) enum ArrayView<'v, 'r> {
    Json(&'r [Value]),
    Created(&'v [ScriptValue<'r>]),
}

/// A view of an object, borrowed or created.
#[derive(Clone, Copy)]
pub(super) enum ObjectView<'v, 'r> {
    Json(&'r crate::json::Map),
    Created(&'v MemberMap<'r>),
}

impl<'r> ScriptValue<'r> {
    pub(super) fn whole(number: usize) -> Self {
        Self::Number(ExactNumber::from(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    /// Creates a string.
    ///
    /// # Errors
    /// The string, or all strings of the evaluation together, exceed the limit.
    pub(super) fn text(work: &Fuel, text: &str) -> Result<Self, EvalError> {
        work.spend_string(text.len())?;
        Ok(Self::String(text.into()))
    }

    /// Creates an array.
    ///
    /// # Errors
    /// The number of values exceeds the limit, or the array nests too deeply.
    pub(super) fn list(work: &Fuel, items: Vec<Self>) -> Result<Self, EvalError> {
        work.spend_values(items.len())?;
        let depth = checked_depth(items.iter().map(Self::depth).max())?;
        Ok(Self::Array(Rc::new(NestedContainer { content: items, depth })))
    }

    /// Creates an object.
    ///
    /// # Errors
    /// As for [`ScriptValue::list`].
    pub(super) fn object(work: &Fuel, members: MemberMap<'r>) -> Result<Self, EvalError> {
        work.spend_values(members.len())?;
        let depth = checked_depth(members.values().map(Self::depth).max())?;
        Ok(Self::Object(Rc::new(NestedContainer { content: members, depth })))
    }

    fn depth(&self) -> usize {
        match self {
            Self::Array(list) => list.depth,
            Self::Object(object) => object.depth,
            _ => 0,
        }
    }

    /// The string of a value that borrows it for the whole evaluation. Returns `None` for any other value.
    pub(super) fn as_borrowed_str(&self) -> Option<&'r str> {
        match self {
            Self::Borrowed(text) => Some(text),
            Self::Json(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The approximate number of bytes to scan for the value itself, without its elements and members.
    pub(super) fn scan_size(&self) -> usize {
        const OF_MEMBER: usize = 32;
        match self {
            Self::Borrowed(text) => text.len(),
            Self::String(text) => text.len(),
            Self::Object(object) => object.content.len() * OF_MEMBER,
            Self::Json(Value::String(text)) => text.len(),
            Self::Json(Value::Number(number)) => number.text().len(),
            Self::Json(Value::Object(members)) => members.len() * OF_MEMBER,
            _ => 0,
        }
    }

    /// The JSON type. A time or a duration is a string as JSON.
    pub(super) fn json_type(&self) -> JsonType {
        self.kind().json_type()
    }

    /// The view of the value by JSON type.
    pub(super) fn kind<'v>(&'v self) -> ValueKind<'v, 'r> {
        match self {
            Self::Null | Self::Json(Value::Null) => ValueKind::Null,
            Self::Boolean(value) | Self::Json(Value::Bool(value)) => ValueKind::Boolean(*value),
            Self::Number(number) => ValueKind::Number(NumberView::Exact(*number)),
            Self::Json(Value::Number(number)) => ValueKind::Number(NumberView::from_json(number)),
            Self::Borrowed(text) => ValueKind::String(text),
            Self::String(text) => ValueKind::String(text),
            Self::Json(Value::String(text)) => ValueKind::String(text),
            Self::Array(list) => ValueKind::Array(ArrayView::Created(&list.content)),
            Self::Json(Value::Array(items)) => ValueKind::Array(ArrayView::Json(items)),
            Self::Object(object) => ValueKind::Object(ObjectView::Created(&object.content)),
            Self::Json(Value::Object(members)) => ValueKind::Object(ObjectView::Json(members)),
            Self::Time(value) => ValueKind::Time(*value),
        }
    }

    /// The elements for a change. Returns `None` if the value is not an array.
    ///
    /// # Errors
    /// The elements have to be copied first, which exceeds the limit on values.
    pub(super) fn items_mut(
        &mut self,
        work: &Fuel,
    ) -> Result<Option<&mut NestedContainer<Vec<Self>>>, EvalError> {
        if let Self::Json(Value::Array(items)) = self {
            *self = Self::list(work, items.iter().map(Self::Json).collect())?;
        }
        let Self::Array(list) = self else { return Ok(None) };
        if Rc::strong_count(list) > 1 {
            work.spend_values(list.content.len())?;
        }
        Ok(Some(Rc::make_mut(list)))
    }

    /// The members for a change. Returns `None` if the value is not an object.
    ///
    /// # Errors
    /// As for [`ScriptValue::items_mut`].
    pub(super) fn members_mut(
        &mut self,
        work: &Fuel,
    ) -> Result<Option<&mut NestedContainer<MemberMap<'r>>>, EvalError> {
        if let Self::Json(Value::Object(members)) = self {
            let members = members.iter().map(|(key, member)| (Cow::from(key.as_str()), Self::Json(member)));
            *self = Self::object(work, members.collect())?;
        }
        let Self::Object(object) = self else { return Ok(None) };
        if Rc::strong_count(object) > 1 {
            work.spend_values(object.content.len())?;
        }
        Ok(Some(Rc::make_mut(object)))
    }

    /// Copies the value to JSON.
    ///
    /// # Errors
    /// The copy exceeds the output limit, or nests too deeply.
    pub(super) fn to_json(&self, work: &Fuel) -> Result<Value, EvalError> {
        self.to_json_below(work, 0)
    }

    fn to_json_below(&self, work: &Fuel, depth: usize) -> Result<Value, EvalError> {
        work.spend_step()?;
        work.spend_output(VALUE_BYTES)?;
        if depth > MAX_DEPTH {
            return Err(nesting_error());
        }
        Ok(match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Bool(*value),
            Self::Number(number) => number.to_json(),
            Self::Borrowed(text) => {
                work.spend_output(text.len())?;
                Value::from(*text)
            }
            Self::String(text) => {
                work.spend_output(text.len())?;
                Value::from(&**text)
            }
            Self::Json(Value::String(text)) => {
                work.spend_output(text.len())?;
                Value::from(text.as_str())
            }
            Self::Time(value) => Value::from(value.to_string()),
            Self::Json(Value::Array(items)) => Value::Array(
                items
                    .iter()
                    .map(|item| ScriptValue::Json(item).to_json_below(work, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Json(Value::Object(members)) => {
                let mut object = crate::json::Map::with_capacity(members.len());
                for (key, member) in members {
                    work.spend_output(key.len())?;
                    object.insert(key.clone(), ScriptValue::Json(member).to_json_below(work, depth + 1)?);
                }
                Value::Object(object)
            }
            Self::Json(other) => (*other).clone(),
            Self::Array(list) => Value::Array(
                list.content
                    .iter()
                    .map(|item| item.to_json_below(work, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Object(object) => {
                let mut members = crate::json::Map::with_capacity(object.content.len());
                for (key, member) in &object.content {
                    work.spend_output(key.len())?;
                    members.insert(key.clone().into_owned(), member.to_json_below(work, depth + 1)?);
                }
                Value::Object(members)
            }
        })
    }
}

impl<T> NestedContainer<T> {
    /// Updates the depth for a new element or member.
    ///
    /// # Errors
    /// The container nests too deeply.
    pub(super) fn update_depth(&mut self, value_depth: usize) -> Result<(), EvalError> {
        self.depth = self.depth.max(checked_depth(Some(value_depth))?);
        Ok(())
    }
}

/// The nesting depth of a value, for [`NestedContainer::update_depth`].
pub(super) fn depth(value: &ScriptValue<'_>) -> usize {
    value.depth()
}

fn checked_depth(inside: Option<usize>) -> Result<usize, EvalError> {
    let depth = inside.unwrap_or(0) + 1;
    if depth > MAX_NESTING { Err(nesting_error()) } else { Ok(depth) }
}

pub(super) fn nesting_error() -> EvalError {
    EvalError::LimitExceeded(format!("a value nests deeper than {MAX_NESTING} levels"))
}

impl ValueKind<'_, '_> {
    pub(super) fn json_type(&self) -> JsonType {
        match self {
            Self::Null => JsonType::Null,
            Self::Boolean(_) => JsonType::Boolean,
            Self::Number(_) => JsonType::Number,
            Self::String(_) | Self::Time(_) => JsonType::String,
            Self::Array(_) => JsonType::Array,
            Self::Object(_) => JsonType::Object,
        }
    }

    /// Whether it is a time or a duration.
    pub(super) fn is_time(&self) -> bool {
        matches!(self, Self::Time(_))
    }

    /// The name of the type, for messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Time(value) => value.type_name(),
            other => other.json_type().name(),
        }
    }
}

impl<'v, 'r> ArrayView<'v, 'r> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Created(items) => items.len(),
        }
    }

    pub(super) fn get(self, index: usize) -> Option<ScriptValue<'r>> {
        match self {
            Self::Json(items) => items.get(index).map(ScriptValue::Json),
            Self::Created(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = ScriptValue<'r>> + use<'v, 'r> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}

impl<'v, 'r> ObjectView<'v, 'r> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Json(members) => members.len(),
            Self::Created(members) => members.len(),
        }
    }

    pub(super) fn get(self, key: &str) -> Option<ScriptValue<'r>> {
        match self {
            Self::Json(members) => members.get(key).map(ScriptValue::Json),
            Self::Created(members) => members.get(key).cloned(),
        }
    }

    /// The keys, sorted, so that no result depends on the order in which an object was written.
    pub(super) fn sorted_keys(self) -> Vec<Cow<'r, str>> {
        let mut keys: Vec<Cow<'r, str>> = match self {
            Self::Json(members) => members.keys().map(|key| Cow::Borrowed(key.as_str())).collect(),
            Self::Created(members) => members.keys().cloned().collect(),
        };
        keys.sort_unstable();
        keys
    }
}

/// Converts a key into a value.
pub(super) fn key_to_value(key: Cow<'_, str>) -> ScriptValue<'_> {
    match key {
        Cow::Borrowed(key) => ScriptValue::Borrowed(key),
        Cow::Owned(key) => ScriptValue::String(key.into()),
    }
}

/// Converts an index, which counts from the end if negative, into an offset. Returns `None` if it is out of range.
pub(super) fn resolve_index(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
    .filter(|index| *index < len)
}
