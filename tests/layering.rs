//! Module layering: `lib.rs` lists the top-level modules in the order in which a policy and then a call pass through them, and a
//! module uses only modules listed above it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use regex::Regex;

fn sources() -> PathBuf {
    crate::fixtures::root().join("src")
}

/// Every Rust file of a module (`module.rs`, or all below `module/`), without its test modules and comments.
fn module_files(module: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![sources().join(format!("{module}.rs")), sources().join(module)];
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

fn modules() -> Vec<String> {
    let lib = fs::read_to_string(sources().join("lib.rs")).unwrap();
    let declaration = Regex::new(r"(?m)^(?:pub )?mod (\w+);").unwrap();
    declaration.captures_iter(&lib).map(|captures| captures[1].to_owned()).collect()
}

#[test]
fn modules_use_only_modules_listed_above_them() {
    let modules = modules();
    assert!(modules.len() > 15, "the list in lib.rs was not found: {modules:?}");
    let position: BTreeMap<&str, usize> =
        modules.iter().enumerate().map(|(index, module)| (module.as_str(), index)).collect();
    // Our own macros are called by their names at the crate root (`__json`).
    let path = Regex::new(r"\bcrate::([a-z]\w*)|\bcrate::\{").unwrap();
    let mut broken = Vec::new();
    for module in &modules {
        let files = module_files(module);
        assert!(!files.is_empty(), "lib.rs names `{module}`, which has no file");
        for (file, code) in files {
            for captures in path.captures_iter(&code) {
                let Some(used) = captures.get(1) else {
                    broken.push(format!("{}: `crate::{{…}}` hides which modules are used", file.display()));
                    continue;
                };
                match position.get(used.as_str()) {
                    Some(used_position) if *used_position <= position[module.as_str()] => {}
                    Some(_) => broken.push(format!(
                        "{}: `{module}` uses `{}`, which is listed below it",
                        file.display(),
                        used.as_str()
                    )),
                    None => {
                        broken.push(format!("{}: `crate::{}` is not a module", file.display(), used.as_str()))
                    }
                }
            }
            if code.contains("use crate::*") || code.contains("super::super::") {
                broken.push(format!("{}: glob import of the crate, or `super::super`", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_file_belongs_to_a_listed_module() {
    let modules = modules();
    for entry in fs::read_dir(sources()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(
            module == "lib" || modules.iter().any(|listed| listed == module),
            "src/{name} is not listed in lib.rs"
        );
    }
}

/// Each heavy dependency of the library is used in one module, so that replacing it changes only that module. Those of the other crates
/// are kept apart by their manifests.
#[test]
fn each_heavy_dependency_is_used_in_one_module() {
    for (dependency, home) in [
        ("icu_casemap", "unicode"),
        ("icu_normalizer", "unicode"),
        ("icu_properties", "unicode"),
        ("lru", "state"),
        ("granit_parser", "source"),
        ("annotate_snippets", "diagnostic"),
        ("regex_syntax", "redaction"),
        ("aho_corasick", "call"),
        ("chacha20poly1305", "seal"),
        ("hkdf", "seal"),
        ("hmac", "seal"),
        ("getrandom", "seal"),
        ("rhai", "script"),
        ("dashu_float", "script"),
        ("jsonschema", "argument_schema"),
        ("url", "matcher"),
        ("notify", "reload"),
        ("rustix", "file_access"),
    ] {
        let named = Regex::new(&format!(r"\b{dependency}::|\buse {dependency}\b")).unwrap();
        for module in modules().iter().filter(|module| *module != home) {
            for (file, code) in module_files(module) {
                assert!(
                    !named.is_match(&code),
                    "{} uses `{dependency}`, which belongs to `{home}`",
                    file.display()
                );
            }
        }
    }
}
