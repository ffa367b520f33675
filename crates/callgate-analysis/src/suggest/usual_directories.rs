//! Chooses the directories of a rule: few, as deep as possible, and each with paths of enough sessions.

use super::string_profile::DirectoryCounts;

/// The most directories of a rule.
const MAX_DIRECTORIES: usize = 16;
/// The most directories of one parent that are listed instead of the parent.
const MAX_SIBLINGS: usize = 4;

/// Returns the directories in which paths usually are. Returns `None` if that is the root, or if there are too many.
pub(super) fn usual_directories(counts: &DirectoryCounts, required: usize) -> Option<Vec<Vec<String>>> {
    let mut chosen = Vec::new();
    choose(counts, required, &[], &mut chosen);
    let is_root = chosen.iter().any(Vec::is_empty);
    (!is_root && !chosen.is_empty() && chosen.len() <= MAX_DIRECTORIES).then_some(chosen)
}

/// Chooses from the directories at and below `directory`.
fn choose(counts: &DirectoryCounts, required: usize, directory: &[String], chosen: &mut Vec<Vec<String>>) {
    let has_usual_files =
        counts.direct.get(&directory.to_vec()).is_some_and(|support| support.is_usual(required));
    let children: Vec<&Vec<String>> = counts
        .above
        .usual(required)
        .map(|(child, _)| child)
        .filter(|child| child.len() == directory.len() + 1 && child.starts_with(directory))
        .collect();
    if has_usual_files || children.len() > MAX_SIBLINGS || children.is_empty() {
        chosen.push(directory.to_vec());
        return;
    }
    for child in children {
        choose(counts, required, child, chosen);
    }
}
