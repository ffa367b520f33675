//! Compiler for `switch` and for ranges.

use rhai::{Expr, FnCallExpr, Position, SwitchCasesCollection};

use super::{CompileResult, Compiler};
use crate::script::code_branch::{BranchId, CodeBranch, CodeBranchKind};
use crate::script::parser::byte_offset;
use crate::script::program::{Code, CodeNode, Range, Switch, SwitchArm, SwitchCase};
use crate::script::switch_source::{ArmSource, CaseSource, position_key};

impl Compiler<'_> {
    /// Compiles `switch value { 1 | 2 => …, 3..5 if x => …, _ => … }`.
    pub(super) fn compile_switch(
        &mut self,
        (value, cases): &(Expr, SwitchCasesCollection),
        position: Position,
    ) -> CompileResult<Code> {
        let value = self.compile_expression(value)?;
        let sources = self.switches.remove(&position_key(position)).unwrap_or_default();
        if !is_same_switch(&sources, cases) {
            return Err(self
                .error(position, "the cases of this `switch` cannot be read")
                .with_help("write each case as a string, a number, a boolean, `()` or a range".to_owned()));
        }
        let mut arms = Vec::with_capacity(sources.len());
        for (source, arm) in sources.iter().zip(&cases.expressions) {
            let compiled = source.cases.iter().map(|case| self.compile_case(case));
            let compiled = compiled.collect::<CompileResult<Vec<_>>>()?;
            let guard = match &arm.lhs {
                Expr::BoolConstant(true, _) => None,
                guard => Some(self.compile_expression(guard)?),
            };
            let branch = self.arm_branch(arm.rhs.start_position());
            arms.push(SwitchArm { branch, cases: compiled, guard, body: self.compile_expression(&arm.rhs)? });
        }
        // A text is compiled once for each place where it is used: a closure, for instance.
        self.switches.insert(position_key(position), sources);
        Ok(Code::Switch(Box::new(Switch { value, arms })))
    }

    /// Adds an arm to the branches. `position` is that of its body, before which its cases stand.
    fn arm_branch(&mut self, position: Position) -> BranchId {
        let body = byte_offset(self.text, position).unwrap_or(self.text.len());
        let before = self.text.get(..body).unwrap_or_default();
        let arrow = before.rfind("=>").unwrap_or(body);
        let cases = before.get(..arrow).unwrap_or_default();
        let start = cases.rfind(['{', '}', ',', '\n']).map_or(0, |end| end + 1);
        let cases = cases.get(start..).unwrap_or_default();
        let start = start + cases.len() - cases.trim_start().len();
        let branch = CodeBranch::new(CodeBranchKind::Arm, &self.function, start..start + cases.trim().len());
        let id = branch.id();
        self.branches.push(branch);
        id
    }

    fn compile_case(&self, case: &CaseSource) -> CompileResult<SwitchCase> {
        let start = Position::START;
        Ok(match case {
            CaseSource::Null => SwitchCase::Value(Self::new_node(start, Code::Null)),
            CaseSource::Boolean(value) => SwitchCase::Value(Self::new_node(start, Code::Boolean(*value))),
            CaseSource::String(text) => SwitchCase::Value(Self::new_node(start, Code::String(text.clone()))),
            CaseSource::Number(position) => SwitchCase::Value(self.compile_case_number(*position)?),
            CaseSource::Range(from, to, is_inclusive) => SwitchCase::Range(Range {
                from: self.compile_case_number(*from)?,
                to: self.compile_case_number(*to)?,
                is_inclusive: *is_inclusive,
            }),
            CaseSource::Other(position) => {
                return Err(self
                    .error(*position, "a case is a string, a number, a boolean, `()` or a range")
                    .with_help("compare other values with `if`".to_owned()));
            }
        })
    }

    fn compile_case_number(&self, position: Position) -> CompileResult<CodeNode> {
        let code = byte_offset(self.text, position).and_then(|offset| self.number_at(offset));
        let code = code.ok_or_else(|| self.error(position, "this number cannot be read exactly"))?;
        Ok(Self::new_node(position, code))
    }

    /// Compiles a range. Returns `None` for any other expression.
    pub(super) fn compile_range(&mut self, expression: &Expr) -> CompileResult<Option<Range>> {
        let Expr::FnCall(call, position) = expression else { return Ok(None) };
        let Some(is_inclusive) = is_range(call) else { return Ok(None) };
        let [from, to] = call.args.as_slice() else { return Ok(None) };
        if matches!(from, Expr::Unit(_)) || matches!(to, Expr::Unit(_)) {
            return Err(self
                .error(*position, "a range needs both ends")
                .with_help("write `0..5`".to_owned()));
        }
        let (from, to) = (self.compile_expression(from)?, self.compile_expression(to)?);
        Ok(Some(Range { from, to, is_inclusive }))
    }

    /// The error for a range where a value is needed.
    pub(super) fn range_error(&self, position: Position) -> super::ScriptCompileError {
        self.error(position, "a range can stand only after `in`, in `[…]` and in the cases of `switch`")
            .with_help("write `range(0, 5)` for an array of whole numbers".to_owned())
    }
}

/// Whether a call is `..` (`Some(false)`) or `..=` (`Some(true)`).
pub(super) fn is_range(call: &FnCallExpr) -> Option<bool> {
    match call.name.as_str() {
        ".." => Some(false),
        "..=" => Some(true),
        _ => None,
    }
}

/// Whether the source has the arms of the syntax tree, with as many cases each.
fn is_same_switch(sources: &[ArmSource], cases: &SwitchCasesCollection) -> bool {
    let mut counts = vec![0_usize; cases.expressions.len()];
    for (_, list) in cases.cases.iter() {
        for block in &list.blocks {
            if let Some(count) = counts.get_mut(*block) {
                *count += 1;
            }
        }
    }
    let has_default = |index| cases.def_case == Some(index);
    sources.len() == counts.len()
        && (0..).zip(sources).zip(&counts).all(|((index, source), count)| {
            source.cases.len() == *count && source.cases.is_empty() == has_default(index)
        })
}
