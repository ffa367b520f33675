//! Static types of values: schemas, constants and expressions → the values that are possible.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::json::Value;

/// The most values that a type lists. A type of more is the type of all values of their kind.
const MAX_LISTED: usize = 64;

/// The kinds whose values a type can list.
const LISTED_KINDS: [TypeKind; 3] = [TypeKind::Boolean, TypeKind::Number, TypeKind::String];

/// A kind of value, as operators and functions distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypeKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
    /// A timestamp.
    Time,
    /// A duration.
    Duration,
}

impl TypeKind {
    /// The kind of a JSON value.
    pub fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    /// The name with its article.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
            Self::Time => "a time",
            Self::Duration => "a duration",
        }
    }

    /// What `type_of` returns for it.
    pub(super) fn json_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::Array => "array",
            Self::Object => "object",
            Self::String | Self::Time | Self::Duration => "string",
        }
    }
}

/// The values that an expression can have, if it has one: whether it can be absent or undecided is not a part of its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueType(Option<Rc<KnownType>>);

/// A type that is known. It has at least one kind.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownType {
    kinds: Vec<TypeKind>,
    /// The booleans, numbers and strings, where only these are possible.
    listed: Option<Listed>,
    element: ValueType,
    members: ObjectType,
}

/// A list of possible values.
#[derive(Clone, Debug, Default, PartialEq)]
struct Listed {
    values: Vec<Value>,
    /// Whether a schema lists them.
    by_schema: bool,
}

/// The members of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectType {
    /// The types of known members, which can be absent.
    pub members: BTreeMap<String, ValueType>,
    /// The type of all other members.
    pub others: ValueType,
    /// Whether a schema or a constant lists the members, so that another one is probably a mistake.
    pub is_listed: bool,
    /// Whether there are no other members.
    pub is_closed: bool,
}

impl ValueType {
    /// Any value.
    pub const ANY: Self = Self(None);

    /// Any value of a kind.
    pub fn new(kind: TypeKind) -> Self {
        Self::from_known(KnownType { kinds: vec![kind], ..KnownType::default() })
    }

    /// An array of elements of this type.
    pub fn array(element: Self) -> Self {
        Self::from_known(KnownType { kinds: vec![TypeKind::Array], element, ..KnownType::default() })
    }

    /// An object.
    pub fn object(members: ObjectType) -> Self {
        Self::from_known(KnownType { kinds: vec![TypeKind::Object], members, ..KnownType::default() })
    }

    /// One of the values that a schema lists. An empty list is any value.
    pub fn permitted(values: &[&Value]) -> Self {
        let types =
            values.iter().map(|value| Self::of_scalar(value, true).unwrap_or_else(|| Self::of(value)));
        Self::one_of(types)
    }

    /// The type of a constant.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::array(Self::one_of(items.iter().map(Self::of))),
            // A table: the type of a row is enough.
            Value::Object(rows) if rows.len() > MAX_LISTED => {
                let others = Self::one_of(rows.iter().map(|(_, row)| Self::of(row)));
                Self::object(ObjectType { others, ..ObjectType::default() })
            }
            Value::Object(members) => {
                let members = members.iter().map(|(key, member)| (key.as_str().to_owned(), Self::of(member)));
                Self::object(ObjectType {
                    members: members.collect(),
                    others: Self::ANY,
                    is_listed: true,
                    is_closed: true,
                })
            }
            scalar => Self::of_scalar(scalar, false).unwrap_or(Self::ANY),
        }
    }

    fn of_scalar(value: &Value, by_schema: bool) -> Option<Self> {
        let kind = TypeKind::from_value(value);
        let listed = match kind {
            TypeKind::Boolean | TypeKind::Number | TypeKind::String => {
                Some(Listed { values: vec![value.clone()], by_schema })
            }
            TypeKind::Null => None,
            _ => return None,
        };
        Some(Self::from_known(KnownType { kinds: vec![kind], listed, ..KnownType::default() }))
    }

    fn from_known(known: KnownType) -> Self {
        Self(Some(Rc::new(known)))
    }

    /// A value of one of these types. Without types it is any value.
    pub fn one_of(types: impl IntoIterator<Item = Self>) -> Self {
        types.into_iter().reduce(|all, other| all.or(&other)).unwrap_or(Self::ANY)
    }

    /// A value of this type or of another one.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let (Some(a), Some(b)) = (&self.0, &other.0) else { return Self::ANY };
        if a == b {
            return self.clone();
        }
        let mut kinds = a.kinds.clone();
        kinds.extend(&b.kinds);
        kinds.sort_unstable();
        kinds.dedup();
        let has = |known: &KnownType, kind| known.kinds.contains(&kind);
        let pick = |kind, one: &dyn Fn(&KnownType) -> Self| match (has(a, kind), has(b, kind)) {
            (true, true) => one(a).or(&one(b)),
            (true, false) => one(a),
            _ => one(b),
        };
        Self::from_known(KnownType {
            kinds,
            listed: Listed::union(a, b),
            element: pick(TypeKind::Array, &|known| known.element.clone()),
            members: match (has(a, TypeKind::Object), has(b, TypeKind::Object)) {
                (true, true) => a.members.or(&b.members),
                (true, false) => a.members.clone(),
                _ => b.members.clone(),
            },
        })
    }

    /// Whether the value can be of a kind.
    pub fn may_be(&self, kind: TypeKind) -> bool {
        self.0.as_ref().is_none_or(|known| known.kinds.contains(&kind))
    }

    /// Whether the value can be of one of these kinds.
    pub fn may_be_one_of(&self, kinds: &[TypeKind]) -> bool {
        kinds.iter().any(|kind| self.may_be(*kind))
    }

    /// Whether a value of this type can be of the kind of a value of another one.
    pub fn has_common_kind(&self, other: &Self) -> bool {
        self.kinds().is_none_or(|kinds| other.may_be_one_of(kinds))
    }

    /// The kinds that the value can have. Returns `None` for any value.
    pub fn kinds(&self) -> Option<&[TypeKind]> {
        self.0.as_ref().map(|known| known.kinds.as_slice())
    }

    /// The value, if only one boolean, number or string is possible.
    pub fn single_value(&self) -> Option<&Value> {
        let known = self.0.as_ref()?;
        match (known.kinds.as_slice(), known.listed.as_ref()?.values.as_slice()) {
            ([_], [value]) => Some(value),
            _ => None,
        }
    }

    /// Whether only this boolean is possible. Returns `None` if both are, or other values.
    pub fn constant_boolean(&self) -> Option<bool> {
        self.single_value().and_then(Value::as_bool)
    }

    /// The values that are possible beside null, if a schema lists all of them.
    pub fn permitted_values(&self) -> Option<&[Value]> {
        let known = self.0.as_ref()?;
        let listed = known.listed.as_ref().filter(|listed| listed.by_schema)?;
        let is_listed = |kind: &TypeKind| *kind == TypeKind::Null || LISTED_KINDS.contains(kind);
        known.kinds.iter().all(is_listed).then_some(listed.values.as_slice())
    }

    /// The type of a member. Absence and other types of values than objects are left out.
    #[must_use]
    pub fn member(&self, key: &str) -> Self {
        match &self.0 {
            Some(known) => known.members.members.get(key).unwrap_or(&known.members.others).clone(),
            None => Self::ANY,
        }
    }

    /// The names of the members, if the value can only be an object whose members are listed, or null.
    pub fn listed_members(&self) -> Option<Vec<&str>> {
        let known = self.0.as_ref().filter(|known| known.members.is_listed)?;
        let is_object = known.kinds.iter().all(|kind| matches!(kind, TypeKind::Object | TypeKind::Null));
        (is_object && known.kinds.contains(&TypeKind::Object))
            .then(|| known.members.members.keys().map(String::as_str).collect())
    }

    /// The type of any member.
    #[must_use]
    pub(super) fn any_member(&self) -> Self {
        let Some(known) = &self.0 else { return Self::ANY };
        let members = known.members.members.values().cloned();
        match known.members.is_closed {
            true => Self::one_of(members),
            false => Self::one_of(members.chain([known.members.others.clone()])),
        }
    }

    /// The type of the elements of an array.
    #[must_use]
    pub fn element(&self) -> Self {
        self.0.as_ref().map_or(Self::ANY, |known| known.element.clone())
    }

    /// The same values, and null.
    #[must_use]
    pub fn or_null(&self) -> Self {
        self.or(&Self::new(TypeKind::Null))
    }

    /// The same values without null.
    #[must_use]
    pub(super) fn without_null(&self) -> Self {
        let Some(known) = &self.0 else { return Self::ANY };
        let mut known = KnownType::clone(known);
        known.kinds.retain(|kind| *kind != TypeKind::Null);
        if known.kinds.is_empty() { Self::ANY } else { Self::from_known(known) }
    }

    /// The kinds for a message: `a number or a string`.
    pub fn describe(&self) -> String {
        let kinds = self.kinds().unwrap_or_default();
        match kinds {
            [] => "any value".to_owned(),
            kinds => kinds.iter().map(|kind| kind.with_article()).collect::<Vec<_>>().join(" or "),
        }
    }
}

impl Listed {
    fn union(a: &KnownType, b: &KnownType) -> Option<Self> {
        let mut union = Self { values: Vec::new(), by_schema: true };
        for known in [a, b] {
            match &known.listed {
                Some(listed) => {
                    union.by_schema &= listed.by_schema;
                    for value in &listed.values {
                        if !union.values.contains(value) {
                            union.values.push(value.clone());
                        }
                    }
                }
                // All values of the kind are possible.
                None if known.kinds.iter().any(|kind| LISTED_KINDS.contains(kind)) => return None,
                None => {}
            }
        }
        (!union.values.is_empty() && union.values.len() <= MAX_LISTED).then_some(union)
    }
}

impl ObjectType {
    fn or(&self, other: &Self) -> Self {
        let mut members = self.members.clone();
        for (key, member) in &mut members {
            *member = member.or(other.members.get(key).unwrap_or(&other.others));
        }
        for (key, member) in &other.members {
            if !self.members.contains_key(key) {
                members.insert(key.clone(), member.or(&self.others));
            }
        }
        Self {
            members,
            others: self.others.or(&other.others),
            is_listed: self.is_listed && other.is_listed,
            is_closed: self.is_closed && other.is_closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn a_union_has_the_kinds_and_values_of_both() {
        let one_or_two = ValueType::of(&json!(1)).or(&ValueType::of(&json!("two")));
        assert_eq!(one_or_two.describe(), "a number or a string");
        assert_eq!(one_or_two.single_value(), None);
        assert_eq!(ValueType::of(&json!(true)).or(&ValueType::ANY), ValueType::ANY);
        let wider = one_or_two.or(&ValueType::new(TypeKind::String));
        assert_eq!(wider.permitted_values(), None);
        assert!(!wider.may_be(TypeKind::Boolean));
    }

    #[test]
    fn an_empty_array_has_elements_of_any_type() {
        assert_eq!(ValueType::of(&json!([])).element(), ValueType::ANY);
    }

    #[test]
    fn rows_of_a_table_become_one_type() {
        let rows = ValueType::of(&json!([{ "a": 1 }, { "a": "x", "b": null }])).element();
        assert_eq!(rows.member("a").describe(), "a number or a string");
        assert_eq!(rows.member("other"), ValueType::ANY);
    }

    #[test]
    fn only_lists_of_schemas_are_permitted_values() {
        let listed = [json!("a"), json!("b")];
        let by_schema = ValueType::permitted(&listed.iter().collect::<Vec<_>>());
        assert_eq!(by_schema.permitted_values(), Some(listed.as_slice()));
        assert_eq!(by_schema.or(&ValueType::of(&json!("c"))).permitted_values(), None);
        assert_eq!(by_schema.or_null().permitted_values(), Some(listed.as_slice()));
    }
}
