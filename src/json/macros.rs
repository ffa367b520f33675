//! `json!`: JSON literals in Rust code.

/// A [`Value`](crate::json::Value) written as JSON. Values in it are expressions of any type that implements `Serialize`, keys are
/// literals, names, or expressions in parentheses.
///
/// ```
/// use callgate::json::json;
///
/// let amount = 250;
/// let call = json!({"tool": "refund", "input": {"amount": amount, "tags": ["a", null], "note": Some("x")}});
/// assert_eq!(call.to_string(), r#"{"tool":"refund","input":{"amount":250,"tags":["a",null],"note":"x"}}"#);
/// ```
///
/// # Panics
///
/// If the `Serialize` of an expression fails, or an object in it has keys that are not strings.
#[macro_export]
#[doc(hidden)]
macro_rules! __json {
    (@array $items:ident;) => {};
    (@array $items:ident; null $(, $($rest:tt)*)?) => {
        $items.push($crate::json::Value::Null);
        $crate::json::json!(@array $items; $($($rest)*)?);
    };
    (@array $items:ident; [$($inner:tt)*] $(, $($rest:tt)*)?) => {
        $items.push($crate::json::json!([$($inner)*]));
        $crate::json::json!(@array $items; $($($rest)*)?);
    };
    (@array $items:ident; {$($inner:tt)*} $(, $($rest:tt)*)?) => {
        $items.push($crate::json::json!({$($inner)*}));
        $crate::json::json!(@array $items; $($($rest)*)?);
    };
    (@array $items:ident; $item:expr $(, $($rest:tt)*)?) => {
        $items.push($crate::json::json!($item));
        $crate::json::json!(@array $items; $($($rest)*)?);
    };

    (@object $members:ident;) => {};
    (@object $members:ident; $key:tt: null $(, $($rest:tt)*)?) => {
        $members.insert($crate::json::Key::from($key), $crate::json::Value::Null);
        $crate::json::json!(@object $members; $($($rest)*)?);
    };
    (@object $members:ident; $key:tt: [$($inner:tt)*] $(, $($rest:tt)*)?) => {
        $members.insert($crate::json::Key::from($key), $crate::json::json!([$($inner)*]));
        $crate::json::json!(@object $members; $($($rest)*)?);
    };
    (@object $members:ident; $key:tt: {$($inner:tt)*} $(, $($rest:tt)*)?) => {
        $members.insert($crate::json::Key::from($key), $crate::json::json!({$($inner)*}));
        $crate::json::json!(@object $members; $($($rest)*)?);
    };
    (@object $members:ident; $key:tt: $value:expr $(, $($rest:tt)*)?) => {
        $members.insert($crate::json::Key::from($key), $crate::json::json!($value));
        $crate::json::json!(@object $members; $($($rest)*)?);
    };

    (null) => { $crate::json::Value::Null };
    ([]) => { $crate::json::Value::Array(::std::vec::Vec::new()) };
    ([$($items:tt)+]) => {{
        let mut items = $crate::json::empty_array();
        $crate::json::json!(@array items; $($items)+);
        $crate::json::Value::Array(items)
    }};
    ({}) => { $crate::json::Value::Object($crate::json::Map::new()) };
    ({$($members:tt)+}) => {{
        let mut members = $crate::json::Map::new();
        $crate::json::json!(@object members; $($members)+);
        $crate::json::Value::Object(members)
    }};
    ($value:expr) => { $crate::json::serialized(&$value) };
}

pub use __json as json;
