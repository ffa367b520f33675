//! The law of the module list: `lib.rs` names the rooms in the order in which a policy and then a call meet them, and a
//! room uses only rooms listed above it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file of a room (`room.rs`, or all below `room/`), its test modules and comments cut off.
fn room_files(room: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![sources().join(format!("{room}.rs")), sources().join(room)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") && path.exists() {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            found.push((path, code.join("\n")));
        }
    }
    found
}

fn rooms() -> Vec<String> {
    let lib = fs::read_to_string(sources().join("lib.rs")).unwrap();
    let module = Regex::new(r"(?m)^(?:pub )?mod (\w+);").unwrap();
    module.captures_iter(&lib).map(|captures| captures[1].to_owned()).collect()
}

#[test]
fn a_room_uses_only_rooms_listed_above_it() {
    let rooms = rooms();
    assert!(rooms.len() > 15, "the list in lib.rs was not found: {rooms:?}");
    let place: BTreeMap<&str, usize> =
        rooms.iter().enumerate().map(|(place, room)| (room.as_str(), place)).collect();
    // A macro of ours is called by its name at the root of the crate (`__json`).
    let path = Regex::new(r"\bcrate::([a-z]\w*)|\bcrate::\{").unwrap();
    let mut broken = Vec::new();
    for room in &rooms {
        let files = room_files(room);
        assert!(!files.is_empty(), "lib.rs names `{room}`, which has no file");
        for (file, code) in files {
            for captures in path.captures_iter(&code) {
                let Some(used) = captures.get(1) else {
                    broken.push(format!("{}: `crate::{{…}}` hides which rooms are used", file.display()));
                    continue;
                };
                match place.get(used.as_str()) {
                    Some(used_place) if *used_place <= place[room.as_str()] => {}
                    Some(_) => broken.push(format!(
                        "{}: `{room}` uses `{}`, which stands below it",
                        file.display(),
                        used.as_str()
                    )),
                    None => broken.push(format!("{}: `crate::{}` is no room", file.display(), used.as_str())),
                }
            }
            if code.contains("use crate::*") || code.contains("super::super") {
                broken.push(format!("{}: glob of the crate, or a path up two rooms", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_file_belongs_to_a_listed_room() {
    let rooms = rooms();
    for entry in fs::read_dir(sources()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let room = name.trim_end_matches(".rs");
        assert!(
            ["lib", "main"].contains(&room) || rooms.iter().any(|listed| listed == room),
            "src/{name} is no listed room"
        );
    }
}

/// Each heavy dependency is named in one room, so that exchanging it is work in one place.
#[test]
fn one_room_names_each_heavy_dependency() {
    for (dependency, home) in [
        ("icu_casemap", "unicode"),
        ("icu_normalizer", "unicode"),
        ("icu_properties", "unicode"),
        ("lru", "state"),
        ("rusqlite", "state"),
        ("granit_parser", "source"),
        ("annotate_snippets", "diagnostic"),
        ("jsonpath_rust", "path"),
        ("regex_syntax", "detect"),
        ("aho_corasick", "call"),
        ("chacha20poly1305", "seal"),
        ("hkdf", "seal"),
        ("hmac", "seal"),
        ("getrandom", "seal"),
        ("rhai", "script"),
        ("dashu_float", "script"),
        ("jsonschema", "schema"),
        ("url", "matcher"),
        ("notify", "reload"),
        ("axum", "mcp"),
        ("reqwest", "mcp"),
        ("rustls", "mcp"),
        ("ring", "mcp"),
        ("jsonwebtoken", "mcp"),
        ("clap", "cli"),
        ("clap_complete", "cli"),
        ("anstream", "cli"),
        ("jsonc_parser", "cli"),
        ("toml_edit", "cli"),
        ("similar", "cli"),
        ("terminal_size", "cli"),
        ("unicode_width", "cli"),
    ]
    .map(|(dependency, home)| (dependency, vec![home]))
    .into_iter()
    .chain([("rustix", vec!["files", "mcp"])])
    {
        let named = Regex::new(&format!(r"\b{dependency}::|\buse {dependency}\b")).unwrap();
        for room in rooms().iter().filter(|room| !home.contains(&room.as_str())) {
            for (file, code) in room_files(room) {
                assert!(
                    !named.is_match(&code),
                    "{} names `{dependency}`, whose room is {home:?}",
                    file.display()
                );
            }
        }
    }
}
