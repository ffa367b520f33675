//! Policies of one tool that require something of the value at one path, by that: value → those that may match.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::FoundPolicies;
use crate::address::{DirectoryIndex, HostIndex};
use crate::call::{CallView, NodeRef};
use crate::json::{JsonType, Number, Value};
use crate::matcher::{Requirement, ScalarKey};
use crate::path::Path;
use crate::string_search::OverlappingSearch;
use crate::work_limit;

/// A map with a fast hash function, for lookups on every call. A collision costs an evaluation and never changes a result.
type FastHashMap<K, V> = HashMap<K, V, RandomState>;

/// All policies with requirements of one kind for the value at one path.
#[derive(Debug)]
pub(super) struct Lookup {
    path: Path,
    table: Table,
    pub(super) policies: Vec<u32>,
}

/// What an index of one kind of requirements has.
#[derive(Debug)]
enum Table {
    /// By the hash of a scalar of this type.
    Values(JsonType, FastHashMap<u64, Vec<u32>>),
    Hosts(HostIndex),
    Directories(DirectoryIndex),
    Starts(Affixes),
    Ends(Affixes),
    Parts(PartSearch),
    /// By the bound, from the smallest one: those up to the value are found.
    AtLeast(Vec<(Number, u32)>),
    /// By the bound, from the greatest one: those down to the value are found.
    AtMost(Vec<(Number, u32)>),
}

/// The most bytes of a start or an end that are hashed, so that a call hashes few bytes however long they are.
const MAX_AFFIX_BYTES: usize = 32;

/// Starts or ends of texts by the hash of their bytes, of the long ones by the first or last bytes.
#[derive(Debug, Default)]
struct Affixes {
    /// Each length that is hashed, once.
    lengths: Vec<usize>,
    by_hash: FastHashMap<u64, Vec<u32>>,
}

/// Parts of texts.
#[derive(Debug)]
struct PartSearch {
    search: OverlappingSearch,
    /// The policies of each part.
    policies: Vec<Vec<u32>>,
}

impl Lookup {
    /// An index of policies with their requirements, which are of one kind. Returns `None` if there can't be one.
    pub(super) fn new(path: Path, members: &[(u32, Requirement<'_>)], hasher: &RandomState) -> Option<Self> {
        let table = Table::new(members, hasher)?;
        Some(Self { path, table, policies: members.iter().map(|(index, _)| *index).collect() })
    }

    /// Adds the policies that may match a call by its value; all others certainly do not.
    pub(super) fn find(&self, view: &CallView<'_>, hasher: &RandomState, found: &mut FoundPolicies) {
        let before = found.len();
        let is_known = match self.path.nodes(view) {
            Ok(nodes) => match nodes.first() {
                // No value: none of the policies matches.
                None => true,
                Some(node) => self.table.find(*node, hasher, found).is_some(),
            },
            Err(_) => false,
        };
        if !is_known {
            // Each is evaluated, and finds its test undecided.
            found.truncate(before);
            found.extend_from_slice(&self.policies);
        }
    }
}

impl Table {
    fn new(members: &[(u32, Requirement<'_>)], hasher: &RandomState) -> Option<Self> {
        let mut values: FastHashMap<u64, Vec<u32>> = FastHashMap::default();
        let (mut hosts, mut directories) = (HostIndex::default(), DirectoryIndex::default());
        let (mut affixes, mut parts, mut bounds) = (Affixes::default(), HashMap::new(), Vec::new());
        for (index, requirement) in members {
            match requirement {
                Requirement::OneOf(keys) => {
                    keys.iter().for_each(|key| values.entry(key.hash(hasher)).or_default().push(*index));
                }
                Requirement::Host(patterns) => patterns.iter().for_each(|pattern| hosts.add(pattern, *index)),
                Requirement::Inside(inside) => {
                    inside.iter().for_each(|directory| directories.add(directory, *index));
                }
                Requirement::Start(texts) => {
                    texts.iter().for_each(|text| affixes.add(start, text, *index, hasher));
                }
                Requirement::End(texts) => {
                    texts.iter().for_each(|text| affixes.add(end, text, *index, hasher));
                }
                Requirement::Part(texts) => {
                    texts.iter().for_each(|text| parts.entry(*text).or_insert_with(Vec::new).push(*index));
                }
                Requirement::AtLeast(bound) | Requirement::AtMost(bound) => {
                    bounds.push(((*bound).clone(), *index));
                }
            }
        }
        Some(match &members.first()?.1 {
            Requirement::OneOf(keys) => Self::Values(keys.first()?.json_type(), values),
            Requirement::Host(_) => Self::Hosts(hosts),
            Requirement::Inside(_) => Self::Directories(directories),
            Requirement::Start(_) => Self::Starts(affixes),
            Requirement::End(_) => Self::Ends(affixes),
            Requirement::Part(_) => Self::Parts(PartSearch::new(parts)?),
            Requirement::AtLeast(_) => {
                bounds.sort();
                Self::AtLeast(bounds)
            }
            Requirement::AtMost(_) => {
                bounds.sort_by(|a, b| b.cmp(a));
                Self::AtMost(bounds)
            }
        })
    }

    /// Returns `None` if every policy may match: for values of other types, for which their tests are undecided.
    fn find(&self, node: NodeRef<'_>, hasher: &RandomState, found: &mut FoundPolicies) -> Option<()> {
        match self {
            Self::Values(json_type, by_hash) => {
                let key = ScalarKey::from_node(node).filter(|_| node.json_type() == *json_type)?;
                found.extend(by_hash.get(&key.hash(hasher)).into_iter().flatten().copied());
            }
            Self::Hosts(hosts) => found.extend(hosts.find(searched_text(node)?).ok()?),
            Self::Directories(directories) => found.extend(directories.find(searched_text(node)?)?),
            Self::Starts(affixes) => {
                let text = node.as_str()?.as_bytes();
                affixes.find(|length| start(text, length), hasher, found);
            }
            Self::Ends(affixes) => {
                let text = node.as_str()?.as_bytes();
                affixes.find(|length| end(text, length), hasher, found);
            }
            Self::Parts(parts) => parts.find(searched_text(node)?, found)?,
            Self::AtLeast(bounds) => {
                let number = as_number(node)?;
                let end = bounds.partition_point(|(bound, _)| bound <= number);
                found.extend(bounds.iter().take(end).map(|(_, index)| *index));
            }
            Self::AtMost(bounds) => {
                let number = as_number(node)?;
                let end = bounds.partition_point(|(bound, _)| bound >= number);
                found.extend(bounds.iter().take(end).map(|(_, index)| *index));
            }
        }
        Some(())
    }
}

/// A text that is read to its end. Returns `None` for other values, and if too few units of work are left.
fn searched_text(node: NodeRef<'_>) -> Option<&str> {
    let text = node.as_str()?;
    work_limit::spend_for(text.len(), 8).ok()?;
    Some(text)
}

fn start(text: &[u8], length: usize) -> Option<&[u8]> {
    text.get(..length)
}

fn end(text: &[u8], length: usize) -> Option<&[u8]> {
    text.get(text.len().checked_sub(length)?..)
}

fn as_number(node: NodeRef<'_>) -> Option<&Number> {
    match node.as_json()? {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

impl Affixes {
    fn add(
        &mut self,
        affix: fn(&[u8], usize) -> Option<&[u8]>,
        text: &str,
        index: u32,
        hasher: &RandomState,
    ) {
        let length = text.len().min(MAX_AFFIX_BYTES);
        if !self.lengths.contains(&length) {
            self.lengths.push(length);
        }
        // No longer than the text, so that there is one.
        let affix = affix(text.as_bytes(), length).unwrap_or_default();
        self.by_hash.entry(hasher.hash_one(affix)).or_default().push(index);
    }

    fn find<'t>(
        &self,
        affix: impl Fn(usize) -> Option<&'t [u8]>,
        hasher: &RandomState,
        found: &mut FoundPolicies,
    ) {
        for affix in self.lengths.iter().filter_map(|length| affix(*length)) {
            found.extend(self.by_hash.get(&hasher.hash_one(affix)).into_iter().flatten().copied());
        }
    }
}

impl PartSearch {
    fn new(parts: HashMap<&str, Vec<u32>>) -> Option<Self> {
        let (texts, policies): (Vec<&str>, Vec<Vec<u32>>) = parts.into_iter().unzip();
        Some(Self { search: OverlappingSearch::compact(texts)?, policies })
    }

    /// Returns `None` if the search would be no cheaper than the evaluation of the policies.
    fn find(&self, text: &str, found: &mut FoundPolicies) -> Option<()> {
        // A hostile text can have parts of parts at each of its characters.
        let most = self.policies.len() + text.len() / 8;
        let mut seen = vec![false; self.policies.len()];
        for (count, part) in self.search.indices(text).enumerate() {
            if count > most {
                return None;
            }
            if !std::mem::replace(seen.get_mut(part)?, true) {
                found.extend_from_slice(self.policies.get(part)?);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_parts_at_each_of_its_characters_finds_all_policies_instead_of_each_part() {
        let parts: Vec<String> = (1..100).map(|length| "a".repeat(length)).collect();
        let search =
            PartSearch::new((0..).zip(&parts).map(|(index, part)| (part.as_str(), vec![index])).collect());
        let find = |text: &str| {
            let mut found = FoundPolicies::new();
            search.as_ref().unwrap().find(text, &mut found).map(|()| found.to_vec())
        };
        assert_eq!(find("b a b aa"), Some(vec![0, 1]));
        assert_eq!(find(&"a".repeat(10_000)), None);
    }
}
