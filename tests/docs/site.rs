//! The documentation site: it has every page of `docs/`, each once, and is published by its workflow.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Page, normalized, paths};
use crate::fixtures::root;

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

/// The workflow publishes what the script builds.
#[test]
fn workflow_publishes_the_site_that_the_script_builds() {
    let text = fs::read_to_string(root().join(".github/workflows/docs.yml")).unwrap();
    let workflow: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let steps = workflow["jobs"]["build"]["steps"].as_sequence().unwrap();
    let commands: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    assert_eq!(commands, ["docs/build"]);
    let mode = fs::metadata(root().join("docs/build")).unwrap().permissions().mode();
    assert!(mode & 0o111 != 0, "docs/build is not executable");
    let published =
        steps.iter().find_map(|step| step["with"]["path"].as_str().filter(|path| path.ends_with("book")));
    let built = fs::read_to_string(root().join("docs/build")).unwrap();
    assert!(built.contains(published.unwrap()), "{published:?} is not what docs/build builds");
}
