//! `callgate man`: every command has a manual page, which contains what `--help` prints and renders without warnings.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use super::TestDir;
use crate::packages;

/// All visible commands with their `--help`, each as its words: `[]` is `callgate` itself, then `["approvals", "list"]`.
fn help_texts(dir: &TestDir) -> BTreeMap<Vec<String>, String> {
    let mut texts = BTreeMap::new();
    let mut open = vec![Vec::new()];
    while let Some(words) = open.pop() {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = dir.run(&arguments).stdout;
        let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap();
        for line in listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
            let name = line.split_whitespace().next().unwrap().to_owned();
            open.push(words.iter().cloned().chain([name]).collect());
        }
        texts.insert(words, help);
    }
    assert!(texts.len() > 20, "only {} commands were found", texts.len());
    texts
}

/// The names of the pages and their texts, written by `--output`.
fn pages(dir: &TestDir) -> BTreeMap<String, String> {
    let written = dir.run(&["man", "--output", "share/man1"]);
    assert_eq!((written.code, written.stderr.as_str()), (Some(0), ""));
    let entries = fs::read_dir(dir.0.path().join("share/man1")).unwrap();
    let pages = entries.map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    pages.collect()
}

#[test]
fn every_command_has_a_page_with_its_usage_options_and_examples() {
    let dir = TestDir::new(&[]);
    let pages = pages(&dir);
    let help_texts = help_texts(&dir);
    let names: Vec<String> = help_texts.keys().map(|words| page_name(words)).collect();
    assert_eq!(pages.keys().cloned().collect::<Vec<_>>(), sorted(names));
    for (words, help) in help_texts {
        let page = plain_text(&pages[&page_name(&words)]);
        let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap();
        let options = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
        let options = options.map(|word| word.trim_matches(|c: char| !c.is_alphabetic() && c != '-'));
        let examples = help.split("\nExamples:\n").nth(1).unwrap_or_default().lines().map(str::trim);
        for expected in options.chain(examples).chain([usage]) {
            assert!(page.contains(expected), "`{expected}` is missing in {}:\n{page}", page_name(&words));
        }
        let has_section = |title: &str| page.contains(&format!("\n.SH {title}\n"));
        assert_eq!(help.contains("Exit status: "), has_section("\"EXIT STATUS\""), "{words:?}");
        assert_eq!(!words.is_empty(), has_section("\"SEE ALSO\""), "{words:?}");
    }
}

fn page_name(words: &[String]) -> String {
    let words: Vec<&str> = ["callgate"].into_iter().chain(words.iter().map(String::as_str)).collect();
    format!("{}.1", words.join("-"))
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// The source of a page without fonts and escapes.
fn plain_text(page: &str) -> String {
    let fonts = regex::Regex::new(r"\\f[BIR]").unwrap();
    fonts.replace_all(page, "").replace(r"\-", "-").replace(r"\*(Aq", "'").replace(r"\\", r"\")
}

/// `man` shows a page under its name in the manual, with the version at the bottom.
#[test]
fn pages_have_a_name_a_version_and_only_known_macros() {
    let known = ["TH", "SH", "PP", "TP", "IP", "RS", "RE", "nf", "fi", "br", "ie", "el"];
    for (name, page) in pages(&TestDir::new(&[])) {
        let title = name.strip_suffix(".1").unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let first = format!(
            ".TH \"{}\" \"1\" \"\" \"callgate {version}\" \"Callgate Manual\"\n",
            title.to_uppercase()
        );
        assert!(page.starts_with(&first), "{page}");
        assert!(plain_text(&page).contains(&format!(".SH NAME\n{title} - ")), "{page}");
        for line in page.lines().filter_map(|line| line.strip_prefix('.')) {
            let control = line.split_whitespace().next().unwrap();
            assert!(known.contains(&control), "{name}: {line}");
        }
    }
}

/// Only if `groff` is installed.
#[test]
fn pages_render_without_warnings() {
    let missing = Command::new("groff").arg("--version").stdout(Stdio::null()).status().is_err();
    if missing {
        return;
    }
    for (name, page) in pages(&TestDir::new(&[])) {
        let mut groff = Command::new("groff");
        // `-K`: the pages are UTF-8; `-ww`: all warnings.
        groff.args(["-man", "-Kutf8", "-Tutf8", "-ww", "-z"]);
        assert_eq!(packages::run(&mut groff, &page), (String::new(), true), "{name}");
    }
}

#[test]
fn without_output_the_page_of_callgate_is_printed() {
    let dir = TestDir::new(&[]);
    assert_eq!(dir.run(&["man"]).stdout, pages(&dir)["callgate.1"]);
    let file_in_the_way = TestDir::new(&[("pages", "")]);
    let ended = file_in_the_way.run(&["man", "--output", "pages"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("`pages` can't be written"), "{}", ended.stderr);
}
