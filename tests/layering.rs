//! Module layering: the `lib.rs` of a crate lists its top-level modules in the order in which they use each other: in the library, the
//! order in which a policy and then a call pass through them. A module uses only modules listed above it, and no files import each other
//! in a cycle.

mod import_cycles;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The sources of the crates whose modules are listed in order.
const LAYERED: [&str; 4] =
    ["src", "crates/callgate-policy-tests/src", "crates/callgate-lint/src", "crates/callgate-analysis/src"];

/// The sources of a crate with layers.
struct LayeredCrate {
    sources: PathBuf,
    /// The top-level modules, in the order of `lib.rs`.
    modules: Vec<String>,
}

impl LayeredCrate {
    fn all() -> impl Iterator<Item = Self> {
        LAYERED.into_iter().map(Self::new)
    }

    fn library() -> Self {
        Self::new(LAYERED[0])
    }

    fn new(sources: &str) -> Self {
        let sources = crate::fixtures::root().join(sources);
        let lib = fs::read_to_string(sources.join("lib.rs")).unwrap();
        let declaration = Regex::new(r"(?m)^(?:pub )?mod (\w+);").unwrap();
        let modules = declaration.captures_iter(&lib).map(|captures| captures[1].to_owned()).collect();
        Self { sources, modules }
    }

    /// Every Rust file of a module (`module.rs`, or all below `module/`), without its test module, comments and strings.
    fn module_files(&self, module: &str) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut open = vec![self.sources.join(format!("{module}.rs")), self.sources.join(module)];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") && path.exists() {
                let code = import_cycles::code(&fs::read_to_string(&path).unwrap());
                found.push((path, code));
            }
        }
        found
    }

    /// Whether a file is that of a top-level module, in which `super` is the root of the crate.
    fn is_module_root(&self, file: &Path) -> bool {
        let directory = file.parent().unwrap();
        directory == self.sources
            || (file.ends_with("mod.rs") && directory.parent() == Some(self.sources.as_path()))
    }
}

#[test]
fn modules_use_only_modules_listed_above_them() {
    let mut broken = Vec::new();
    // The library's own macros are called by their names at the crate root (`__json`).
    let path = Regex::new(r"\bcrate::([a-z]\w*)|\bcrate::[{A-Z]").unwrap();
    for layered in LayeredCrate::all() {
        let modules = &layered.modules;
        assert!(modules.len() > 15, "the list in lib.rs was not found: {modules:?}");
        let position: BTreeMap<&str, usize> =
            modules.iter().enumerate().map(|(index, module)| (module.as_str(), index)).collect();
        for module in modules {
            let files = layered.module_files(module);
            assert!(!files.is_empty(), "lib.rs names `{module}`, which has no file");
            for (file, code) in files {
                let mut report = |problem: String| broken.push(format!("{}: {problem}", file.display()));
                for captures in path.captures_iter(&code) {
                    let Some(used) = captures.get(1) else {
                        report(
                            "`crate::{…}` and names of the crate root hide which modules are used".to_owned(),
                        );
                        continue;
                    };
                    let used = used.as_str();
                    match position.get(used) {
                        Some(used_position) if *used_position <= position[module.as_str()] => {}
                        Some(_) => report(format!("`{module}` uses `{used}`, which is listed below it")),
                        None => report(format!("`crate::{used}` is not a module")),
                    }
                }
                if code.contains("use crate::*") || code.contains("super::super::") {
                    report("glob import of the crate, or `super::super`".to_owned());
                }
                if layered.is_module_root(&file) && code.contains("super::") {
                    report("`super` is the crate's root here: write `crate::`".to_owned());
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_file_belongs_to_a_listed_module() {
    for LayeredCrate { sources, modules } in LayeredCrate::all() {
        for entry in fs::read_dir(&sources).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let module = name.trim_end_matches(".rs");
            assert!(
                module == "lib" || modules.iter().any(|listed| listed == module),
                "{}/{name} is not listed in lib.rs",
                sources.display()
            );
        }
    }
}

/// Each heavy dependency of the library is used in one module, so that replacing it changes only that module. Those of the other crates
/// are kept apart by their manifests.
#[test]
fn each_heavy_dependency_is_used_in_one_module() {
    let library = LayeredCrate::library();
    for (dependency, home) in [
        ("icu_casemap", "unicode"),
        ("icu_normalizer", "unicode"),
        ("icu_properties", "unicode"),
        ("lru", "state"),
        ("granit_parser", "source"),
        ("annotate_snippets", "diagnostic"),
        ("jsonpath_rust", "path"),
        ("regex_syntax", "pattern_analysis"),
        ("aho_corasick", "string_search"),
        ("chacha20poly1305", "seal"),
        ("hkdf", "seal"),
        ("hmac", "seal"),
        ("getrandom", "seal"),
        ("ring", "seal"),
        ("rhai", "script"),
        ("dashu_float", "script"),
        ("jsonschema", "argument_schema"),
        ("unicode_security", "unicode"),
        ("url", "address"),
        ("notify", "reload"),
        ("rustix", "file_access"),
        ("smol_str", "json"),
        ("hashbrown", "json"),
    ] {
        let named = Regex::new(&format!(r"\b{dependency}::|\buse {dependency}\b")).unwrap();
        for module in library.modules.iter().filter(|module| *module != home) {
            for (file, code) in library.module_files(module) {
                assert!(
                    !named.is_match(&code),
                    "{} uses `{dependency}`, which belongs to `{home}`",
                    file.display()
                );
            }
        }
    }
}
