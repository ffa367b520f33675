//! Types of calls: functions of the language and of the bundle, closures.

use std::collections::HashSet;
use std::sync::Arc;

use super::function_types::function_type;
use super::program::{
    AssignTarget, Closure, ClosureCall, Code, CodeNode, FunctionBody, SharedFunctions, SourcePosition,
};
use super::script_function::ClosureFunction;
use super::type_checker::TypeChecker;
use super::type_problem::{Operand, TypeProblem};
use super::value_type::{TypeKind, ValueType};

/// How deep calls of functions are followed.
const MAX_CALLS: usize = 8;

impl<'p> TypeChecker<'p> {
    pub(super) fn body(&mut self, body: &'p FunctionBody, parameters: Vec<ValueType>) -> ValueType {
        let mut changed = HashSet::new();
        collect_changed(&body.code, &mut changed);
        let mut slots = parameters;
        slots.resize(body.slot_count, ValueType::ANY);
        for slot in &changed {
            if let Some(slot) = slots.get_mut(*slot) {
                *slot = ValueType::ANY;
            }
        }
        let outer =
            (std::mem::replace(&mut self.slots, slots), std::mem::replace(&mut self.changed, changed));
        let value = self.node(&body.code);
        (self.slots, self.changed) = outer;
        // It may return elsewhere.
        if has_return(&body.code) { ValueType::ANY } else { value }
    }

    pub(super) fn function(
        &mut self,
        name: &'static str,
        arguments: &'p [CodeNode],
        position: SourcePosition,
    ) -> ValueType {
        let types = self.nodes(arguments);
        let Some(function) = function_type(name) else { return ValueType::ANY };
        for ((argument, value), kinds) in arguments.iter().zip(&types).zip(function.parameters) {
            self.need(Operand::new(argument, value), kinds, self.operation(name, position));
        }
        if let ("max" | "min", [a, b], [left, right]) = (name, arguments, types.as_slice())
            && !left.has_common_kind(right)
        {
            let operation = self.operation(name, position);
            self.push_problem(operation.different_types(Operand::new(a, left), Operand::new(b, right)));
        }
        function.result(&types)
    }

    pub(super) fn closure(&mut self, closure: &'p Arc<Closure>, values: Vec<ValueType>) -> ValueType {
        for (slot, value) in closure.parameters.iter().zip(values) {
            self.set_slot(*slot, value);
        }
        let value = self.node(&closure.body);
        if has_return(&closure.body) { ValueType::ANY } else { value }
    }

    pub(super) fn closure_call(&mut self, call: &'p ClosureCall, position: SourcePosition) -> ValueType {
        let (how, body) = (call.function, &call.closure.body);
        let list = self.node(&call.list);
        let initial = call.initial.as_ref().map(|initial| self.node(initial));
        self.need(Operand::new(&call.list, &list), &[TypeKind::Array], self.operation(how.name(), position));
        let (element, number) = (list.element(), ValueType::new(TypeKind::Number));
        if how == ClosureFunction::Reduce {
            // The type of later results is not followed.
            let same = ValueType::ANY;
            let value = self.closure(&call.closure, vec![same, element, number]);
            return initial.map_or(ValueType::ANY, |initial| initial.or(&value));
        }
        let second = if how == ClosureFunction::Sort { element.clone() } else { number };
        let value = self.closure(&call.closure, vec![element.clone(), second]);
        let needed: &[TypeKind] = match how {
            ClosureFunction::Map => &[],
            ClosureFunction::Sort => &[TypeKind::Number],
            _ => &[TypeKind::Boolean],
        };
        self.need(Operand::new(body, &value), needed, self.operation(how.name(), body.position));
        match how {
            ClosureFunction::All | ClosureFunction::Some => ValueType::new(TypeKind::Boolean),
            ClosureFunction::Find => element,
            ClosureFunction::Map => ValueType::array(value),
            _ => ValueType::array(element),
        }
    }

    /// A call of a function of the bundle. Its problems are those of the call, whose arguments they come from.
    pub(super) fn shared_call(
        &mut self,
        functions: &'p SharedFunctions,
        index: usize,
        arguments: Vec<ValueType>,
        position: SourcePosition,
    ) -> ValueType {
        let Some(body) = functions.program.functions.get(index) else { return ValueType::ANY };
        let name = functions.signatures.get(index).map_or("", |(name, _)| name.as_str());
        let caller =
            (std::mem::replace(&mut self.program, &functions.program), std::mem::take(&mut self.text));
        let (known, unlisted) = (self.report.problems.len(), self.report.unlisted.len());
        let value = self.call(body, arguments);
        (self.program, self.text) = caller;
        let inner: Vec<TypeProblem> = self.report.problems.drain(known..).collect();
        self.report.unlisted.truncate(unlisted);
        if let Some(problem) = inner.into_iter().next() {
            self.push_problem(problem.in_function(name, position));
        }
        value
    }

    pub(super) fn call(&mut self, body: &'p FunctionBody, arguments: Vec<ValueType>) -> ValueType {
        if self.calls >= MAX_CALLS {
            return ValueType::ANY;
        }
        self.calls += 1;
        let value = self.body(body, arguments);
        self.calls -= 1;
        value
    }
}

/// Collects the variables that are changed after their declaration.
fn collect_changed(node: &CodeNode, changed: &mut HashSet<usize>) {
    if let Code::Assign(AssignTarget { slot, .. }, _, _) | Code::Mutation(_, AssignTarget { slot, .. }, _) =
        &node.code
    {
        changed.insert(*slot);
    }
    node.code.for_each_part(&mut |part| collect_changed(part, changed));
}

/// Whether code may return before its end, or leave a loop with a value.
fn has_return(node: &CodeNode) -> bool {
    let mut found = matches!(node.code, Code::Return(_));
    node.code.for_each_part(&mut |part| found = found || has_return(part));
    found
}
