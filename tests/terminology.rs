//! The terms of the field: words that nobody searches for do not come back into documentation, comments, messages and generated texts.
//!
//! The words, the terms to write instead, and the exceptions with their reasons are in `terminology.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::fixtures::root;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Terminology {
    words: Vec<Word>,
    file_names: Vec<String>,
    grammar: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    find: String,
    write: String,
    #[serde(default)]
    except: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// A part of the line.
    text: String,
    because: String,
}

fn terminology() -> Terminology {
    let list: Terminology = serde_yaml::from_str(include_str!("terminology.yaml")).unwrap();
    let reasons = list.words.iter().flat_map(|word| &word.except).map(|exception| &exception.because);
    assert!(reasons.clone().all(|because| !because.is_empty()), "every exception has a reason");
    list
}

fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).case_insensitive(true).build().unwrap()
}

/// All files below a path, with one of these extensions.
fn files(below: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(below)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            open.extend(entries.filter(|path| !path.ends_with("target") && !path.ends_with("node_modules")));
        } else if path.extension().is_some_and(|found| extensions.iter().any(|extension| found == *extension))
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines of a Markdown file that are no code.
fn markdown_prose(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((number, line.to_owned()));
        }
    }
    lines
}

/// The comments and string literals of a Rust file, line by line.
fn rust_prose(text: &str) -> Vec<(usize, String)> {
    let token = Regex::new(
        r##"(?s)//[^\n]*|r#".*?"#|r".*?"|"(?:\\.|[^"\\])*"|'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'"##,
    );
    let mut lines = Vec::new();
    for found in token.unwrap().find_iter(text) {
        let first = text.get(..found.start()).unwrap_or_default().matches('\n').count() + 1;
        lines.extend((first..).zip(found.as_str().lines().map(str::to_owned)));
    }
    lines
}

/// Everything that people read: path, line and text.
fn prose() -> Vec<(String, usize, String)> {
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    let mut all = Vec::new();
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs",
        "policies",
        "examples",
    ];
    let pages = pages.iter().flat_map(|page| files(page, &["md"]));
    for path in pages.chain(files("src/diagnostic", &["md"])) {
        let lines = markdown_prose(&fs::read_to_string(&path).unwrap());
        all.extend(lines.into_iter().map(|(number, line)| (name(&path), number, line)));
    }
    for path in files("src", &["rs"]).into_iter().chain(files("crates", &["rs"])) {
        let lines = rust_prose(&fs::read_to_string(&path).unwrap());
        all.extend(lines.into_iter().map(|(number, line)| (name(&path), number, line)));
    }
    for path in files("schemas", &["json"]) {
        let lines = fs::read_to_string(&path).unwrap();
        all.extend((1..).zip(lines.lines()).map(|(number, line)| (name(&path), number, line.to_owned())));
    }
    assert!(all.len() > 10_000, "{} lines were found", all.len());
    all
}

#[test]
fn texts_use_standard_terms() {
    let list = terminology();
    let words: Vec<(Regex, &Word)> = list.words.iter().map(|word| (pattern(&word.find), word)).collect();
    let mut found = Vec::new();
    for (path, number, line) in prose() {
        for (pattern, word) in &words {
            let is_excepted = || word.except.iter().any(|exception| line.contains(&exception.text));
            if let Some(words) = pattern.find(&line)
                && !is_excepted()
            {
                found.push(format!("{path}:{number}: `{}`: write {}", words.as_str(), word.write));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn file_names_say_what_the_files_hold() {
    let list = terminology();
    let is_listed = |name: &str| list.file_names.iter().any(|listed| listed == name);
    let paths = ["src", "crates", "tests", "benches"].iter().flat_map(|below| files(below, &["rs"]));
    let named: Vec<String> = paths
        .filter(|path| {
            let path = path.strip_prefix(root()).unwrap().with_extension("");
            path.components().any(|part| is_listed(&part.as_os_str().to_string_lossy()))
        })
        .map(|path| path.display().to_string())
        .collect();
    assert!(named.is_empty(), "{}", named.join("\n"));
}

/// Generated texts are put together from parts, which then have to agree.
#[test]
fn generated_texts_have_no_broken_grammar() {
    let list = terminology();
    let patterns: Vec<Regex> = list.grammar.iter().map(|text| pattern(text)).collect();
    let code = Regex::new(r"`[^`]*`").unwrap();
    let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphabetic);
    let mut found = Vec::new();
    for path in [root().join("docs/reference.md"), root().join("docs/lints.md")] {
        for (number, line) in markdown_prose(&fs::read_to_string(&path).unwrap()) {
            let line = code.replace_all(&line, "CODE");
            let words: Vec<&str> = line.split(' ').collect();
            let is_doubled = words.windows(2).any(|pair| pair[0] == pair[1] && is_word(pair[0]));
            if is_doubled || patterns.iter().any(|pattern| pattern.is_match(&line)) {
                found.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_listed_word_is_found_in_prose_and_not_in_code() {
    let markdown = markdown_prose("Ask anew.\n```\nanew\n```\nagain");
    assert_eq!(markdown, [(1, "Ask anew.".to_owned()), (5, "again".to_owned())]);
    let rust = rust_prose("// anew\nlet anew = \"asked anew\";\nlet quote = '\"';");
    assert_eq!(rust[..2], [(1, "// anew".to_owned()), (2, "\"asked anew\"".to_owned())]);
    assert!(pattern(&terminology().words[0].find).is_match("asked Anew"));
}
