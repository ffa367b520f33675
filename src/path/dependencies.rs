//! Dependencies of a path: the parts of the call that it reads, to detect undecided parts of the session.

use super::ast::{Filter, Operand, ParsedQuery, PathStep, QueryBase, RegexPattern, Segment, Selector};
use crate::call::{ContextReads, Root};

/// The data that a path reads, in its own segments and in its filters.
#[derive(Clone, Debug, Default)]
pub(super) struct PathDependencies {
    pub(super) roots: Vec<Root>,
    pub(super) context: ContextReads,
    session: Vec<SessionRead>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SessionRead {
    Everything,
    Labels,
    Calls,
    Facts,
    Fact(String),
}

impl PathDependencies {
    pub(super) fn from_query(query: &ParsedQuery) -> Self {
        let mut reads = Self::default();
        reads.add_query(query);
        reads
    }

    /// Whether it reads one of these undecided parts (`labels`, `calls`, `facts`, `facts.NAME`).
    pub(super) fn reads_any_of(&self, unsettled: &[String]) -> bool {
        unsettled.iter().any(|part| {
            let fact = part.strip_prefix("facts.");
            self.session.iter().any(|read| match read {
                SessionRead::Everything => true,
                SessionRead::Labels => part == "labels",
                SessionRead::Calls => part == "calls",
                SessionRead::Facts => fact.is_some() || part == "facts",
                SessionRead::Fact(name) => fact == Some(name) || part == "facts",
            })
        })
    }

    fn add_query(&mut self, query: &ParsedQuery) {
        self.add_member(query.base, &query.segments);
        for segment in &query.segments {
            let (Segment::Child(selectors) | Segment::Descendant(selectors)) = segment;
            for selector in &selectors.list {
                if let Selector::Filter(filter) = selector {
                    self.add_filter(filter);
                }
            }
        }
    }

    fn add_filter(&mut self, filter: &Filter) {
        match filter {
            Filter::Any(filters) | Filter::All(filters) => {
                filters.iter().for_each(|filter| self.add_filter(filter))
            }
            Filter::Not(filter) => self.add_filter(filter),
            Filter::Exists(query) => self.add_query(query),
            Filter::Compare(left, _, right) => {
                self.add_operand(left);
                self.add_operand(right);
            }
            Filter::Matches(text, pattern) => {
                self.add_operand(text);
                if let RegexPattern::Dynamic(_, pattern) = pattern {
                    self.add_operand(pattern);
                }
            }
        }
    }

    fn add_operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Literal(_) => {}
            Operand::Singular(base, steps) => {
                let segments: Vec<Segment> = steps.iter().cloned().map(Segment::from).collect();
                self.add_member(*base, &segments);
            }
            Operand::Length(of) => self.add_operand(of),
            Operand::Count(query) | Operand::Value(query) => self.add_query(query),
        }
    }

    fn add_member(&mut self, base: QueryBase, segments: &[Segment]) {
        let QueryBase::CallMember(root) = base else { return };
        if !self.roots.contains(&root) {
            self.roots.push(root);
        }
        match root {
            Root::Context => match named_members(segments.first()) {
                Some(names) => names.into_iter().for_each(|name| self.context.add(name)),
                None => self.context.add_everything(),
            },
            Root::Session => self.add_session(segments),
            _ => {}
        }
    }

    fn add_session(&mut self, segments: &[Segment]) {
        let Some(names) = named_members(segments.first()) else {
            self.session.push(SessionRead::Everything);
            return;
        };
        for name in names {
            match name {
                "labels" => self.session.push(SessionRead::Labels),
                "calls" => self.session.push(SessionRead::Calls),
                "facts" => match named_members(segments.get(1)) {
                    Some(names) => {
                        self.session.extend(names.into_iter().map(|name| SessionRead::Fact(name.to_owned())));
                    }
                    None => self.session.push(SessionRead::Facts),
                },
                _ => {}
            }
        }
    }
}

/// The members that a segment names. Returns `None` if it may select others too.
fn named_members(segment: Option<&Segment>) -> Option<Vec<&str>> {
    let Segment::Child(selectors) = segment? else { return None };
    let mut names = Vec::new();
    for selector in &selectors.list {
        let Selector::Name(name) = selector else { return None };
        names.push(name.as_str());
    }
    Some(names)
}

impl From<PathStep> for Segment {
    fn from(step: PathStep) -> Self {
        let selector = match step {
            PathStep::Name(name) => Selector::Name(name),
            PathStep::Index(index) => Selector::Index(index),
        };
        Self::Child(super::ast::Selectors::new(vec![selector]))
    }
}
