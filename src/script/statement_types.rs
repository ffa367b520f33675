//! Types of statements: blocks, loops, `switch`, `try`.

use super::program::{Code, CodeNode, Iterable, Switch, SwitchCase};
use super::type_checker::TypeChecker;
use super::type_problem::Operand;
use super::value_type::{TypeKind, ValueType};

impl<'p> TypeChecker<'p> {
    pub(super) fn block(&mut self, nodes: &'p [CodeNode]) -> ValueType {
        let mut value = ValueType::new(TypeKind::Null);
        for node in nodes {
            value = self.node(node);
        }
        value
    }

    /// Statements and effects, whose value is not followed.
    pub(super) fn visit(&mut self, node: &'p CodeNode) -> ValueType {
        match &node.code {
            Code::Effect(_, arguments) | Code::Mutation(_, _, arguments) => {
                self.nodes(arguments);
            }
            Code::Print(_, value)
            | Code::Assign(_, _, value)
            | Code::Throw(value)
            | Code::Return(value)
            | Code::Break(value) => {
                self.node(value);
            }
            Code::While(condition, body) => {
                if let Some(condition) = condition {
                    self.boolean(condition, "while");
                }
                self.node(body);
            }
            Code::For(parts) => {
                let item = match &parts.iterable {
                    Iterable::Value(list) => {
                        let value = self.node(list);
                        self.need(
                            Operand::new(list, &value),
                            &[TypeKind::Array, TypeKind::Object, TypeKind::String],
                            self.operation("for", list.position),
                        );
                        if value.may_be_one_of(&[TypeKind::Object, TypeKind::String]) {
                            ValueType::ANY
                        } else {
                            value.element()
                        }
                    }
                    Iterable::Range(range) => {
                        self.range(range);
                        ValueType::new(TypeKind::Number)
                    }
                };
                self.set_slot(parts.item, item);
                if let Some(counter) = parts.counter {
                    self.set_slot(counter, ValueType::new(TypeKind::Number));
                }
                self.node(&parts.body);
            }
            // What fails in `try` is handled.
            Code::Try(attempt, error, handler) => {
                self.muted += 1;
                self.node(attempt);
                self.muted -= 1;
                if let Some(error) = error {
                    self.set_slot(*error, ValueType::ANY);
                }
                self.node(handler);
            }
            _ => {}
        }
        ValueType::ANY
    }

    pub(super) fn switch(&mut self, switch: &'p Switch) -> ValueType {
        let value = self.node(&switch.value);
        let mut kinds = Vec::new();
        for case in switch.arms.iter().flat_map(|arm| &arm.cases) {
            match case {
                SwitchCase::Value(literal) => match self.node(literal).kinds() {
                    Some(of_case) => kinds.extend_from_slice(of_case),
                    None => kinds.clear(),
                },
                SwitchCase::Range(range) => {
                    self.range(range);
                    kinds.push(TypeKind::Number);
                }
            }
        }
        kinds.dedup();
        let operation = self.operation("switch", switch.value.position);
        self.need(Operand::new(&switch.value, &value), &kinds, operation);
        let mut results = vec![ValueType::new(TypeKind::Null)];
        for arm in &switch.arms {
            if arm.guard.as_ref().is_some_and(|guard| self.boolean(guard, "if") == Some(false)) {
                continue;
            }
            results.push(self.node(&arm.body));
        }
        if switch.arms.iter().any(|arm| arm.cases.is_empty() && arm.guard.is_none()) {
            results.swap_remove(0);
        }
        ValueType::one_of(results)
    }
}
