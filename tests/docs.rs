//! Every page of the documentation is checked: its blocks by their language, its links, and the files and tests that it names.
//! CONTRIBUTING.md describes what each block is checked for.

mod console;
mod gateway_example;
mod languages;
mod markdown;
mod named_files;
mod shell_commands;
mod site;

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

pub use shell_commands::errors as command_errors;

use crate::fixtures::root;
use markdown::Page;

/// All Markdown files of these directories, and those in the root of the repository.
fn paths() -> Vec<PathBuf> {
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    let mut open: Vec<PathBuf> =
        ["docs", "policies", "examples"].iter().map(|below| root().join(below)).collect();
    let in_root = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = in_root.filter(|path| is_page(path)).collect();
    while let Some(directory) = open.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true if path.ends_with("target") => {}
                true => open.push(path),
                false if is_page(&path) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    let relative: Vec<PathBuf> =
        found.iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect();
    assert!(relative.len() > 25, "only {} pages were found", relative.len());
    relative
}

fn pages() -> Vec<Page> {
    paths().iter().map(|path| Page::read(path)).collect()
}

/// Checks all pages, two at a time. Fails with everything that is wrong.
fn check_pages(check: impl Fn(&Page) -> Vec<String> + Sync) {
    let pages = pages();
    let open = Mutex::new(pages.iter());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let work = || {
            while let Some(page) = { open.lock().unwrap().next() } {
                let found = check(page);
                failures.lock().unwrap().extend(found);
            }
        };
        scope.spawn(work);
        scope.spawn(work);
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// `a/../b` as `b`.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normalized.pop()),
            Component::CurDir => {}
            other => normalized.push(other),
        }
    }
    normalized
}

#[test]
fn every_console_command_prints_the_shown_output() {
    check_pages(console::failures);
}

/// The examples of the lints page are those of the pages of diagnostics, whose test expects errors in the bad ones.
#[test]
fn every_block_is_valid_in_its_language() {
    check_pages(|page| match page.path.ends_with("docs/lints.md") {
        true => Vec::new(),
        false => languages::failures(page),
    });
}

#[test]
fn every_rust_block_is_a_doc_test() {
    let sources = ["src/doc_examples.rs", "src/lifecycle/mod.rs", "src/approval/mod.rs"];
    let included: String =
        sources.iter().map(|path| fs::read_to_string(root().join(path)).unwrap()).collect();
    let pages = pages();
    let mut with_examples =
        pages.iter().filter(|page| page.blocks.iter().any(|block| block.language == "rust"));
    let missing = with_examples.find(|page| !included.contains(&format!("../{}\")", page.path.display())));
    let missing = missing.map(|page| page.path.display().to_string());
    assert_eq!(missing, None, "include the page in src/doc_examples.rs");
}

#[test]
fn every_relative_link_and_anchor_exists() {
    let pages = pages();
    let mut broken = Vec::new();
    for page in &pages {
        for link in &page.links {
            if link.target.contains("://") || link.target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let target = match path {
                "" => page.path.clone(),
                path => normalized(&page.path.parent().unwrap().join(path)),
            };
            let target_page = pages.iter().find(|page| page.path == target);
            let has_anchor =
                || target_page.is_some_and(|page| page.anchors.iter().any(|known| known == anchor));
            if !root().join(&target).exists() {
                broken.push(format!("{}: {} does not exist", page.at(link.line), target.display()));
            } else if !anchor.is_empty() && !has_anchor() {
                broken.push(format!(
                    "{}: {} has no heading `{anchor}`",
                    page.at(link.line),
                    target.display()
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
