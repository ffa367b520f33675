//! Types of the functions of the language: name + types of the arguments → the type of the result.

use super::value_type::TypeKind::{self, Array, Boolean, Duration, Null, Number, Object, String, Time};
use super::value_type::{ObjectType, ValueType};
use crate::json::Value;

/// The types of a function.
pub(super) struct FunctionType {
    /// The kinds that each argument can have. An empty list is any kind.
    pub(super) parameters: &'static [&'static [TypeKind]],
    result: ResultType,
}

/// How the type of a result follows from the types of the arguments.
enum ResultType {
    Of(TypeKind),
    ArrayOf(TypeKind),
    /// The type of the first argument.
    First,
    /// The elements of the first argument.
    Element,
    /// Anything else.
    Computed(fn(&[ValueType]) -> ValueType),
}

const ANY: &[TypeKind] = &[];
const STRING: &[TypeKind] = &[String];
const NUMBER: &[TypeKind] = &[Number];
const ARRAY: &[TypeKind] = &[Array];
const OBJECT: &[TypeKind] = &[Object];
const STRINGS: &[TypeKind] = &[String, Array];
const SIZED: &[TypeKind] = &[String, Array, Object];

/// The types of the function with this name. Returns `None` for functions whose calls have a code of their own.
pub(super) fn function_type(name: &str) -> Option<FunctionType> {
    use ResultType::{ArrayOf, Computed, Element, First, Of};
    let (parameters, result): (&'static [&'static [TypeKind]], ResultType) = match name {
        "abs" | "ceil" | "floor" | "fraction" | "int" | "pow" | "round" | "sign" | "sqrt" => {
            (&[NUMBER, NUMBER], Of(Number))
        }
        "is_even" | "is_odd" | "is_zero" => (&[NUMBER], Of(Boolean)),
        "max" | "min" => {
            (&[&[Number, String, Time, Duration], &[Number, String, Time, Duration]], Computed(larger))
        }
        "range" => (&[NUMBER, NUMBER], ArrayOf(Number)),
        "sum" => (&[ARRAY], Computed(sum)),
        "to_number" => (&[STRING], Of(Number)),
        "time_unix" => (&[NUMBER], Of(Time)),
        "time" => (&[STRING, STRING], Of(Time)),
        "duration" => (&[STRING], Of(Duration)),
        "chars" => (&[STRING], ArrayOf(String)),
        "split" => (&[STRING, STRING], ArrayOf(String)),
        "starts_with" | "ends_with" => (&[STRING, STRING], Of(Boolean)),
        "join" => (&[ARRAY, STRING], Of(String)),
        "replace" => (&[STRING, STRING, STRING], Of(String)),
        "sub_string" => (&[STRING, NUMBER, NUMBER], Of(String)),
        "to_lower" | "to_upper" | "trim" => (&[STRING], Of(String)),
        "contains" => (&[STRINGS, ANY], Of(Boolean)),
        "slice" => (&[STRINGS, NUMBER, NUMBER], Computed(slice)),
        "count" | "index_of" => (&[ARRAY, ANY], Of(Number)),
        "first" | "last" => (&[ARRAY], Element),
        "indices" => (&[ARRAY], ArrayOf(Number)),
        "reverse" | "sort" | "unique" => (&[ARRAY], First),
        "zip" => (&[ARRAY, ARRAY], Computed(zip)),
        "amounts" => (&[STRING, STRING], Computed(amounts)),
        "domain" | "host" => (&[STRING, STRINGS], Computed(text_or_match)),
        "emails" | "hosts" | "ibans" | "paths" | "urls" => (&[STRING], ArrayOf(String)),
        "numbers" => (&[STRING, STRING], ArrayOf(Number)),
        "inside" => (&[STRING, STRINGS], Of(Boolean)),
        "at" => (&[&[Array, Object], &[Number, String]], Computed(at)),
        "has" => (&[OBJECT, STRING], Of(Boolean)),
        "is_null" => (&[ANY], Computed(is_null)),
        "keys" => (&[OBJECT], ArrayOf(String)),
        "len" => (&[SIZED], Of(Number)),
        "is_empty" => (&[SIZED], Of(Boolean)),
        "merge" => (&[OBJECT, OBJECT], Of(Object)),
        "to_text" => (&[ANY], Computed(to_text)),
        "type_of" => (&[ANY], Computed(type_of)),
        "values" => (&[OBJECT], Computed(|arguments| ValueType::array(first(arguments).any_member()))),
        _ => return None,
    };
    Some(FunctionType { parameters, result })
}

impl FunctionType {
    /// The type of the result.
    pub(super) fn result(&self, arguments: &[ValueType]) -> ValueType {
        match self.result {
            ResultType::Of(Object) => ValueType::object(ObjectType::default()),
            ResultType::Of(kind) => ValueType::new(kind),
            ResultType::ArrayOf(kind) => ValueType::array(ValueType::new(kind)),
            ResultType::First => ValueType::array(first(arguments).element()),
            ResultType::Element => first(arguments).element(),
            ResultType::Computed(compute) => compute(arguments),
        }
    }
}

fn first(arguments: &[ValueType]) -> ValueType {
    arguments.first().cloned().unwrap_or_default()
}

fn larger(arguments: &[ValueType]) -> ValueType {
    ValueType::one_of(arguments.iter().cloned())
}

/// Without elements it is a number.
fn sum(arguments: &[ValueType]) -> ValueType {
    first(arguments).element().or(&ValueType::new(Number))
}

fn slice(arguments: &[ValueType]) -> ValueType {
    let value = first(arguments);
    match (value.may_be(String), value.may_be(Array)) {
        (true, true) => ValueType::ANY,
        (true, false) => ValueType::new(String),
        _ => ValueType::array(value.element()),
    }
}

fn zip(arguments: &[ValueType]) -> ValueType {
    let elements = arguments.iter().map(ValueType::element);
    ValueType::array(ValueType::array(ValueType::one_of(elements)))
}

fn amounts(_: &[ValueType]) -> ValueType {
    let members = [("value".to_owned(), ValueType::new(Number)), ("currency".to_owned(), ValueType::ANY)];
    ValueType::array(ValueType::object(ObjectType {
        members: members.into(),
        is_listed: true,
        ..ObjectType::default()
    }))
}

/// With patterns, whether one matches.
fn text_or_match(arguments: &[ValueType]) -> ValueType {
    ValueType::new(if arguments.len() > 1 { Boolean } else { String })
}

fn at(arguments: &[ValueType]) -> ValueType {
    let container = first(arguments);
    match (container.may_be(Array), container.may_be(Object)) {
        (true, false) => container.element(),
        (false, true) => container.any_member(),
        _ => ValueType::ANY,
    }
}

fn is_null(arguments: &[ValueType]) -> ValueType {
    let value = first(arguments);
    match (value.may_be(Null), value.kinds()) {
        (false, _) => ValueType::of(&Value::Bool(false)),
        (true, Some([Null])) => ValueType::of(&Value::Bool(true)),
        _ => ValueType::new(Boolean),
    }
}

/// A time stays a time.
fn to_text(arguments: &[ValueType]) -> ValueType {
    match first(arguments).may_be_one_of(&[Time, Duration]) {
        true => ValueType::ANY,
        false => ValueType::new(String),
    }
}

fn type_of(arguments: &[ValueType]) -> ValueType {
    let value = first(arguments);
    let names = value.kinds().unwrap_or_default().iter().map(|kind| ValueType::of(&kind.json_name().into()));
    match value.kinds() {
        Some(_) => ValueType::one_of(names),
        None => ValueType::new(String),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::functions;
    use crate::script::script_function::Implementation;

    #[test]
    fn each_function_with_values_as_arguments_has_types() {
        for function in functions() {
            let is_plain = matches!(
                function.implementation,
                Implementation::One(_)
                    | Implementation::Two(_)
                    | Implementation::OneOrTwo(_)
                    | Implementation::Three(_)
            );
            let types = function_type(function.name);
            assert_eq!(is_plain || function.name == "sort", types.is_some(), "{}", function.name);
            if let Some(types) = types {
                assert!(
                    types.parameters.len() >= function.parameters.len().min(2) || function.name == "sort"
                );
            }
        }
    }
}
