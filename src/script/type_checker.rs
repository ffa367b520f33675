//! Type checker: program + types of what it reads → type of its value, and the operations that fail for every value of their types.

use std::collections::HashSet;

use super::program::{Code, CodeNode, Program, Range, ReadOnlyVariable, SourcePosition};
use super::type_problem::{Operand, Operation, TypeProblem, UnknownMember, UnlistedValue, describe};
use super::value_type::{ObjectType, TypeKind, ValueType};
use crate::call::Root;
use crate::json::Value;
use crate::name_pattern::NamePattern;

/// How many nodes of programs are visited for one expression.
const MAX_NODES: usize = 20_000;

/// The types of what a program reads.
pub trait TypeEnvironment {
    /// The type of a member of the call.
    fn member(&self, root: Root) -> ValueType;

    /// The type of a named value.
    fn named(&self, name: &str) -> ValueType;

    /// The type of a constant, whose value this is.
    fn data(&self, keys: &[String], value: &Value) -> ValueType;

    /// Whether the tool matches one of the patterns. Returns `None` if the tool is not known.
    fn is_tool(&self, patterns: &[NamePattern]) -> Option<bool>;
}

/// What checking a program found.
#[derive(Debug, Default)]
pub struct TypeReport {
    /// The type of its value.
    pub value: ValueType,
    /// The operations that fail for every value.
    pub problems: Vec<TypeProblem>,
    /// The literals that a value is compared with and that its schema does not list.
    pub unlisted: Vec<UnlistedValue>,
    /// The members that are read of an object whose schema lists others.
    pub unknown_members: Vec<UnknownMember>,
}

/// Checks a program. Messages show parts of its text.
pub(super) fn check(program: &Program, text: &str, environment: &dyn TypeEnvironment) -> TypeReport {
    let mut checker = TypeChecker {
        program,
        text,
        environment,
        slots: Vec::new(),
        changed: HashSet::new(),
        report: TypeReport::default(),
        muted: 0,
        calls: 0,
        nodes: MAX_NODES,
    };
    let value = checker.body(&program.main, Vec::new());
    TypeReport { value, ..checker.report }
}

pub(super) struct TypeChecker<'p> {
    pub(super) program: &'p Program,
    /// The text of the program, empty where it is not known.
    pub(super) text: &'p str,
    environment: &'p dyn TypeEnvironment,
    /// The types of the variables of the running function.
    pub(super) slots: Vec<ValueType>,
    /// The variables of the running function that are changed after their declaration: they may hold anything.
    pub(super) changed: HashSet<usize>,
    pub(super) report: TypeReport,
    /// In how many parts around the current one problems are not reported.
    pub(super) muted: usize,
    pub(super) calls: usize,
    nodes: usize,
}

impl<'p> TypeChecker<'p> {
    pub(super) fn set_slot(&mut self, slot: usize, value: ValueType) {
        if let Some(entry) = self.slots.get_mut(slot).filter(|_| !self.changed.contains(&slot)) {
            *entry = value;
        }
    }

    pub(super) fn push_problem(&mut self, problem: TypeProblem) {
        if self.muted == 0 {
            self.report.problems.push(problem);
        }
    }

    pub(super) fn push_unlisted(&mut self, value: UnlistedValue) {
        if self.muted == 0 {
            self.report.unlisted.push(value);
        }
    }

    /// Reports a member that the type of an object does not list.
    fn check_member(&mut self, object: Operand<'_>, key: &str, position: SourcePosition) {
        let Some(known) = object.value.listed_members().filter(|known| !known.contains(&key)) else { return };
        if self.muted == 0 {
            self.report.unknown_members.push(UnknownMember {
                position,
                object: describe(object.node, self.text),
                member: key.to_owned(),
                known: known.into_iter().map(str::to_owned).collect(),
            });
        }
    }

    pub(super) fn nodes(&mut self, nodes: impl IntoIterator<Item = &'p CodeNode>) -> Vec<ValueType> {
        nodes.into_iter().map(|node| self.node(node)).collect()
    }

    pub(super) fn node(&mut self, node: &'p CodeNode) -> ValueType {
        let Some(nodes) = self.nodes.checked_sub(1) else { return ValueType::ANY };
        self.nodes = nodes;
        match &node.code {
            Code::Null => ValueType::new(TypeKind::Null),
            Code::Boolean(value) => ValueType::of(&Value::Bool(*value)),
            Code::Number(number) => ValueType::of(&number.to_json()),
            Code::Literal(number) => ValueType::of(number),
            Code::String(text) => ValueType::of(&text.as_str().into()),
            Code::Member(ReadOnlyVariable::Root(root)) => self.environment.member(*root),
            Code::Member(ReadOnlyVariable::Options) | Code::Effect(..) => self.visit(node),
            Code::Named(value) => self.environment.named(value.name()),
            Code::Data(data, keys) => match data.value(keys) {
                Some(value) => self.environment.data(keys, value),
                None => ValueType::ANY,
            },
            Code::Slot(slot) => self.slots.get(*slot).cloned().unwrap_or_default(),
            Code::Array(items) => {
                let items = self.nodes(items);
                ValueType::array(ValueType::one_of(items))
            }
            Code::Object(members) => {
                let members = members.iter().map(|(key, value)| (key.clone(), self.node(value))).collect();
                ValueType::object(ObjectType { members, is_listed: true, ..ObjectType::default() })
            }
            Code::And(operands) => self.logic(operands, "&&", false),
            Code::Or(operands) => self.logic(operands, "||", true),
            Code::Coalesce(operands) => {
                let types = self.nodes(operands);
                let last = types.len().saturating_sub(1);
                let types = types.iter().enumerate();
                ValueType::one_of(types.map(|(number, value)| match number == last {
                    true => value.clone(),
                    false => value.without_null(),
                }))
            }
            Code::Not(operand) => {
                let value = self.boolean(operand, "!");
                value.map_or(ValueType::new(TypeKind::Boolean), |value| ValueType::of(&Value::Bool(!value)))
            }
            Code::Negate(operand) => {
                let value = self.node(operand);
                self.need(
                    Operand::new(operand, &value),
                    &[TypeKind::Number],
                    self.operation("-", node.position),
                );
                ValueType::new(TypeKind::Number)
            }
            Code::Binary(symbol, _, operands) => {
                let types = operands.each_ref().map(|operand| self.node(operand));
                self.operator(symbol, operands, &types, node.position)
            }
            Code::InData(wanted, index) => {
                let value = self.node(wanted);
                self.need(
                    Operand::new(wanted, &value),
                    index.element_kinds(),
                    self.operation("in", node.position),
                );
                ValueType::new(TypeKind::Boolean)
            }
            Code::IsTool(patterns) => match self.environment.is_tool(patterns) {
                Some(value) => ValueType::of(&Value::Bool(value)),
                None => ValueType::new(TypeKind::Boolean),
            },
            Code::Exists(operand, _) => {
                // An operation on what is absent does not fail here.
                let known = self.report.problems.len();
                self.node(operand);
                self.report.problems.truncate(known);
                ValueType::new(TypeKind::Boolean)
            }
            Code::OptionalChain(value, slot, rest) => {
                let value = self.node(value).without_null();
                self.set_slot(*slot, value);
                self.node(rest).or_null()
            }
            Code::OptionalMember(operands) => {
                // `?.` says that the member may be missing.
                let known = self.report.unknown_members.len();
                let value = self.index(operands, node.position).or_null();
                self.report.unknown_members.truncate(known);
                value
            }
            Code::Index(operands) => self.index(operands, node.position),
            Code::FactEntry(operands) => {
                let [container, key] = operands.each_ref().map(|operand| self.node(operand));
                match (key.single_value().and_then(Value::as_str), container.may_be(TypeKind::Array)) {
                    (_, true) => ValueType::ANY,
                    (Some(key), false) => container.member(key),
                    (None, false) => container.any_member(),
                }
            }
            Code::Property(object, key) => {
                let value = self.node(object);
                self.need(
                    Operand::new(object, &value),
                    &[TypeKind::Object],
                    self.operation(key, node.position),
                );
                self.check_member(Operand::new(object, &value), key, node.position);
                value.member(key)
            }
            Code::Function(name, _, arguments) => self.function(name, arguments, node.position),
            Code::Matches(text, _) => {
                let value = self.node(text);
                self.need(
                    Operand::new(text, &value),
                    &[TypeKind::String],
                    self.operation("matches", node.position),
                );
                ValueType::new(TypeKind::Boolean)
            }
            Code::Detects(value, _) => {
                self.node(value);
                ValueType::new(TypeKind::Boolean)
            }
            Code::Mentioned(operands, _) => {
                self.nodes(&**operands);
                ValueType::new(TypeKind::Boolean)
            }
            Code::Closure(call) => self.closure_call(call, node.position),
            Code::CallClosure(closure, arguments) => {
                let arguments = self.nodes(arguments);
                self.closure(closure, arguments)
            }
            Code::CallShared(functions, index, arguments) => {
                let arguments = self.nodes(arguments);
                self.shared_call(functions, *index, arguments, node.position)
            }
            Code::Call(index, arguments) => {
                let arguments = self.nodes(arguments);
                match self.program.functions.get(*index) {
                    Some(body) => self.call(body, arguments),
                    None => ValueType::ANY,
                }
            }
            Code::Let(slot, value) => {
                let value = self.node(value);
                self.set_slot(*slot, value);
                ValueType::new(TypeKind::Null)
            }
            Code::If(condition, then, otherwise) => match self.boolean(condition, "if") {
                Some(true) => self.node(then),
                Some(false) => self.node(otherwise),
                None => self.node(then).or(&self.node(otherwise)),
            },
            Code::Switch(switch) => self.switch(switch),
            Code::InRange(wanted, range) => {
                let value = self.node(wanted);
                self.range(range);
                self.need(
                    Operand::new(wanted, &value),
                    &[TypeKind::Number],
                    self.operation("in", node.position),
                );
                ValueType::new(TypeKind::Boolean)
            }
            Code::Slice(value, range) => {
                let sliced = self.node(value);
                self.range(range);
                self.need(
                    Operand::new(value, &sliced),
                    &[TypeKind::String, TypeKind::Array],
                    self.operation("[", node.position),
                );
                ValueType::ANY
            }
            Code::Block(nodes) => self.block(nodes),
            Code::Mutation(..)
            | Code::Print(..)
            | Code::Assign(..)
            | Code::While(..)
            | Code::For(_)
            | Code::Try(..)
            | Code::Throw(_)
            | Code::Return(_)
            | Code::Break(_)
            | Code::Continue => self.visit(node),
        }
    }

    /// `&&` and `||`. Operands after one that always decides are not evaluated.
    fn logic(&mut self, operands: &'p [CodeNode], symbol: &'static str, decisive: bool) -> ValueType {
        let mut is_constant = true;
        for operand in operands {
            match self.boolean(operand, symbol) {
                Some(value) if value == decisive => return ValueType::of(&Value::Bool(decisive)),
                Some(_) => {}
                None => is_constant = false,
            }
        }
        match is_constant {
            true => ValueType::of(&Value::Bool(!decisive)),
            false => ValueType::new(TypeKind::Boolean),
        }
    }

    /// Checks an operand that must be a boolean. Returns its value if it is constant.
    pub(super) fn boolean(&mut self, operand: &'p CodeNode, symbol: &'static str) -> Option<bool> {
        let value = self.node(operand);
        self.need(
            Operand::new(operand, &value),
            &[TypeKind::Boolean],
            self.operation(symbol, operand.position),
        );
        value.constant_boolean()
    }

    /// An operation at a position of the text.
    pub(super) fn operation<'s>(&self, symbol: &'s str, position: SourcePosition) -> Operation<'s>
    where
        'p: 's,
    {
        Operation { symbol, position, text: self.text }
    }

    /// Reports an operand that has none of the kinds that an operation needs.
    pub(super) fn need(&mut self, operand: Operand<'_>, kinds: &[TypeKind], operation: Operation<'_>) {
        if !kinds.is_empty() && !operand.value.may_be_one_of(kinds) {
            self.push_problem(operation.wrong_kind(operand, kinds));
        }
    }

    fn index(&mut self, operands: &'p [CodeNode; 2], position: SourcePosition) -> ValueType {
        let [container_node, index_node] = operands;
        let [container, index] = operands.each_ref().map(|operand| self.node(operand));
        self.need(
            Operand::new(container_node, &container),
            &[TypeKind::Array, TypeKind::Object],
            self.operation("[", position),
        );
        let (is_list, is_object) = (container.may_be(TypeKind::Array), container.may_be(TypeKind::Object));
        let fits = is_list && index.may_be(TypeKind::Number) || is_object && index.may_be(TypeKind::String);
        if !fits && (is_list || is_object) {
            let operation = self.operation("[", position);
            self.push_problem(
                operation
                    .wrong_index(Operand::new(container_node, &container), Operand::new(index_node, &index)),
            );
        }
        match (is_list, is_object, index.single_value().and_then(Value::as_str)) {
            (true, false, _) => container.element(),
            (false, true, Some(key)) => {
                self.check_member(Operand::new(container_node, &container), key, index_node.position);
                container.member(key)
            }
            (false, true, None) => container.any_member(),
            _ => ValueType::ANY,
        }
    }

    pub(super) fn range(&mut self, range: &'p Range) {
        for bound in [&range.from, &range.to] {
            let value = self.node(bound);
            self.need(Operand::new(bound, &value), &[TypeKind::Number], self.operation("..", bound.position));
        }
    }
}
