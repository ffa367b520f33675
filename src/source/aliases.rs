//! What anchors stand for, and how much aliases may copy: a few lines of aliases can stand for billions of values.

use std::collections::{HashMap, HashSet};

use super::document::{Node, NodeValue};

/// All copies that anchors and aliases make, in values.
const MAX_COPIED_NODES: usize = 100_000;
/// All copies that anchors and aliases make, in bytes of text.
const MAX_COPIED_BYTES: usize = 8 << 20;

/// How large a tree is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// Levels of lists and mappings: 0 of a scalar.
    pub(super) height: usize,
}

pub(super) struct Target {
    value: NodeValue,
    pub(super) size: Size,
}

/// The anchors of one file, by the parser's numbers.
#[derive(Default)]
pub(super) struct Anchors {
    open: HashSet<usize>,
    targets: HashMap<usize, Target>,
    copied: Size,
}

impl Anchors {
    /// The anchor's value begins.
    pub(super) fn open(&mut self, id: usize) {
        self.open.insert(id);
    }

    /// Whether the anchor's value has begun but not ended.
    pub(super) fn is_open(&self, id: usize) -> bool {
        self.open.contains(&id)
    }

    /// The anchor's value has ended. Answers false where keeping it is too much: anchors inside anchors are copies, too.
    pub(super) fn close(&mut self, id: usize, node: &Node) -> bool {
        self.open.remove(&id);
        let size = measure(node);
        let affordable = self.charge(size);
        if affordable {
            self.targets.insert(id, Target { value: node.value.clone(), size });
        }
        affordable
    }

    /// What an anchor stands for, once it has ended.
    pub(super) fn target(&self, id: usize) -> Option<&Target> {
        self.targets.get(&id)
    }

    /// A copy of what an anchor stands for, or nothing where that is too much.
    pub(super) fn copy(&mut self, id: usize) -> Option<NodeValue> {
        let size = self.targets.get(&id)?.size;
        if !self.charge(size) {
            return None;
        }
        self.targets.get(&id).map(|target| target.value.clone())
    }

    fn charge(&mut self, size: Size) -> bool {
        self.copied.nodes = self.copied.nodes.saturating_add(size.nodes);
        self.copied.bytes = self.copied.bytes.saturating_add(size.bytes);
        self.copied.nodes <= MAX_COPIED_NODES && self.copied.bytes <= MAX_COPIED_BYTES
    }
}

/// The recursion is bounded by the nesting that the reader admits.
fn measure(node: &Node) -> Size {
    let leaf = |bytes| Size { nodes: 1, bytes, height: 0 };
    match &node.value {
        NodeValue::Null | NodeValue::Bool(_) => leaf(0),
        NodeValue::Number(number) => leaf(number.text().len()),
        NodeValue::String(text) => leaf(text.text.len()),
        NodeValue::Sequence(items) => measure_all(items.iter().map(|item| (0, item))),
        NodeValue::Mapping(entries) => {
            measure_all(entries.iter().map(|entry| (entry.key.len(), &entry.value)))
        }
    }
}

fn measure_all<'a>(children: impl Iterator<Item = (usize, &'a Node)>) -> Size {
    children.fold(Size { nodes: 1, bytes: 0, height: 1 }, |sum, (key_bytes, child)| {
        let size = measure(child);
        Size {
            nodes: sum.nodes + size.nodes,
            bytes: sum.bytes + key_bytes + size.bytes,
            height: sum.height.max(size.height + 1),
        }
    })
}
