//! Conversions of Rust values into JSON values, and comparisons between them.

use std::borrow::Cow;

use super::{Map, Number, Value};

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(text: Cow<'_, str>) -> Self {
        Self::String(text.into_owned())
    }
}

impl From<Map> for Value {
    fn from(members: Map) -> Self {
        Self::Object(members)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Clone + Into<Self>> From<&[T]> for Value {
    fn from(items: &[T]) -> Self {
        Self::Array(items.iter().cloned().map(Into::into).collect())
    }
}

impl<T: Into<Self>, const N: usize> From<[T; N]> for Value {
    fn from(items: [T; N]) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<()> for Value {
    fn from((): ()) -> Self {
        Self::Null
    }
}

/// Infinity and NaN become `null`.
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Number::from_f64(value).map_or(Self::Null, Self::Number)
    }
}

/// Infinity and NaN become `null`.
impl From<f32> for Value {
    fn from(value: f32) -> Self {
        let number = value.is_finite().then(|| format!("{value:?}").parse().ok()).flatten();
        number.map_or(Self::Null, Self::Number)
    }
}

impl<T: Into<Self>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<String>, V: Into<Self>> FromIterator<(K, V)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl From<$number> for Value {
            fn from(value: $number) -> Self {
                Self::Number(value.into())
            }
        }

        impl PartialEq<$number> for Value {
            fn eq(&self, other: &$number) -> bool {
                self.as_number().is_some_and(|number| *number == Number::from(*other))
            }
        }

        impl PartialEq<Value> for $number {
            fn eq(&self, other: &Value) -> bool {
                other == self
            }
        }

        impl PartialEq<$number> for &Value {
            fn eq(&self, other: &$number) -> bool {
                *self == other
            }
        }
    )*};
}

numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! comparisons {
    ($($other:ty: $value:ident, $given:ident => $equal:expr;)*) => {$(
        impl PartialEq<$other> for Value {
            fn eq(&self, $given: &$other) -> bool {
                let $value = self;
                $equal
            }
        }

        impl PartialEq<Value> for $other {
            fn eq(&self, other: &Value) -> bool {
                other == self
            }
        }
    )*};
}

comparisons! {
    str: value, text => value.as_str() == Some(text);
    &str: value, text => value.as_str() == Some(*text);
    String: value, text => value.as_str() == Some(text.as_str());
    bool: value, other => value.as_bool() == Some(*other);
    f64: value, other => value.as_number().is_some_and(|number| Number::from_f64(*other).is_some_and(|other| *number == other));
}

impl PartialEq<bool> for &Value {
    fn eq(&self, other: &bool) -> bool {
        *self == other
    }
}

impl PartialEq<str> for &Value {
    fn eq(&self, other: &str) -> bool {
        *self == other
    }
}
