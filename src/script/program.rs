//! Compiled form of an expression or script: a tree in which every name is resolved and every construct is supported.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;

use super::code_branch::{BranchId, CodeBranch};
use super::data_set::{DataSet, MemberIndex};
use super::definition_name::DefinitionName;
use super::exact_number::ExactNumber;
use super::named_value::NamedValue;
use super::operators::OperatorFn;
use super::script_function::{
    ClosureFunction, EffectKind, Existence, Implementation, MutatingFunction, PrintForm,
};
use crate::call::Root;
use crate::name_pattern::NamePattern;
use crate::redaction::Redactor;
use crate::tokens::TokenFormat;

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
    /// An operator with its symbol.
    Binary(&'static str, OperatorFn, Box<[CodeNode; 2]>),
    /// `exists(x)`, or `present(x)`, which is false for null, too.
    Exists(Box<CodeNode>, Existence),
    /// `a?.b…` or `a?[b]…`: null if `a` is absent or null, else the rest of the chain with `a` in the slot.
    OptionalChain(Box<CodeNode>, usize, Box<CodeNode>),
    /// The first link of that rest: null if the member is absent.
    OptionalMember(Box<[CodeNode; 2]>),
    /// A named value of the bundle.
    Named(Arc<NamedValue>),
    /// A constant of the bundle, or a part of one.
    Data(Arc<DataSet>, Vec<String>),
    /// `x in data.list`, by hash.
    InData(Box<CodeNode>, Arc<MemberIndex>),
    /// `is_tool("@group")`
    IsTool(Vec<NamePattern>),
    /// A call of a function of the bundle.
    CallShared(Arc<SharedFunctions>, usize, Vec<CodeNode>),
    Property(Box<CodeNode>, String),
    Index(Box<[CodeNode; 2]>),
    /// The entry of a fact: equal numbers are one key.
    FactEntry(Box<[CodeNode; 2]>),
    /// A call of a function of the language, with its name.
    Function(&'static str, Implementation, Vec<CodeNode>),
    Matches(Box<CodeNode>, Regex),
    /// `detects(x, "api_key")`
    Detects(Box<CodeNode>, Arc<Redactor>),
    /// `mentioned(x, source, "email")`
    Mentioned(Box<[CodeNode; 2]>, TokenFormat),
    Closure(Box<ClosureCall>),
    /// `f.call(x)` for a variable that holds a closure.
    CallClosure(Arc<Closure>, Vec<CodeNode>),
    Mutation(MutatingFunction, AssignTarget, Vec<CodeNode>),
    Print(PrintForm, Box<CodeNode>),
    Effect(EffectKind, Vec<CodeNode>),
    /// A call of a function of the script.
    Call(usize, Vec<CodeNode>),
    Let(usize, Box<CodeNode>),
    Assign(AssignTarget, Option<OperatorFn>, Box<CodeNode>),
    If(Box<CodeNode>, Box<CodeNode>, Box<CodeNode>),
    Switch(Box<Switch>),
    /// `x in 1..5`
    InRange(Box<CodeNode>, Box<Range>),
    /// `x[1..5]`
    Slice(Box<CodeNode>, Box<Range>),
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

/// `list.map(|x| …)`
#[derive(Debug)]
pub(super) struct ClosureCall {
    pub(super) function: ClosureFunction,
    pub(super) list: CodeNode,
    pub(super) closure: Arc<Closure>,
    /// The first result of `reduce`.
    pub(super) initial: Option<CodeNode>,
}

/// A closure. It runs in the frame of the function that contains it, so it sees the variables there as they are when it runs.
#[derive(Debug)]
pub(super) struct Closure {
    /// The slots of its parameters.
    pub(super) parameters: Vec<usize>,
    pub(super) body: CodeNode,
}

/// `from..to`, or `from..=to`.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) from: CodeNode,
    pub(super) to: CodeNode,
    pub(super) is_inclusive: bool,
}

#[derive(Debug)]
pub(super) struct Switch {
    pub(super) value: CodeNode,
    pub(super) arms: Vec<SwitchArm>,
}

#[derive(Debug)]
pub(super) struct SwitchArm {
    pub(super) branch: BranchId,
    /// None for `_`.
    pub(super) cases: Vec<SwitchCase>,
    pub(super) guard: Option<CodeNode>,
    pub(super) body: CodeNode,
}

#[derive(Debug)]
pub(super) enum SwitchCase {
    /// A literal.
    Value(CodeNode),
    Range(Range),
}

#[derive(Debug)]
pub(super) struct ForLoop {
    pub(super) item: usize,
    pub(super) counter: Option<usize>,
    pub(super) iterable: Iterable,
    pub(super) body: CodeNode,
}

/// What a loop iterates over.
#[derive(Debug)]
pub(super) enum Iterable {
    Value(CodeNode),
    Range(Range),
}

/// The main program, or a function of the script. The parameters, or the script's `input`, are the first slots.
#[derive(Debug)]
pub(super) struct FunctionBody {
    /// The branch that it is. `None` for a main program.
    pub(super) branch: Option<BranchId>,
    pub(super) slot_count: usize,
    pub(super) code: CodeNode,
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) main: FunctionBody,
    pub(super) functions: Vec<FunctionBody>,
    /// Whether every part is evaluated even if another one is absent, to find out whether one is undecided. A script stops instead,
    /// because what it evaluates may have effects.
    pub(super) is_pure: bool,
}

impl SourcePosition {
    /// The position in bytes from the start of a text.
    pub(super) fn offset(self, text: &str) -> usize {
        let start: usize = text.split_inclusive('\n').take(self.line.saturating_sub(1)).map(str::len).sum();
        let line = text.get(start..).unwrap_or_default();
        let column = self.column.saturating_sub(1);
        start + line.char_indices().nth(column).map_or(line.len(), |(offset, _)| offset)
    }
}

impl CodeNode {
    /// The constants and the keys to the one that the code reads, directly or by a name. Returns `None` for any other code.
    pub(super) fn constant_keys(&self) -> Option<(&Arc<DataSet>, Vec<String>)> {
        match &self.code {
            Code::Data(data, keys) => Some((data, keys.clone())),
            Code::Named(value) => value.constant_keys(),
            Code::Property(container, key) => {
                let (data, mut keys) = container.constant_keys()?;
                keys.push(key.clone());
                Some((data, keys))
            }
            _ => None,
        }
    }

    /// Whether the code reads `session.facts`.
    pub(super) fn is_facts(&self) -> bool {
        match &self.code {
            Code::Property(session, key) => {
                key == "facts" && matches!(session.code, Code::Member(ReadOnlyVariable::Root(Root::Session)))
            }
            _ => false,
        }
    }

    /// The elements by hash, if the code always reads a long list of `data`.
    pub(super) fn constant_index(&self) -> Option<Arc<MemberIndex>> {
        let (data, keys) = self.constant_keys()?;
        data.member_index(&keys).cloned()
    }
}

impl Code {
    /// Visits the parts of the code, but not those of the parts.
    pub(super) fn for_each_part(&self, visit: &mut dyn FnMut(&CodeNode)) {
        let range = |range: &Range, visit: &mut dyn FnMut(&CodeNode)| {
            [&range.from, &range.to].into_iter().for_each(visit)
        };
        match self {
            Self::Null
            | Self::Boolean(_)
            | Self::Number(_)
            | Self::Literal(_)
            | Self::String(_)
            | Self::Member(_)
            | Self::Slot(_)
            | Self::Named(_)
            | Self::Data(..)
            | Self::IsTool(_)
            | Self::Continue => {}
            Self::Array(nodes)
            | Self::And(nodes)
            | Self::Or(nodes)
            | Self::Coalesce(nodes)
            | Self::Function(_, _, nodes)
            | Self::CallShared(_, _, nodes)
            | Self::Call(_, nodes)
            | Self::Effect(_, nodes)
            | Self::Block(nodes) => nodes.iter().for_each(visit),
            Self::CallClosure(closure, nodes) => nodes.iter().chain([&closure.body]).for_each(visit),
            Self::Mutation(_, target, nodes) => {
                target.steps.iter().filter_map(TargetStep::index).chain(nodes).for_each(visit);
            }
            Self::Assign(target, _, value) => {
                target.steps.iter().filter_map(TargetStep::index).chain([&**value]).for_each(visit);
            }
            Self::Object(members) => members.iter().map(|(_, node)| node).for_each(visit),
            Self::Not(node)
            | Self::Negate(node)
            | Self::Exists(node, _)
            | Self::InData(node, _)
            | Self::Property(node, _)
            | Self::Matches(node, _)
            | Self::Detects(node, _)
            | Self::Print(_, node)
            | Self::Let(_, node)
            | Self::Throw(node)
            | Self::Return(node)
            | Self::Break(node) => visit(node),
            Self::Binary(_, _, nodes)
            | Self::Index(nodes)
            | Self::FactEntry(nodes)
            | Self::OptionalMember(nodes)
            | Self::Mentioned(nodes, _) => nodes.iter().for_each(visit),
            Self::OptionalChain(value, _, rest) => [&**value, &**rest].into_iter().for_each(visit),
            Self::InRange(node, bounds) | Self::Slice(node, bounds) => {
                visit(node);
                range(bounds, visit);
            }
            Self::Closure(call) => {
                [&call.list].into_iter().chain(&call.initial).chain([&call.closure.body]).for_each(visit);
            }
            Self::If(condition, then, otherwise) => {
                [&**condition, &**then, &**otherwise].into_iter().for_each(visit);
            }
            Self::Switch(switch) => {
                visit(&switch.value);
                for arm in &switch.arms {
                    for case in &arm.cases {
                        match case {
                            SwitchCase::Value(node) => visit(node),
                            SwitchCase::Range(bounds) => range(bounds, visit),
                        }
                    }
                    arm.guard.iter().chain([&arm.body]).for_each(&mut *visit);
                }
            }
            Self::While(condition, body) => {
                condition.as_deref().into_iter().chain([&**body]).for_each(visit);
            }
            Self::For(parts) => {
                match &parts.iterable {
                    Iterable::Value(node) => visit(node),
                    Iterable::Range(bounds) => range(bounds, visit),
                }
                visit(&parts.body);
            }
            Self::Try(attempt, _, handler) => [&**attempt, &**handler].into_iter().for_each(visit),
        }
    }
}

impl TargetStep {
    fn index(&self) -> Option<&CodeNode> {
        match self {
            Self::Key(_) => None,
            Self::Index(node) => Some(node),
        }
    }
}

/// The functions of a bundle.
#[derive(Debug, Default)]
pub struct SharedFunctions {
    pub(super) program: Program,
    /// The name and the number of parameters of each function, by its index.
    pub(super) signatures: Vec<(String, usize)>,
    pub(super) definitions: BTreeSet<DefinitionName>,
    /// Whether one of them may print.
    pub(super) prints: bool,
    pub(super) branches: Vec<CodeBranch>,
}

impl SharedFunctions {
    /// The index and the number of parameters of a function.
    pub(super) fn find(&self, name: &str) -> Option<(usize, usize)> {
        let index = self.signatures.iter().position(|(known, _)| known == name)?;
        self.signatures.get(index).map(|(_, parameters)| (index, *parameters))
    }

    /// The names of the functions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().map(|(name, _)| name.as_str())
    }

    /// The constants that the functions read.
    pub fn definitions(&self) -> &BTreeSet<DefinitionName> {
        &self.definitions
    }
}

impl Default for Program {
    fn default() -> Self {
        let position = SourcePosition::default();
        let main =
            FunctionBody { branch: None, slot_count: 0, code: CodeNode { position, code: Code::Null } };
        Self { main, functions: Vec::new(), is_pure: true }
    }
}
