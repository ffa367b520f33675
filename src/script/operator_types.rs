//! Types of the operators: types of two operands → type of the result.

use super::program::{Code, CodeNode, SourcePosition};
use super::type_checker::TypeChecker;
use super::type_problem::{Operand, UnlistedValue, describe};
use super::value_type::TypeKind::{self, Array, Boolean, Duration, Number, Object, String, Time};
use super::value_type::ValueType;
use crate::json::Value;

/// The pairs of kinds that an operator takes, with the kind of the result.
type KindRow = (TypeKind, TypeKind, TypeKind);

const ORDERED: &[KindRow] = &[
    (Number, Number, Boolean),
    (String, String, Boolean),
    (Time, Time, Boolean),
    (Duration, Duration, Boolean),
];
const SUM: &[KindRow] =
    &[(Number, Number, Number), (String, String, String), (Time, Duration, Time), (Duration, Time, Time)];
const DIFFERENCE: &[KindRow] = &[(Number, Number, Number), (Time, Time, Duration), (Time, Duration, Time)];
const ARITHMETIC: &[KindRow] = &[(Number, Number, Number)];

impl<'p> TypeChecker<'p> {
    /// The type of a result. An operator that fails for every pair of values is reported.
    pub(super) fn operator(
        &mut self,
        symbol: &'static str,
        operands: &'p [CodeNode; 2],
        types: &[ValueType; 2],
        position: SourcePosition,
    ) -> ValueType {
        let rows = match symbol {
            "==" | "!=" => return self.equality(symbol, operands, types, position),
            "in" | "!in" => return self.membership(symbol, operands, types, position),
            "<" | "<=" | ">" | ">=" => ORDERED,
            "+" => SUM,
            "-" => DIFFERENCE,
            _ => ARITHMETIC,
        };
        let [left, right] = types;
        let fitting = rows.iter().filter(|(a, b, _)| left.may_be(*a) && right.may_be(*b));
        let results: Vec<ValueType> = fitting.map(|(_, _, result)| ValueType::new(*result)).collect();
        if results.is_empty() {
            let [a, b] = operands;
            let operation = self.operation(symbol, position);
            self.push_problem(operation.different_types(Operand::new(a, left), Operand::new(b, right)));
        }
        ValueType::one_of(results)
    }

    fn equality(
        &mut self,
        symbol: &'static str,
        operands: &'p [CodeNode; 2],
        [left, right]: &[ValueType; 2],
        position: SourcePosition,
    ) -> ValueType {
        let [a, b] = operands;
        if !left.has_common_kind(right) {
            let operation = self.operation(symbol, position);
            self.push_problem(operation.different_types(Operand::new(a, left), Operand::new(b, right)));
            return ValueType::ANY;
        }
        let (a, b) = (Operand::new(a, left), Operand::new(b, right));
        self.compare_with_list(a, b);
        self.compare_with_list(b, a);
        match (left.single_value(), right.single_value()) {
            (Some(left), Some(right)) => ValueType::of(&Value::Bool((left == right) == (symbol == "=="))),
            _ => ValueType::new(Boolean),
        }
    }

    /// Reports a literal that the schema of what it is compared with does not list.
    fn compare_with_list(&mut self, subject: Operand<'_>, literal: Operand<'_>) {
        let is_literal = matches!(literal.node.code, Code::String(_) | Code::Number(_) | Code::Literal(_));
        if let (true, Some(permitted), Some(value)) =
            (is_literal, subject.value.permitted_values(), literal.value.single_value())
            && !permitted.contains(value)
        {
            let subject = describe(subject.node, self.text);
            self.push_unlisted(UnlistedValue::new(subject, literal.node.position, value, permitted));
        }
    }

    fn membership(
        &mut self,
        symbol: &'static str,
        operands: &'p [CodeNode; 2],
        [wanted, container]: &[ValueType; 2],
        position: SourcePosition,
    ) -> ValueType {
        let [wanted_node, container_node] = operands;
        self.need(
            Operand::new(container_node, container),
            &[Array, Object, String],
            self.operation(symbol, position),
        );
        if !container.may_be(Array) && container.may_be_one_of(&[Object, String]) {
            self.need(Operand::new(wanted_node, wanted), &[String], self.operation(symbol, position));
        }
        let items: &[CodeNode] = match &container_node.code {
            Code::Array(items) => items,
            _ => &[],
        };
        let is_filled = !items.is_empty() || matches!(container_node.code, Code::Data(..));
        let element = container.element();
        if is_filled && container.kinds() == Some(&[Array]) && !wanted.has_common_kind(&element) {
            let operation = self.operation(symbol, position);
            let item = items.first().unwrap_or(container_node);
            self.push_problem(
                operation.different_types(Operand::new(wanted_node, wanted), Operand::new(item, &element)),
            );
        }
        for item in items {
            let value = match &item.code {
                Code::String(text) => ValueType::of(&text.as_str().into()),
                Code::Number(number) => ValueType::of(&number.to_json()),
                _ => continue,
            };
            if wanted.has_common_kind(&value) {
                self.compare_with_list(Operand::new(wanted_node, wanted), Operand::new(item, &value));
            }
        }
        ValueType::new(Boolean)
    }
}
