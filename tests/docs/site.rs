//! The site has every page of `docs/`, each once.

use std::path::{Path, PathBuf};

use super::{Page, normalized, paths};

#[test]
fn summary_lists_every_page_once() {
    let summary = Page::read("docs/SUMMARY.md".as_ref());
    let mut listed: Vec<PathBuf> =
        summary.links.iter().map(|link| normalized(&Path::new("docs").join(&link.target))).collect();
    listed.sort();
    let duplicate = listed.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(duplicate, None, "docs/SUMMARY.md lists a page twice");
    let is_missing =
        |path: &PathBuf| path.starts_with("docs") && !path.ends_with("SUMMARY.md") && !listed.contains(path);
    let missing: Vec<PathBuf> = paths().into_iter().filter(is_missing).collect();
    assert_eq!(missing, Vec::<PathBuf>::new(), "add these pages to docs/SUMMARY.md");
}
