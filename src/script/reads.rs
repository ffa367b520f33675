//! What an expression reads of a call, found once when it is compiled, so that an evaluation copies that and no more.

use std::collections::BTreeMap;

use rhai::{Array, Dynamic, Map};
use serde_json::Value;

use super::arithmetic::ALWAYS_OBJECT;
use super::convert::{Budget, whole};
use crate::call::{CallView, Node, Root};

/// A place that an expression names: `session.facts.order[input.order_id].status`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain {
    pub(super) root: Root,
    pub(super) steps: Vec<Step>,
}

/// One step of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Key(String),
    Index(i64),
    /// The key or index is what stands at another place.
    At(Chain),
}

/// How much of a value an expression looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// Its type and, of an object, its keys.
    Outline,
}

/// Everything that an expression reads.
#[derive(Debug, Default)]
pub(super) struct Reads {
    roots: BTreeMap<Root, Tree>,
    /// What it reads of the session, as far as that is written out: `facts.order`, or nothing for all of it.
    session: Vec<String>,
}

#[derive(Debug, Default)]
struct Tree {
    extent: Option<Extent>,
    steps: BTreeMap<Step, Tree>,
}

/// What was copied out of a call for one evaluation.
#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) roots: Vec<(Root, Dynamic)>,
    pub(super) budget: Budget,
}

impl Reads {
    /// Notes that the expression looks at a place.
    pub(super) fn add(&mut self, chain: Chain, extent: Extent) {
        if chain.root == Root::Session {
            self.session.push(written_out(&chain.steps));
        }
        self.roots.entry(chain.root).or_default().note(chain.steps.into_iter(), extent);
    }

    pub(super) fn roots(&self) -> impl Iterator<Item = Root> + '_ {
        self.roots.keys().copied()
    }

    /// Copies what is read. Errors: an input that is no object, a part of the session that could not be decided, what
    /// cannot be copied.
    pub(super) fn copy(&self, view: &CallView<'_>) -> Result<Copied, String> {
        let mut copied = Copied::default();
        for (&root, tree) in &self.roots {
            if root == Root::Input && !view.input.is_object() {
                return Err("the input is no JSON object".to_owned());
            }
            if root == Root::Session {
                self.refuse_unsettled(view)?;
            }
            let mut value = match view.root(root) {
                Some(Node::Json(value)) => tree.copy(value, view, &mut copied.budget)?,
                Some(Node::Text(text)) => copied.budget.text(text)?.into(),
                None if root == Root::Context => Dynamic::from_map(Map::new()),
                None => continue,
            };
            if matches!(root, Root::Input | Root::Context | Root::Session) {
                value.set_tag(ALWAYS_OBJECT);
            }
            copied.roots.push((root, value));
        }
        Ok(copied)
    }

    fn refuse_unsettled(&self, view: &CallView<'_>) -> Result<(), String> {
        for unsettled in view.session.unsettled() {
            if self.session.iter().any(|read| overlap(read, unsettled)) {
                return Err(format!("`{unsettled}` of the session could not be decided earlier"));
            }
        }
        Ok(())
    }
}

/// The leading keys of a place, as `unsettled` names them.
fn written_out(steps: &[Step]) -> String {
    let keys = steps.iter().map_while(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Index(_) | Step::At(_) => None,
    });
    keys.collect::<Vec<_>>().join(".")
}

/// Whether one of two places is the other or lies inside of it.
fn overlap(a: &str, b: &str) -> bool {
    let inside = |inner: &str, outer: &str| {
        outer.is_empty()
            || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    inside(a, b) || inside(b, a)
}

/// A step with its key or index known.
#[derive(PartialEq, Eq)]
enum Place<'a> {
    Key(&'a str),
    Index(i64),
}

impl Step {
    fn resolve<'a>(&'a self, view: &CallView<'a>) -> Option<Place<'a>> {
        match self {
            Self::Key(key) => Some(Place::Key(key)),
            Self::Index(index) => Some(Place::Index(*index)),
            Self::At(chain) => match chain.find(view)? {
                Node::Text(text) => Some(Place::Key(text)),
                Node::Json(Value::String(text)) => Some(Place::Key(text)),
                Node::Json(value) => value.as_i64().map(Place::Index),
            },
        }
    }
}

impl Chain {
    fn find<'a>(&'a self, view: &CallView<'a>) -> Option<Node<'a>> {
        let mut node = view.root(self.root)?;
        for step in &self.steps {
            let value = node.as_json()?;
            node = Node::Json(match step.resolve(view)? {
                Place::Key(key) => value.get(key)?,
                Place::Index(index) => {
                    value.as_array().and_then(|items| items.get(offset(index, items.len())?))?
                }
            });
        }
        Some(node)
    }
}

/// Where an index points to; a negative one counts from the end.
fn offset(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
    .filter(|index| *index < len)
}

impl Tree {
    fn note(&mut self, steps: impl Iterator<Item = Step>, extent: Extent) {
        let tree = steps.fold(self, |tree, step| tree.steps.entry(step).or_default());
        if tree.extent != Some(Extent::Whole) {
            tree.extent = Some(extent);
        }
    }

    fn copy(&self, value: &Value, view: &CallView<'_>, budget: &mut Budget) -> Result<Dynamic, String> {
        if self.extent == Some(Extent::Whole) {
            return whole(value, budget);
        }
        let places: Vec<_> =
            self.steps.iter().filter_map(|(step, tree)| Some((step.resolve(view)?, tree))).collect();
        match value {
            Value::Object(members) => {
                budget.node()?;
                let mut map = Map::new();
                if self.extent.is_some() {
                    for key in members.keys() {
                        budget.node()?;
                        map.insert(budget.text(key)?.into(), Dynamic::UNIT);
                    }
                }
                for (place, tree) in &places {
                    if let Place::Key(key) = place
                        && let Some(member) = members.get(*key)
                    {
                        let once = places.iter().filter(|(other, _)| other == place).count() == 1;
                        let member =
                            if once { tree.copy(member, view, budget) } else { whole(member, budget) };
                        map.insert((*key).into(), member?);
                    }
                }
                Ok(Dynamic::from_map(map))
            }
            Value::Array(items) if self.extent.is_none() => {
                budget.node()?;
                let mut list = Array::new();
                for (place, tree) in &places {
                    let Place::Index(index) = place else { continue };
                    let Some(at) = offset(*index, items.len()) else { continue };
                    // What lies before it is not read (each read is a step of its own), so it need not be copied; an
                    // index from the end needs the full length.
                    let length = if *index < 0 { items.len() } else { at + 1 };
                    list.resize(length.max(list.len()), Dynamic::UNIT);
                    if let (Some(item), Some(slot)) = (items.get(at), list.get_mut(at)) {
                        let same = |other: &Place<'_>| matches!(other, Place::Index(other) if offset(*other, items.len()) == Some(at));
                        let once = places.iter().filter(|(other, _)| same(other)).count() == 1;
                        *slot = if once { tree.copy(item, view, budget)? } else { whole(item, budget)? };
                    }
                }
                Ok(Dynamic::from_array(list))
            }
            // Rhai would read a bit of the number.
            Value::Number(number) if self.steps.keys().any(|step| !matches!(step, Step::Key(_))) => {
                Err(format!("an index reads from arrays, this is the number {number}"))
            }
            _ => whole(value, budget),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check;
    use super::super::engine::ENGINE;
    use super::*;
    use crate::call::{SessionState, ToolCall};
    use serde_json::json;

    fn copied(text: &str, input: Value) -> Copied {
        let ast = ENGINE.compile_expression(text).unwrap();
        let (call, session) = (ToolCall::new("c", "t", input), SessionState::default());
        check(text, &ast).unwrap().reads.copy(&CallView::new(&call, &session)).unwrap()
    }

    #[test]
    fn copies_only_what_is_read() {
        let rows: Vec<_> = (0..10_000).map(|n| json!({"name": format!("n{n}"), "price": n})).collect();
        let input = json!({"rows": rows, "body": "x".repeat(10 << 20), "amount": 3, "index": 9_000, "a": {"b": {"c": 1, "d": 2}}});
        for (text, nodes) in [
            ("input.amount > 1", 2),
            ("\"cc\" in input", 6),
            ("input.rows[0].price == 0", 4),
            ("input.rows[input.index].price == 0", 5),
            ("input.rows[9999].price == input.rows[9999].price", 4),
            ("input.a.b.c == 1 && input.a.b.d == 2", 5),
            ("input.a.b.c == 1 && input.a == #{}", 5),
            ("input.missing.x == 1", 1),
            ("tool == \"x\"", 0),
            ("[1].all(|x| input.amount > x)", 2),
        ] {
            let copied = copied(text, input.clone());
            assert!(copied.budget.nodes <= nodes, "{text} copies {}, not {nodes}", copied.budget.nodes);
            assert!(copied.budget.text < 100, "{text} copies {} bytes", copied.budget.text);
        }
        assert!(copied("input == #{}", json!({"a": [1, 2]})).budget.nodes == 4);
    }
}
