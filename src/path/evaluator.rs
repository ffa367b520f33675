//! General evaluator: document + query → nodes in the order of RFC 9535, with a work budget.

use smallvec::SmallVec;

use super::ast::{ParsedQuery, QueryBase, Segment, Selector, Selectors};
use super::evaluation_error::{ExpectedType, PathEvaluationError};
use super::singular_path::resolve_index;
use crate::call::{CallView, NodeRef};
use crate::json::{self, JsonType, Value};
use crate::work_limit;

mod filter;

use self::filter::TypeCheckMode;

/// The maximum number of nodes and comparisons of one evaluation.
pub(super) const BUDGET: usize = 100_000;
/// The maximum recursion depth: more than any value of [`json::MAX_DEPTH`] needs, less than overflows a small stack.
const MAX_CALLS: usize = 2 * json::MAX_DEPTH;

/// The value of `$`.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueryDocument<'a> {
    Value(&'a Value),
    Call(CallView<'a>),
}

/// The name or index of a node in its parent.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChildKey<'a> {
    Name(&'a str),
    Index(usize),
}

/// The reason of an early stop.
pub(super) enum WalkStop {
    /// The receiver needs no more nodes.
    Finished,
    Failed(PathEvaluationError),
}

pub(super) type WalkResult<T = ()> = Result<T, WalkStop>;

/// Receives each node with its path below the start.
pub(super) type NodeReceiver<'r, 'a> = &'r mut dyn FnMut(NodeRef<'a>, &[ChildKey<'a>]) -> WalkResult;

/// The behaviour of a child segment for a value from which it cannot select.
#[derive(Clone, Copy)]
pub(super) enum TypeMismatchMode {
    /// It selects nothing, as in RFC 9535.
    Ignore,
    /// It fails with a mismatch in this segment.
    Report { segment: usize },
    /// For conditions on elements: wildcards and filters select from arrays only, nothing is selected from null, and from the segment
    /// `required_from` on each element must have a value.
    ReportElements { segment: usize, required_from: usize },
}

impl TypeMismatchMode {
    /// The mode for the next segment.
    fn next(self) -> Self {
        match self {
            Self::Ignore => Self::Ignore,
            Self::Report { segment } => Self::Report { segment: segment + 1 },
            Self::ReportElements { segment, required_from } => {
                Self::ReportElements { segment: segment + 1, required_from }
            }
        }
    }

    /// Checks that a child segment can select from a value.
    fn check(self, selectors: &Selectors, at: NodeRef<'_>) -> Result<(), PathEvaluationError> {
        let found = at.json_type();
        let (segment, expected) = match self {
            Self::Ignore => return Ok(()),
            Self::Report { segment } => (segment, selectors.expected),
            Self::ReportElements { segment, required_from } => {
                let is_required = segment >= required_from;
                if found == JsonType::Null && !is_required {
                    return Ok(());
                }
                if is_required && selectors.expected.includes(found) && !selectors.has_child(at) {
                    return Err(PathEvaluationError::MissingMember { segment });
                }
                let is_list = selectors.list.iter().any(Selector::selects_elements);
                (segment, if is_list { ExpectedType::Array } else { selectors.expected })
            }
        };
        match expected.includes(found) {
            true => Ok(()),
            false => Err(PathEvaluationError::WrongType { segment, expected, found }),
        }
    }
}

impl Selectors {
    /// Whether a name or an index is in a value.
    fn has_child(&self, at: NodeRef<'_>) -> bool {
        self.list.iter().any(|selector| match (selector, at) {
            (Selector::Name(name), NodeRef::Json(Value::Object(members))) => members.get(name).is_some(),
            (Selector::Index(index), NodeRef::Json(Value::Array(items))) => {
                resolve_index(*index, items.len()).is_some_and(|index| index < items.len())
            }
            _ => false,
        })
    }
}

pub(super) struct Evaluator<'a> {
    document: QueryDocument<'a>,
    budget: usize,
    depth: usize,
    path: SmallVec<[ChildKey<'a>; 4]>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(document: QueryDocument<'a>) -> Self {
        Self { document, budget: BUDGET, depth: 0, path: SmallVec::new() }
    }

    /// Passes every node of a query to the receiver. The base must not be `@`.
    pub(super) fn run(
        &mut self,
        query: &ParsedQuery,
        misfits: TypeMismatchMode,
        receive: NodeReceiver<'_, 'a>,
    ) -> Result<(), PathEvaluationError> {
        let Some(start) = self.start_node(query.base, None) else { return Ok(()) };
        match self.walk(start, &query.segments, misfits, receive) {
            Ok(()) | Err(WalkStop::Finished) => Ok(()),
            Err(WalkStop::Failed(mismatch)) => Err(mismatch),
        }
    }

    /// The node at which a query starts.
    pub(super) fn start_node(&self, base: QueryBase, current: Option<NodeRef<'a>>) -> Option<NodeRef<'a>> {
        match (base, self.document) {
            (QueryBase::Current, _) => current,
            (QueryBase::Document, QueryDocument::Value(value)) => Some(NodeRef::Json(value)),
            (QueryBase::CallMember(root), QueryDocument::Call(view)) => view.member(root),
            (QueryBase::Document, QueryDocument::Call(_))
            | (QueryBase::CallMember(_), QueryDocument::Value(_)) => None,
        }
    }

    pub(super) fn spend(&mut self, cost: usize) -> WalkResult {
        self.budget =
            self.budget.checked_sub(cost).ok_or(WalkStop::Failed(PathEvaluationError::LimitExceeded))?;
        work_limit::spend(cost as u64).map_err(|_| WalkStop::Failed(PathEvaluationError::LimitExceeded))?;
        Ok(())
    }

    /// Enters one level of recursion; the caller leaves it by decrementing `depth`.
    fn enter_call(&mut self) -> WalkResult {
        self.depth += 1;
        if self.depth > MAX_CALLS {
            Err(WalkStop::Failed(PathEvaluationError::LimitExceeded))
        } else {
            Ok(())
        }
    }

    /// Runs a nested evaluation, which may stop early, and restores the position.
    pub(super) fn run_nested<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let (depth, path_length) = (self.depth, self.path.len());
        let result = run(self);
        self.depth = depth;
        self.path.truncate(path_length);
        result
    }

    pub(super) fn walk(
        &mut self,
        at: NodeRef<'a>,
        segments: &[Segment],
        misfits: TypeMismatchMode,
        receive: NodeReceiver<'_, 'a>,
    ) -> WalkResult {
        let Some((segment, rest)) = segments.split_first() else { return receive(at, &self.path) };
        let misfits_of_rest = misfits.next();
        self.enter_call()?;
        match segment {
            Segment::Child(selectors) => {
                misfits.check(selectors, at).map_err(WalkStop::Failed)?;
                let types = match misfits {
                    TypeMismatchMode::Ignore => TypeCheckMode::Ignore,
                    TypeMismatchMode::Report { .. } | TypeMismatchMode::ReportElements { .. } => {
                        TypeCheckMode::Check
                    }
                };
                self.select(at, selectors, rest, misfits_of_rest, types, receive)?;
            }
            Segment::Descendant(selectors) => self.descend(at, selectors, rest, misfits_of_rest, receive)?,
        }
        self.depth -= 1;
        Ok(())
    }

    /// Selects from a node, then from its descendants; all selectors apply to one node before the next.
    fn descend(
        &mut self,
        at: NodeRef<'a>,
        selectors: &Selectors,
        rest: &[Segment],
        misfits: TypeMismatchMode,
        receive: NodeReceiver<'_, 'a>,
    ) -> WalkResult {
        self.enter_call()?;
        let types = match misfits {
            TypeMismatchMode::Ignore => TypeCheckMode::Ignore,
            TypeMismatchMode::Report { .. } | TypeMismatchMode::ReportElements { .. } => {
                TypeCheckMode::CheckMembers
            }
        };
        self.select(at, selectors, rest, misfits, types, receive)?;
        for (key, child) in children(at) {
            self.spend(1)?;
            if matches!(child, Value::Array(_) | Value::Object(_)) {
                self.path.push(key);
                self.descend(NodeRef::Json(child), selectors, rest, misfits, receive)?;
                self.path.pop();
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn select(
        &mut self,
        at: NodeRef<'a>,
        selectors: &Selectors,
        rest: &[Segment],
        misfits: TypeMismatchMode,
        types: TypeCheckMode,
        receive: NodeReceiver<'_, 'a>,
    ) -> WalkResult {
        for selector in &selectors.list {
            match (selector, at) {
                (Selector::Name(name), NodeRef::Json(Value::Object(members))) => {
                    if let Some((name, child)) = members.get_key_value(name) {
                        self.visit_child(ChildKey::Name(name), child, rest, misfits, receive)?;
                    }
                }
                (Selector::Index(index), NodeRef::Json(Value::Array(items))) => {
                    if let Some(index) = resolve_index(*index, items.len())
                        && let Some(child) = items.get(index)
                    {
                        self.visit_child(ChildKey::Index(index), child, rest, misfits, receive)?;
                    }
                }
                (Selector::Slice(slice), NodeRef::Json(Value::Array(items))) => {
                    for index in slice.indices(items.len()) {
                        if let Some(child) = items.get(index) {
                            self.visit_child(ChildKey::Index(index), child, rest, misfits, receive)?;
                        }
                    }
                }
                (Selector::Wildcard, _) => {
                    for (key, child) in children(at) {
                        self.visit_child(key, child, rest, misfits, receive)?;
                    }
                }
                (Selector::Filter(filter), _) => {
                    for (key, child) in children(at) {
                        if self.evaluate_filter(filter, NodeRef::Json(child), types)? {
                            self.visit_child(key, child, rest, misfits, receive)?;
                        }
                    }
                }
                (Selector::Name(_) | Selector::Index(_) | Selector::Slice(_), _) => {}
            }
        }
        Ok(())
    }

    fn visit_child(
        &mut self,
        key: ChildKey<'a>,
        child: &'a Value,
        rest: &[Segment],
        misfits: TypeMismatchMode,
        receive: NodeReceiver<'_, 'a>,
    ) -> WalkResult {
        self.spend(1)?;
        self.path.push(key);
        self.walk(NodeRef::Json(child), rest, misfits, receive)?;
        self.path.pop();
        Ok(())
    }
}

fn children(of: NodeRef<'_>) -> impl Iterator<Item = (ChildKey<'_>, &Value)> {
    let (members, items) = match of {
        NodeRef::Json(Value::Object(members)) => (Some(members), None),
        NodeRef::Json(Value::Array(items)) => (None, Some(items)),
        _ => (None, None),
    };
    let named = members.into_iter().flatten().map(|(name, child)| (ChildKey::Name(name), child));
    let counted =
        items.into_iter().flatten().enumerate().map(|(index, child)| (ChildKey::Index(index), child));
    named.chain(counted)
}
