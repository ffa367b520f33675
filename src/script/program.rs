//! Compiled form of an expression or script: a tree in which every name is resolved and every construct is supported.

use regex::Regex;

use super::exact_number::Number;
use super::function_table::{Change, Each, EffectKind, Run};
use super::operators::Operator;
use crate::call::Root;

/// A line and a column, both from 1, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SourcePosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Code and its position in the text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) spot: SourcePosition,
    pub(super) code: Code,
}

/// A read-only variable of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Root(Root),
    /// The options that the host passes to its executor.
    Options,
}

#[derive(Debug)]
pub(super) enum Code {
    Null,
    Boolean(bool),
    Number(Number),
    /// A number whose text must be kept: `1.10`, or more digits than arithmetic supports.
    Literal(crate::json::Value),
    Text(String),
    Member(Member),
    Slot(usize),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Coalesce(Vec<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Operator, Box<[Node; 2]>),
    /// `"key" in input`, for a member of the call that is always an object.
    InMember(Box<[Node; 2]>),
    Property(Box<Node>, String),
    Index(Box<[Node; 2]>),
    Function(Run, Vec<Node>),
    Matches(Box<Node>, Regex),
    Each(Each, Box<Node>, Box<Closure>),
    Change(Change, Place, Vec<Node>),
    Effect(EffectKind, Vec<Node>),
    /// A call of a function of the script.
    Call(usize, Vec<Node>),
    Let(usize, Box<Node>),
    Assign(Place, Option<Operator>, Box<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    /// Without a condition, it is a `loop`.
    While(Option<Box<Node>>, Box<Node>),
    For(Box<For>),
    Try(Box<Node>, Option<usize>, Box<Node>),
    Throw(Box<Node>),
    Return(Box<Node>),
    Break(Box<Node>),
    Continue,
    Block(Vec<Node>),
}

/// An assignment target: a variable, or a member or element of it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) enum Step {
    Key(String),
    Index(Node),
}

#[derive(Debug)]
pub(super) struct Closure {
    pub(super) parameter: usize,
    pub(super) body: Node,
}

#[derive(Debug)]
pub(super) struct For {
    pub(super) item: usize,
    pub(super) counter: Option<usize>,
    pub(super) over: Node,
    pub(super) body: Node,
}

/// The main program, or a function of the script. The parameters, or the script's `input`, are the first slots.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) slots: usize,
    pub(super) code: Node,
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) main: Body,
    pub(super) functions: Vec<Body>,
}
