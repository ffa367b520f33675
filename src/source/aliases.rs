//! YAML anchors and aliases, with a limit on their expansion: a few lines of aliases can expand to billions of values.

use std::collections::{HashMap, HashSet};

use super::document_tree::{YamlNode, YamlValue};

/// The maximum number of values copied by all anchors and aliases.
const MAX_COPIED_NODES: usize = 100_000;
/// The maximum number of bytes of text copied by all anchors and aliases.
const MAX_COPIED_BYTES: usize = 8 << 20;

/// The size of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeSize {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// Nesting depth of lists and mappings: 0 for a scalar.
    pub(super) height: usize,
}

pub(super) struct AnchorValue {
    value: YamlValue,
    pub(super) size: TreeSize,
}

/// The anchors of one file, by the parser's ids.
#[derive(Default)]
pub(super) struct Anchors {
    open: HashSet<usize>,
    targets: HashMap<usize, AnchorValue>,
    copied: TreeSize,
}

impl Anchors {
    /// Marks the start of an anchor's value.
    pub(super) fn open(&mut self, id: usize) {
        self.open.insert(id);
    }

    /// Whether the anchor's value has started but not ended.
    pub(super) fn is_open(&self, id: usize) -> bool {
        self.open.contains(&id)
    }

    /// Marks the end of an anchor's value. Returns `false` if storing it exceeds the limit: nested anchors are copies, too.
    pub(super) fn close(&mut self, id: usize, node: &YamlNode) -> bool {
        self.open.remove(&id);
        let size = measure(node);
        let affordable = self.charge(size);
        if affordable {
            self.targets.insert(id, AnchorValue { value: node.value.clone(), size });
        }
        affordable
    }

    /// The value of an anchor, once it has ended.
    pub(super) fn target(&self, id: usize) -> Option<&AnchorValue> {
        self.targets.get(&id)
    }

    /// Copies the value of an anchor. Returns `None` if that exceeds the limit.
    pub(super) fn copy(&mut self, id: usize) -> Option<YamlValue> {
        let size = self.targets.get(&id)?.size;
        if !self.charge(size) {
            return None;
        }
        self.targets.get(&id).map(|target| target.value.clone())
    }

    fn charge(&mut self, size: TreeSize) -> bool {
        self.copied.nodes = self.copied.nodes.saturating_add(size.nodes);
        self.copied.bytes = self.copied.bytes.saturating_add(size.bytes);
        self.copied.nodes <= MAX_COPIED_NODES && self.copied.bytes <= MAX_COPIED_BYTES
    }
}

/// Recursion is bounded by the reader's nesting limit.
fn measure(node: &YamlNode) -> TreeSize {
    let leaf = |bytes| TreeSize { nodes: 1, bytes, height: 0 };
    match &node.value {
        YamlValue::Null | YamlValue::Bool(_) => leaf(0),
        YamlValue::Number(number) => leaf(number.text().len()),
        YamlValue::String(text) => leaf(text.text.len()),
        YamlValue::Sequence(items) => measure_all(items.iter().map(|item| (0, item))),
        YamlValue::Mapping(entries) => {
            measure_all(entries.iter().map(|entry| (entry.key.len(), &entry.value)))
        }
    }
}

fn measure_all<'a>(children: impl Iterator<Item = (usize, &'a YamlNode)>) -> TreeSize {
    children.fold(TreeSize { nodes: 1, bytes: 0, height: 1 }, |sum, (key_bytes, child)| {
        let size = measure(child);
        TreeSize {
            nodes: sum.nodes + size.nodes,
            bytes: sum.bytes + key_bytes + size.bytes,
            height: sum.height.max(size.height + 1),
        }
    })
}
