//! Finds the directories that a path is in, by its segments: directories with numbers → the numbers for a path.

use std::collections::HashMap;

use super::path_containment::{Directory, is_shell_syntax, normalize_path};

/// Directories, each with a number.
#[derive(Debug, Default)]
pub struct DirectoryIndex {
    /// The trees of directories with the same base for relative paths.
    trees: Vec<DirectoryTree>,
}

#[derive(Debug)]
struct DirectoryTree {
    base: Option<Vec<String>>,
    /// The first one is the root.
    nodes: Vec<TreeNode>,
}

#[derive(Debug, Default)]
struct TreeNode {
    /// The nodes of the segments below, by their names in lower case; with the name as it is.
    below: HashMap<String, Vec<(String, usize)>>,
    /// The numbers of the directories that end here.
    numbers: Vec<u32>,
}

impl DirectoryIndex {
    /// Adds a directory.
    pub fn add(&mut self, directory: &Directory, number: u32) {
        let (segments, base) = directory.parts();
        let known = self.trees.iter().position(|tree| tree.base.as_deref() == base);
        let at = known.unwrap_or_else(|| {
            self.trees
                .push(DirectoryTree { base: base.map(<[_]>::to_vec), nodes: vec![TreeNode::default()] });
            self.trees.len() - 1
        });
        if let Some(tree) = self.trees.get_mut(at) {
            tree.add(segments, number);
        }
    }

    /// The numbers of the directories that a path is in. Returns `None` if one of them may be undecided for this path.
    pub fn find(&self, path: &str) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        for tree in &self.trees {
            tree.find(&normalize_path(path, tree.base.as_deref()).ok()?, &mut found)?;
        }
        Some(found)
    }
}

impl DirectoryTree {
    fn add(&mut self, segments: &[String], number: u32) {
        let mut at = 0;
        for segment in segments {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { return };
            let spellings = node.below.entry(segment.to_ascii_lowercase()).or_default();
            let known = spellings.iter().find(|(name, _)| name == segment).map(|(_, index)| *index);
            at = known.unwrap_or(next);
            if known.is_none() {
                spellings.push((segment.clone(), next));
                self.nodes.push(TreeNode::default());
            }
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.numbers.push(number);
        }
    }

    fn find(&self, path: &[String], found: &mut Vec<u32>) -> Option<()> {
        let mut node = self.nodes.first()?;
        found.extend(&node.numbers);
        for segment in path {
            // Whether these are the same name as another one is for `Directory::contains` to say.
            if !segment.is_ascii() || segment.contains(is_shell_syntax) {
                return None;
            }
            match node.below.get(&segment.to_ascii_lowercase()).map(Vec::as_slice) {
                None => break,
                Some([(name, index)]) if name == segment => node = self.nodes.get(*index)?,
                // Names that differ only in case are the same on some systems.
                Some(_) => return None,
            }
            found.extend(&node.numbers);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Directory, DirectoryIndex};

    fn paths() -> impl Strategy<Value = String> {
        let segment = prop_oneof![
            4 => "[aAb]{1,2}".prop_map(String::from),
            1 => Just("..".to_owned()),
            1 => Just(".".to_owned()),
            1 => Just(String::new()),
            1 => Just("\u{e4}".to_owned()),
            1 => Just("a+b".to_owned()),
        ];
        (any::<bool>(), proptest::collection::vec(segment, 0..5)).prop_map(|(is_absolute, segments)| {
            format!("{}{}", if is_absolute { "/" } else { "" }, segments.join("/"))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn finds_the_directories_that_contain_a_path_unless_one_is_undecided(
            directories in proptest::collection::vec((paths(), any::<bool>()), 1..6),
            path in paths(),
        ) {
            let parse = |(text, has_base): &(String, bool)| {
                Directory::parse(text, has_base.then_some("/a")).ok()
            };
            let directories: Vec<Directory> = directories.iter().filter_map(parse).collect();
            let mut index = DirectoryIndex::default();
            (0..).zip(&directories).for_each(|(number, directory)| index.add(directory, number));
            if let Some(mut found) = index.find(&path) {
                found.sort_unstable();
                let contains = |directory: &Directory| directory.contains(&path);
                let expected: Result<Vec<bool>, _> = directories.iter().map(contains).collect();
                let expected = expected.expect("no directory is undecided");
                let expected: Vec<u32> = (0..).zip(expected).filter_map(|(number, is_in)| is_in.then_some(number)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
