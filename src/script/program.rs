//! Compiled form of an expression or script: a tree in which every name is resolved and every construct is supported.

use regex::Regex;

use super::exact_number::ExactNumber;
use super::function_table::{ClosureFunction, EffectKind, Implementation, MutatingFunction};
use super::operators::OperatorFn;
use crate::call::Root;

/// A line and a column, both from 1, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SourcePosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Code and its position in the text.
#[derive(Debug)]
pub(super) struct CodeNode {
    pub(super) position: SourcePosition,
    pub(super) code: Code,
}

/// A read-only variable of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOnlyVariable {
    Root(Root),
    /// The options that the host passes to its executor.
    Options,
}

#[derive(Debug)]
pub(super) enum Code {
    Null,
    Boolean(bool),
    Number(ExactNumber),
    /// A number whose text must be kept: `1.10`, or more digits than arithmetic supports.
    Literal(crate::json::Value),
    String(String),
    Member(ReadOnlyVariable),
    Slot(usize),
    Array(Vec<CodeNode>),
    Object(Vec<(String, CodeNode)>),
    And(Vec<CodeNode>),
    Or(Vec<CodeNode>),
    Coalesce(Vec<CodeNode>),
    Not(Box<CodeNode>),
    Negate(Box<CodeNode>),
    Binary(OperatorFn, Box<[CodeNode; 2]>),
    /// `"key" in input`, for a member of the call that is always an object.
    InMember(Box<[CodeNode; 2]>),
    Property(Box<CodeNode>, String),
    Index(Box<[CodeNode; 2]>),
    Function(Implementation, Vec<CodeNode>),
    Matches(Box<CodeNode>, Regex),
    Closure(ClosureFunction, Box<CodeNode>, Box<Closure>),
    Mutation(MutatingFunction, AssignTarget, Vec<CodeNode>),
    Effect(EffectKind, Vec<CodeNode>),
    /// A call of a function of the script.
    Call(usize, Vec<CodeNode>),
    Let(usize, Box<CodeNode>),
    Assign(AssignTarget, Option<OperatorFn>, Box<CodeNode>),
    If(Box<CodeNode>, Box<CodeNode>, Box<CodeNode>),
    /// Without a condition, it is a `loop`.
    While(Option<Box<CodeNode>>, Box<CodeNode>),
    For(Box<ForLoop>),
    Try(Box<CodeNode>, Option<usize>, Box<CodeNode>),
    Throw(Box<CodeNode>),
    Return(Box<CodeNode>),
    Break(Box<CodeNode>),
    Continue,
    Block(Vec<CodeNode>),
}

/// An assignment target: a variable, or a member or element of it.
#[derive(Debug)]
pub(super) struct AssignTarget {
    pub(super) slot: usize,
    pub(super) steps: Vec<TargetStep>,
}

#[derive(Debug)]
pub(super) enum TargetStep {
    Key(String),
    Index(CodeNode),
}

#[derive(Debug)]
pub(super) struct Closure {
    pub(super) parameter: usize,
    pub(super) body: CodeNode,
}

#[derive(Debug)]
pub(super) struct ForLoop {
    pub(super) item: usize,
    pub(super) counter: Option<usize>,
    pub(super) iterable: CodeNode,
    pub(super) body: CodeNode,
}

/// The main program, or a function of the script. The parameters, or the script's `input`, are the first slots.
#[derive(Debug)]
pub(super) struct FunctionBody {
    pub(super) slot_count: usize,
    pub(super) code: CodeNode,
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) main: FunctionBody,
    pub(super) functions: Vec<FunctionBody>,
}
