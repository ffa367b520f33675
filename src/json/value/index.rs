//! `Index`: values of a JSON value by key or position.

use std::ops;

use super::{Key, Map, Value};

/// A key of an object or a position in an array: `str`, `String`, [`Key`], `usize`, and references to them.
pub trait Index: sealed::Sealed {
    #[doc(hidden)]
    fn get_in<'v>(&self, value: &'v Value) -> Option<&'v Value>;
    #[doc(hidden)]
    fn get_mut_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value>;
    #[doc(hidden)]
    fn get_or_insert_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value>;
}

mod sealed {
    use super::Key;

    pub trait Sealed {}
    impl Sealed for str {}
    impl Sealed for String {}
    impl Sealed for Key {}
    impl Sealed for usize {}
    impl<I: ?Sized + Sealed> Sealed for &I {}
}

impl Index for str {
    fn get_in<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.as_object()?.get(self)
    }

    fn get_mut_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        value.as_object_mut()?.get_mut(self)
    }

    fn get_or_insert_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        Some(value.as_object_mut()?.entry(self).or_insert(Value::Null))
    }
}

macro_rules! index_by_text {
    ($($of:ty),*) => { $(
        impl Index for $of {
            fn get_in<'v>(&self, value: &'v Value) -> Option<&'v Value> {
                self.as_str().get_in(value)
            }

            fn get_mut_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
                self.as_str().get_mut_in(value)
            }

            fn get_or_insert_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
                self.as_str().get_or_insert_in(value)
            }
        }
    )* };
}

index_by_text!(String, Key);

impl Index for usize {
    fn get_in<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.as_array()?.get(*self)
    }

    fn get_mut_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        value.as_array_mut()?.get_mut(*self)
    }

    fn get_or_insert_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.get_mut_in(value)
    }
}

impl<I: ?Sized + Index> Index for &I {
    fn get_in<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        (**self).get_in(value)
    }

    fn get_mut_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        (**self).get_mut_in(value)
    }

    fn get_or_insert_in<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        (**self).get_or_insert_in(value)
    }
}

impl<I: Index> ops::Index<I> for Value {
    type Output = Self;

    /// The member or item, or `null` if there is none.
    fn index(&self, index: I) -> &Self {
        index.get_in(self).unwrap_or(&Self::Null)
    }
}

impl<I: Index> ops::IndexMut<I> for Value {
    /// The mutable member or item. Inserts a missing member as `null`; a `null` value becomes an object for that.
    ///
    /// # Panics
    ///
    /// If there can't be such a member or item: a key of a value that is not an object, or a position beyond the end.
    #[expect(clippy::panic, reason = "as for slices: there is nothing to return")]
    fn index_mut(&mut self, index: I) -> &mut Self {
        match index.get_or_insert_in(self) {
            Some(value) => value,
            None => panic!("no such member or item"),
        }
    }
}
