//! Interpreter for the operands of operators and functions, and for values that may be absent.
//!
//! An absent or undecided operand makes the whole so, and undecided wins: `??` and `exists` turn only what is absent into a value.

use super::assignment::read_element;
use super::control_flow::{ControlFlow, EvalResult, World, into_control_flow};
use super::data_set::MemberIndex;
use super::fuel::EvalError;
use super::function_library::tokens;
use super::interpreter::Interpreter;
use super::program::{CodeNode, ReadOnlyVariable, SourcePosition};
use super::script_function::{Existence, Implementation};
use super::value::{MemberMap, ScriptValue, ValueKind};
use crate::call::{Root, method_name};
use crate::json::JsonType;
use crate::name_pattern::NamePattern;
use crate::redaction::Redactor;
use crate::tokens::TokenFormat;

impl<'r, W: World<'r>> Interpreter<'r, W> {
    /// Evaluates operands in order. If one is absent, those after it are evaluated only to find out whether one is undecided.
    pub(super) fn evaluate_nodes(
        &mut self,
        nodes: impl IntoIterator<Item = &'r CodeNode>,
    ) -> Result<Vec<ScriptValue<'r>>, ControlFlow<'r>> {
        let nodes = nodes.into_iter();
        let mut values = Vec::with_capacity(nodes.size_hint().0);
        let mut absent = None;
        for node in nodes {
            match self.evaluate_node(node) {
                Ok(value) => values.push(value),
                Err(flow) => self.keep_absent(flow, &mut absent)?,
            }
        }
        absent.map_or(Ok(values), Err)
    }

    /// Keeps the first absence, unless the program must stop at it.
    pub(super) fn keep_absent(
        &self,
        flow: ControlFlow<'r>,
        absent: &mut Option<ControlFlow<'r>>,
    ) -> Result<(), ControlFlow<'r>> {
        match (flow, absent.take()) {
            (flow @ ControlFlow::Absent(..), known) if self.is_pure() => {
                *absent = known.or(Some(flow));
                Ok(())
            }
            (flow, None) => Err(flow),
            (flow, Some(absent)) => Err(after_absence(flow, absent)),
        }
    }

    /// Evaluates two operands.
    pub(super) fn evaluate_pair(
        &mut self,
        operands: &'r [CodeNode; 2],
    ) -> Result<[ScriptValue<'r>; 2], ControlFlow<'r>> {
        let [a, b] = operands;
        match self.evaluate_node(a) {
            Ok(a) => Ok([a, self.evaluate_node(b)?]),
            Err(absent @ ControlFlow::Absent(..)) if self.is_pure() => match self.evaluate_node(b) {
                Ok(_) | Err(ControlFlow::Absent(..)) => Err(absent),
                Err(flow) => Err(after_absence(flow, absent)),
            },
            Err(other) => Err(other),
        }
    }

    pub(super) fn evaluate_array(&mut self, items: &'r [CodeNode], spot: SourcePosition) -> EvalResult<'r> {
        let items = self.evaluate_nodes(items)?;
        ScriptValue::list(&self.fuel, items).map_err(into_control_flow(spot))
    }

    pub(super) fn evaluate_object(
        &mut self,
        members: &'r [(String, CodeNode)],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let values = self.evaluate_nodes(members.iter().map(|(_, node)| node))?;
        let keys = members.iter().map(|(key, _)| key.as_str().into());
        let object: MemberMap<'r> = keys.zip(values).collect();
        ScriptValue::object(&self.fuel, object).map_err(into_control_flow(spot))
    }

    /// `&&` and `||`, from left to right, until one operand decides.
    pub(super) fn short_circuit(&mut self, operands: &'r [CodeNode], wanted: bool) -> EvalResult<'r> {
        let mut absent = None;
        for operand in operands {
            match self.evaluate_boolean(operand) {
                Ok(value) if absent.is_none() && value != wanted => return Ok(ScriptValue::Boolean(!wanted)),
                Ok(_) => {}
                Err(flow) => self.keep_absent(flow, &mut absent)?,
            }
        }
        absent.map_or(Ok(ScriptValue::Boolean(wanted)), Err)
    }

    /// `a ?? b`: the first operand that exists and is not null, or else the last one.
    pub(super) fn coalesce(&mut self, operands: &'r [CodeNode]) -> EvalResult<'r> {
        let mut last = Ok(ScriptValue::Null);
        for operand in operands {
            last = self.evaluate_node(operand);
            match &last {
                Ok(value) if value.json_type() == JsonType::Null => {}
                Err(ControlFlow::Absent(..)) => {}
                _ => break,
            }
        }
        last
    }

    pub(super) fn evaluate_existence(
        &mut self,
        operand: &'r CodeNode,
        existence: Existence,
    ) -> EvalResult<'r> {
        let exists = match self.evaluate_node(operand) {
            Ok(value) => existence == Existence::OrNull || value.json_type() != JsonType::Null,
            Err(ControlFlow::Absent(..)) => false,
            Err(other) => return Err(other),
        };
        Ok(ScriptValue::Boolean(exists))
    }

    pub(super) fn evaluate_optional_chain(
        &mut self,
        value: &'r CodeNode,
        slot: usize,
        rest: &'r CodeNode,
    ) -> EvalResult<'r> {
        match self.evaluate_node(value) {
            Ok(value) if value.json_type() == JsonType::Null => Ok(ScriptValue::Null),
            Err(ControlFlow::Absent(..)) => Ok(ScriptValue::Null),
            Ok(value) => {
                self.set_slot(slot, value);
                self.evaluate_node(rest)
            }
            Err(other) => Err(other),
        }
    }

    pub(super) fn evaluate_optional_member(
        &mut self,
        operands: &'r [CodeNode; 2],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let [container, index] = self.evaluate_pair(operands)?;
        match read_element(&container, &index) {
            Err(EvalError::Absent(_)) => Ok(ScriptValue::Null),
            result => result.map_err(into_control_flow(spot)),
        }
    }

    pub(super) fn evaluate_in_data(
        &mut self,
        wanted: &'r CodeNode,
        index: &MemberIndex,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let wanted = self.evaluate_node(wanted)?;
        self.charge_scan([&wanted], spot)?;
        index.contains(&wanted).map(ScriptValue::Boolean).ok_or_else(|| {
            let (found, elements) = (wanted.json_type(), index.element_type());
            let message = format!("cannot compare values of different types, {found} and {elements}");
            ControlFlow::Error(message, spot)
        })
    }

    pub(super) fn evaluate_detects(
        &mut self,
        value: &'r CodeNode,
        redactor: &Redactor,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        tokens::detects(&self.fuel, redactor, &value).map_err(into_control_flow(spot))
    }

    pub(super) fn evaluate_mentioned(
        &mut self,
        operands: &'r [CodeNode; 2],
        format: TokenFormat,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let [subject, source] = self.evaluate_pair(operands)?;
        tokens::mentioned(&self.fuel, format, &subject, &source).map_err(into_control_flow(spot))
    }

    pub(super) fn evaluate_is_tool(
        &mut self,
        patterns: &'r [NamePattern],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let tool = self.host.read_member(ReadOnlyVariable::Root(Root::Tool));
        let tool = tool.map_err(into_control_flow(spot))?;
        let ValueKind::String(tool) = tool.kind() else {
            return Err(ControlFlow::Error("the call has no tool".to_owned(), spot));
        };
        let is_matched = method_name(tool).is_none() && patterns.iter().any(|pattern| pattern.matches(tool));
        Ok(ScriptValue::Boolean(is_matched))
    }

    pub(super) fn call_builtin(
        &mut self,
        run: Implementation,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let result = match (run, arguments) {
            (Implementation::One(run), [a]) => {
                let a = self.evaluate_node(a)?;
                self.charge_scan([&a], spot)?;
                run(&self.fuel, &a)
            }
            (Implementation::Two(run), [_, _]) => {
                let [a, b] = self.evaluate_all(arguments, spot)?;
                self.charge_scan([&a, &b], spot)?;
                run(&self.fuel, &a, &b)
            }
            (Implementation::OneOrTwo(run), [a]) => {
                let a = self.evaluate_node(a)?;
                run(&self.fuel, &a, None)
            }
            (Implementation::OneOrTwo(run), [_, _]) => {
                let [a, b] = self.evaluate_all(arguments, spot)?;
                run(&self.fuel, &a, Some(&b))
            }
            (Implementation::Three(run), [_, _, _]) => {
                let [a, b, c] = self.evaluate_all(arguments, spot)?;
                self.charge_scan([&a, &b, &c], spot)?;
                run(&self.fuel, &a, &b, &c)
            }
            _ => return Err(argument_count_error(spot)),
        };
        result.map_err(into_control_flow(spot))
    }

    /// Evaluates a fixed number of arguments.
    fn evaluate_all<const N: usize>(
        &mut self,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> Result<[ScriptValue<'r>; N], ControlFlow<'r>> {
        self.evaluate_nodes(arguments)?.try_into().map_err(|_| argument_count_error(spot))
    }
}

/// How a part ends of which one operand is absent and a later one ends in another way. A `try` must not catch what that one throws, nor may a
/// jump leave the part: both would hide the absence.
fn after_absence<'r>(flow: ControlFlow<'r>, absent: ControlFlow<'r>) -> ControlFlow<'r> {
    match flow {
        ControlFlow::Exception(_, spot) => {
            let message = "an error is thrown beside an operand that is absent".to_owned();
            ControlFlow::Error(message, spot)
        }
        ControlFlow::Break(_) | ControlFlow::Continue | ControlFlow::Return(_) => absent,
        ControlFlow::Error(..)
        | ControlFlow::Absent(..)
        | ControlFlow::LimitExceeded(..)
        | ControlFlow::End => flow,
    }
}

/// The compiler checks the number of arguments, so this is never seen.
fn argument_count_error<'r>(spot: SourcePosition) -> ControlFlow<'r> {
    ControlFlow::LimitExceeded("a function has the wrong number of arguments".to_owned(), spot)
}
