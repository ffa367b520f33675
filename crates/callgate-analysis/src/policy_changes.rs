//! Changed policies: two bundles → pairs of versions, with what differs in their source and what is certain without a call.

use std::collections::{HashMap, HashSet};

use callgate::json::{Key, Map, Value};
use callgate::middleware::KINDS;
use callgate::policy::{Policy, Widening, find_widenings};
use callgate::source::YamlNode;

use crate::policy_pair::{PolicyPair, PolicySide};
use crate::report::{ChangeReason, ChangeSubject, PolicyState};
use crate::rules_version::RulesVersion;

/// What may change, by the comparison of reloads: conservative in both directions.
pub(crate) struct PossibleChanges {
    /// Why the new rules may allow more, by policy; `None` for settings of the bundle.
    looser: HashMap<Option<String>, Vec<ChangeReason>>,
    /// The policies that may be stricter in the new rules.
    stricter: HashSet<String>,
}

impl PossibleChanges {
    pub(crate) fn new(old: &RulesVersion, new: &RulesVersion) -> Self {
        let mut looser: HashMap<Option<String>, Vec<ChangeReason>> = HashMap::new();
        for widening in find_widenings(old.policies(), new.policies()) {
            looser.entry(widening.policy.clone()).or_default().push(into_reason(&widening));
        }
        let back = find_widenings(new.policies(), old.policies());
        Self { looser, stricter: back.into_iter().filter_map(|widening| widening.policy).collect() }
    }

    /// Whether the new rules may allow more.
    pub(crate) fn may_allow_more(&self) -> bool {
        !self.looser.is_empty()
    }

    /// Why a policy may allow more; empty if it is certain that it does not.
    pub(crate) fn reasons(&self, id: &str) -> &[ChangeReason] {
        self.looser.get(&Some(id.to_owned())).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn may_be_stricter(&self, id: &str) -> bool {
        self.stricter.contains(id)
    }
}

fn into_reason(widening: &Widening) -> ChangeReason {
    ChangeReason { change: widening.change.clone(), consequence: widening.consequence }
}

/// Returns the policies that differ, in the order of the new bundle, removed ones last; and the number of those that do not.
pub(crate) fn find_changed<'a>(
    old: &'a RulesVersion,
    new: &'a RulesVersion,
    possible: &PossibleChanges,
) -> (Vec<PolicyPair<'a>>, usize) {
    let by_id = |version: &'a RulesVersion| -> HashMap<&'a str, &'a Policy> {
        version.policies().policies().iter().map(|policy| (policy.id.as_str(), policy.as_ref())).collect()
    };
    let (old_policies, new_policies) = (by_id(old), by_id(new));
    let (old_nodes, new_nodes) = (old.policy_nodes(), new.policy_nodes());
    let ids = ordered_ids(&new_nodes)
        .into_iter()
        .chain(ordered_ids(&old_nodes).into_iter().filter(|id| !new_nodes.contains_key(id)));
    let mut unchanged = 0;
    let mut changed = Vec::new();
    for id in ids {
        let (before, after) = (old_policies.get(id).copied(), new_policies.get(id).copied());
        let (was, is) = (old_nodes.get(id).copied(), new_nodes.get(id).copied());
        let same_behaviour = match (before, after) {
            (Some(before), Some(after)) => before.behaviour_digest == after.behaviour_digest,
            (None, None) => true,
            _ => false,
        };
        let same_source = was.zip(is).is_some_and(|(was, is)| was.to_json() == is.to_json());
        // A policy with the same source has reasons if it moved in the evaluation order.
        if same_behaviour && same_source && possible.reasons(id).is_empty() {
            unchanged += 1;
        } else {
            let (old, new) = (PolicySide::new(before, was), PolicySide::new(after, is));
            changed.push(PolicyPair { id, old, new });
        }
    }
    (changed, unchanged)
}

fn ordered_ids<'a>(nodes: &HashMap<&'a str, &'a YamlNode>) -> Vec<&'a str> {
    let mut ids: Vec<(&str, &YamlNode)> = nodes.iter().map(|(id, node)| (*id, *node)).collect();
    ids.sort_by_key(|(_, node)| (node.span.source, node.span.start()));
    ids.into_iter().map(|(id, _)| id).collect()
}

/// Describes a changed policy.
pub(crate) fn describe(pair: &PolicyPair<'_>, old: &RulesVersion, new: &RulesVersion) -> ChangeSubject {
    // A policy that is off is not compiled.
    let kind = |side: &PolicySide<'_>| {
        let keys = side.node.and_then(YamlNode::entries).unwrap_or_default();
        let kinds = KINDS.iter().map(|kind| kind.name);
        kinds.into_iter().find(|kind| keys.iter().any(|entry| entry.key == *kind))
    };
    ChangeSubject::Policy {
        id: pair.id.to_owned(),
        kind: kind(&pair.new).or(kind(&pair.old)).unwrap_or("policy"),
        was: pair.old.state,
        is: pair.new.state,
        changed: changed_parts(pair),
        old: pair.old.node.and_then(|node| old.locate(node.span)),
        new: pair.new.node.and_then(|node| new.locate(node.span)),
    }
}

/// The keys and definitions that differ; empty for a policy that was added or removed.
fn changed_parts(pair: &PolicyPair<'_>) -> Vec<String> {
    if [pair.old.state, pair.new.state].contains(&PolicyState::Missing) {
        return Vec::new();
    }
    let json = |side: &PolicySide<'_>| side.node.map(YamlNode::to_json).unwrap_or_default();
    let (before, after) = (json(&pair.old), json(&pair.new));
    let mut parts = Vec::new();
    for key in differing_keys(&before, &after) {
        let inner = match (before.get(key), after.get(key)) {
            (Some(was @ Value::Object(_)), Some(is @ Value::Object(_))) => differing_keys(was, is),
            _ => Vec::new(),
        };
        match inner.is_empty() {
            true => parts.push(key.to_owned()),
            false => parts.extend(inner.into_iter().map(|member| format!("{key}.{member}"))),
        }
    }
    let definitions =
        |side: &PolicySide<'_>| side.policy.map(|policy| policy.definitions.clone()).unwrap_or_default();
    let (before, after) = (definitions(&pair.old), definitions(&pair.new));
    let differing = after.iter().filter(|definition| {
        !before.contains(definition) && before.iter().any(|(name, _)| *name == definition.0)
    });
    parts.extend(differing.map(|(name, _)| format!("{} {}", name.section(), name.name())));
    parts
}

fn differing_keys<'v>(before: &'v Value, after: &'v Value) -> Vec<&'v str> {
    let empty = Map::new();
    let members = |value: &'v Value| value.as_object();
    let (was, is) = (members(before), members(after));
    let keys = was.into_iter().chain(is).flat_map(Map::keys).map(Key::as_str);
    let mut differing: Vec<&str> = Vec::new();
    for key in keys {
        let value = |members: Option<&'v Map>| members.unwrap_or(&empty).get(key).cloned();
        if !differing.contains(&key) && value(was) != value(is) {
            differing.push(key);
        }
    }
    differing
}
