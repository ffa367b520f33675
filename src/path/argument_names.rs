//! Names of the arguments that policies read, and detection of lookalike names.
//!
//! Paths, scripts' reads and a call's arguments → the first argument name that differs from a name that policies read there only in
//! case, separators or width. Many servers accept such a name all the same, so a policy must not miss it.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::NameFilter;
use super::ast::{Filter, Operand, ParsedQuery, PathStep, QueryBase, RegexPattern, Segment, Selector};
use crate::call::Root;
use crate::json::{MAX_DEPTH, Value};
use crate::safe_text::{fold_name, is_same_folded};

/// The names that policies read, as a tree: those of the arguments, of their members, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArgumentNames {
    /// Sorted by name. A policy reads few, and a tree of one has a place for eleven.
    members: Vec<(Box<str>, Self)>,
    /// The names read from every element or member.
    any_member: Option<Box<Self>>,
    /// The names read from the value itself and from everything below it.
    descendants: Option<Box<Self>>,
}

/// A name in a call that a server could take for one that policies read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisreadName {
    /// The path of its object, as steps below the arguments.
    pub path: Vec<PathStep>,
    /// The name in the call.
    pub name: String,
    /// The name that policies read.
    pub policy_name: String,
}

/// The path from the arguments to a value, as a linked list.
#[derive(Clone, Copy)]
struct AncestorPath<'w> {
    parent: Option<&'w AncestorPath<'w>>,
    step: AncestorStep<'w>,
    depth: usize,
}

#[derive(Clone, Copy)]
enum AncestorStep<'w> {
    Start,
    Name(&'w str),
    Index(usize),
}

type ActiveNames<'n> = SmallVec<[&'n ArgumentNames; 8]>;

impl ArgumentNames {
    /// The names that a query reads from the arguments, also in its filters.
    pub(super) fn from_query(query: &ParsedQuery) -> Self {
        Self::read_from(query, |root| root == Root::Input)
    }

    /// The names that a query reads from elements.
    pub(super) fn members_of_elements(query: &ParsedQuery) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        Self::read_from(query, |root| matches!(root, Root::Element(_))).collect_names(&mut names);
        names
    }

    /// The names that a query reads from some members of the call.
    fn read_from(query: &ParsedQuery, wanted: impl Fn(Root) -> bool) -> Self {
        let (mut names, mut others) = (Self::default(), Self::default());
        let mut open = vec![(query.base, query.segments.clone())];
        while let Some((base, segments)) = open.pop() {
            let is_wanted = matches!(base, QueryBase::CallMember(root) if wanted(root));
            let root = if is_wanted { &mut names } else { &mut others };
            root.add_segments(&segments, &mut open);
        }
        names
    }

    /// Whether no name is read.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.any_member.is_none() && self.descendants.is_none()
    }

    /// Adds the member at this path of names.
    pub fn add_member(&mut self, names: &[String]) -> &mut Self {
        names.iter().fold(self, |at, name| at.member_mut(name))
    }

    #[expect(clippy::indexing_slicing, reason = "the search found this index")]
    fn member_mut(&mut self, name: &str) -> &mut Self {
        match self.members.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(at) => &mut self.members[at].1,
            Err(at) => &mut self.members.insert_mut(at, (name.into(), Self::default())).1,
        }
    }

    /// Adds every element and member.
    pub fn add_any_member(&mut self) -> &mut Self {
        self.any_member.get_or_insert_default()
    }

    /// Adds a name that is read at any depth below.
    pub fn add_descendant(&mut self, name: &str) {
        self.descendants.get_or_insert_default().member_mut(name);
    }

    /// Adds names that are read from the values that the tree leads to, and from everything below them.
    pub(super) fn add_below(&mut self, names: &BTreeSet<String>) {
        if self.is_empty() || self.descendants.is_some() {
            names.iter().for_each(|name| self.add_descendant(name));
        }
        let members = self.members.iter_mut().map(|(_, below)| below);
        for below in members.chain(self.any_member.as_deref_mut()) {
            below.add_below(names);
        }
    }

    fn collect_names(&self, found: &mut BTreeSet<String>) {
        found.extend(self.member_names().map(str::to_owned));
        let members = self.members.iter().map(|(_, below)| below);
        let parts = members.chain(self.any_member.as_deref()).chain(self.descendants.as_deref());
        parts.for_each(|part| part.collect_names(found));
    }

    /// Adds all names of another tree.
    pub fn merge(&mut self, other: &Self) {
        for (name, below) in &other.members {
            self.member_mut(name).merge(below);
        }
        for (own, other) in
            [(&mut self.any_member, &other.any_member), (&mut self.descendants, &other.descendants)]
        {
            if let Some(other) = other {
                own.get_or_insert_default().merge(other);
            }
        }
    }

    /// The names of the members that are read by name.
    pub(super) fn member_names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| &**name)
    }

    /// The names read from the member with this name.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let at = self.members.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.members.get(at).map(|(_, below)| below)
    }

    /// The names read from every element or member.
    pub(super) fn any_member(&self) -> Option<&Self> {
        self.any_member.as_deref()
    }

    /// The names read from the value itself and from everything below it.
    pub(super) fn descendants(&self) -> Option<&Self> {
        self.descendants.as_deref()
    }

    /// Releases the memory for more names.
    pub fn shrink_to_fit(&mut self) {
        self.members.shrink_to_fit();
    }

    /// A quick check for names that could be taken for one of these.
    pub fn filter(&self) -> NameFilter {
        let members = self.members.iter().map(|(name, below)| (&**name, below.filter()));
        NameFilter::new(members, self.any_member.as_deref().map(Self::filter), self.descendants.is_some())
    }

    /// The first name in the arguments that could be taken for one of `all`. Skips names that are read themselves and names for
    /// which `declares` returns true.
    pub fn find_misread<'n>(
        all: impl IntoIterator<Item = &'n Self>,
        arguments: &Value,
        declares: &dyn Fn(&[PathStep], &str) -> bool,
    ) -> Option<MisreadName> {
        let start = AncestorPath { parent: None, step: AncestorStep::Start, depth: 0 };
        let here: ActiveNames<'n> = all.into_iter().collect();
        find_misread_in(&here, &[], arguments, start, declares)
    }

    fn add_segments(&mut self, segments: &[Segment], open: &mut Vec<(QueryBase, Vec<Segment>)>) {
        let Some((segment, rest)) = segments.split_first() else { return };
        let (selectors, at) = match segment {
            Segment::Child(selectors) => (selectors, self),
            Segment::Descendant(selectors) => (selectors, &mut **self.descendants.get_or_insert_default()),
        };
        for selector in &selectors.list {
            let child = match selector {
                Selector::Name(name) => at.member_mut(name),
                _ => &mut **at.any_member.get_or_insert_default(),
            };
            if let Selector::Filter(filter) = selector {
                child.add_filter(filter, open);
            }
            child.add_segments(rest, open);
        }
    }

    fn add_filter(&mut self, filter: &Filter, open: &mut Vec<(QueryBase, Vec<Segment>)>) {
        match filter {
            Filter::Any(filters) | Filter::All(filters) => {
                filters.iter().for_each(|filter| self.add_filter(filter, open))
            }
            Filter::Not(filter) => self.add_filter(filter, open),
            Filter::Exists(query) => self.add_query(query.base, &query.segments, open),
            Filter::Compare(left, _, right) => {
                self.add_operand(left, open);
                self.add_operand(right, open);
            }
            Filter::Matches(text, pattern) => {
                self.add_operand(text, open);
                if let RegexPattern::Dynamic(_, pattern) = pattern {
                    self.add_operand(pattern, open);
                }
            }
        }
    }

    fn add_operand(&mut self, operand: &Operand, open: &mut Vec<(QueryBase, Vec<Segment>)>) {
        match operand {
            Operand::Literal(_) => {}
            Operand::Singular(base, steps) => {
                let segments: Vec<Segment> = steps.iter().cloned().map(Segment::from).collect();
                self.add_query(*base, &segments, open);
            }
            Operand::Length(of) => self.add_operand(of, open),
            Operand::Count(query) | Operand::Value(query) => {
                self.add_query(query.base, &query.segments, open)
            }
        }
    }

    fn add_query(
        &mut self,
        base: QueryBase,
        segments: &[Segment],
        open: &mut Vec<(QueryBase, Vec<Segment>)>,
    ) {
        match base {
            QueryBase::Current => self.add_segments(segments, open),
            _ => open.push((base, segments.to_vec())),
        }
    }
}

/// Searches a value. `here` holds the names read from this value, `outer` those read from everything below a value around it.
fn find_misread_in<'n>(
    here: &[&'n ArgumentNames],
    outer: &[&'n ArgumentNames],
    value: &Value,
    way: AncestorPath<'_>,
    declares: &dyn Fn(&[PathStep], &str) -> bool,
) -> Option<MisreadName> {
    let below_here = here.iter().filter_map(|names| names.descendants.as_deref());
    let everywhere: ActiveNames<'n> = outer.iter().copied().chain(below_here).collect();
    // Deeper values are rejected before this check.
    if (here.is_empty() && everywhere.is_empty()) || way.depth > MAX_DEPTH {
        return None;
    }
    let all = || here.iter().chain(&everywhere).copied();
    let any = || all().filter_map(|names| names.any_member.as_deref());
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let mut below: ActiveNames<'n> = all().filter_map(|names| names.member(name)).collect();
            if below.is_empty()
                && let Some(meant) = all().find_map(|names| names.lookalike_of(name))
                && !declares(&way.steps(), name)
            {
                return Some(MisreadName {
                    path: way.steps(),
                    name: name.to_string(),
                    policy_name: meant.to_owned(),
                });
            }
            if !has_members(member) {
                return None;
            }
            below.extend(any());
            find_misread_in(&below, &everywhere, member, way.to(AncestorStep::Name(name)), declares)
        }),
        Value::Array(items) => {
            let below: ActiveNames<'n> = any().collect();
            items.iter().enumerate().filter(|(_, item)| has_members(item)).find_map(|(index, item)| {
                find_misread_in(&below, &everywhere, item, way.to(AncestorStep::Index(index)), declares)
            })
        }
        _ => None,
    }
}

/// Whether names can be read from a value or from below it.
fn has_members(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

impl ArgumentNames {
    /// The read name for which another name could be taken.
    fn lookalike_of(&self, name: &str) -> Option<&str> {
        fold_name(name).next()?;
        self.member_names().find(|known| is_same_folded(known, name))
    }
}

impl<'w> AncestorPath<'w> {
    fn to(&'w self, step: AncestorStep<'w>) -> Self {
        Self { parent: Some(self), step, depth: self.depth + 1 }
    }

    fn steps(&self) -> Vec<PathStep> {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(way) = at {
            match way.step {
                AncestorStep::Start => {}
                AncestorStep::Name(name) => steps.push(PathStep::Name(name.to_owned())),
                AncestorStep::Index(index) => {
                    steps.push(PathStep::Index(i64::try_from(index).unwrap_or(i64::MAX)))
                }
            }
            at = way.parent;
        }
        steps.reverse();
        steps
    }
}

impl std::fmt::Display for MisreadName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |name: &str| crate::safe_text::escape_controls(&crate::safe_text::truncate(name));
        write!(f, "the argument `")?;
        for step in &self.path {
            match step {
                PathStep::Name(step) => write!(f, "{}.", name(step))?,
                PathStep::Index(index) => write!(f, "{index}.")?,
            }
        }
        write!(
            f,
            "{}` could be mistaken for `{}`, which policies read: rename it to `{}`",
            name(&self.name),
            self.policy_name,
            self.policy_name
        )
    }
}
