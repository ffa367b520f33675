//! Import cycles between files: a file that uses another one, directly or through others, is not used by it. A file and the files of
//! its submodules may use each other. Only names in `use` declarations and paths count, not calls of methods.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

static DECLARATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);").unwrap());
static QUALIFIED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(?:[a-z_]\w*::)+\w+").unwrap());
static TESTS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^#\[cfg\((?:all\()?test\b.*\n(?:#\[.*\n)*mod ").unwrap());
/// Strings, and the character `"`, which begins none.
static STRINGS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r###"(?s)'\\?"'|r##".*?"##|r#".*?"#|"(?:\\.|[^"\\])*""###).unwrap());

/// The path of a module in its crate: `["json", "value"]`; empty for `lib.rs`.
type ModulePath = Vec<String>;

/// Which files of a crate use which others.
struct ImportGraph {
    edges: BTreeMap<ModulePath, BTreeSet<ModulePath>>,
}

impl ImportGraph {
    /// Reads every file below the `src` of a crate.
    fn from_sources(sources: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec![sources.to_owned()];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(sources).unwrap().with_extension("");
                let mut module: ModulePath =
                    relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                module.pop_if(|last| matches!(last.as_str(), "mod" | "lib"));
                files.insert(module, fs::read_to_string(&path).unwrap());
            }
        }
        Self::from_files(&files)
    }

    fn from_files(files: &BTreeMap<ModulePath, String>) -> Self {
        let modules: BTreeSet<ModulePath> = files.keys().cloned().collect();
        let parsed: BTreeMap<&ModulePath, ParsedFile> = files
            .iter()
            .map(|(module, text)| (module, ParsedFile::parse(module, &code(text), &modules)))
            .collect();
        let defining_file = |path: &[String]| defining_file(path, &parsed);
        let edges = parsed.iter().map(|(module, file)| {
            let used = file.used.iter().filter_map(|path| defining_file(path));
            let other_branch = |used: &ModulePath| !used.starts_with(module) && !module.starts_with(used);
            ((*module).clone(), used.filter(other_branch).collect())
        });
        Self { edges: edges.collect() }
    }

    /// The cycles that a depth-first search meets, each as the modules from one to itself; empty if there is none.
    fn cycles(&self) -> Vec<Vec<String>> {
        let mut search =
            CycleSearch { graph: self, finished: BTreeSet::new(), way: Vec::new(), cycles: Vec::new() };
        self.edges.keys().for_each(|module| search.visit(module));
        search.cycles
    }
}

struct CycleSearch<'g> {
    graph: &'g ImportGraph,
    finished: BTreeSet<&'g ModulePath>,
    way: Vec<&'g ModulePath>,
    cycles: Vec<Vec<String>>,
}

impl<'g> CycleSearch<'g> {
    fn visit(&mut self, module: &'g ModulePath) {
        if let Some(start) = self.way.iter().position(|open| *open == module) {
            let cycle = self.way[start..].iter().copied().chain([module]);
            return self.cycles.push(cycle.map(|module| module.join("::")).collect());
        }
        if self.finished.contains(module) {
            return;
        }
        self.way.push(module);
        for used in self.graph.edges.get(module).into_iter().flatten() {
            self.visit(used);
        }
        self.way.pop();
        self.finished.insert(module);
    }
}

/// The names that a file imports and uses, as paths from the root of the crate.
#[derive(Default)]
struct ParsedFile {
    used: Vec<ModulePath>,
    /// Re-exported names, with the paths that they stand for.
    reexports: BTreeMap<String, ModulePath>,
}

impl ParsedFile {
    fn parse(module: &ModulePath, code: &str, modules: &BTreeSet<ModulePath>) -> Self {
        let mut file = Self::default();
        let mut imported = BTreeMap::new();
        for captures in DECLARATION.captures_iter(code) {
            for (path, name) in imported_names(&captures[2]) {
                let Some(path) = path_from_root(&path, module, modules) else { continue };
                match captures.get(1) {
                    Some(_) => _ = file.reexports.insert(name, path),
                    // An imported module counts where a path begins with it.
                    None if modules.contains(&path) => _ = imported.insert(name, path),
                    None => {
                        file.used.push(path.clone());
                        imported.insert(name, path);
                    }
                }
            }
        }
        for found in QUALIFIED.find_iter(&DECLARATION.replace_all(code, "")) {
            let path: Vec<String> = found.as_str().split("::").map(str::to_owned).collect();
            match imported.get(&path[0]) {
                Some(start) => file.used.push([start, &path[1..]].concat()),
                None => file.used.extend(path_from_root(&path, module, modules)),
            }
        }
        file
    }
}

/// The code of a file without its test module, comments and strings.
pub(super) fn code(text: &str) -> String {
    let text = TESTS.splitn(text, 2).next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    STRINGS.replace_all(&lines.collect::<Vec<_>>().join("\n"), "").into_owned()
}

/// The paths in a `use` tree, each with the name that it declares.
fn imported_names(tree: &str) -> Vec<(Vec<String>, String)> {
    let Some((head, list)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unzip();
        let path: Vec<String> = path.unwrap_or(tree).split("::").map(|part| part.trim().to_owned()).collect();
        let name = alias.map_or_else(|| path[path.len() - 1].clone(), |alias| alias.trim().to_owned());
        return vec![(path, name)];
    };
    let head: Vec<String> =
        head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let (list, _) = list.rsplit_once('}').unwrap();
    let mut depth = 0;
    let items = list.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let mut names = Vec::new();
    for (path, name) in items.filter(|item| !item.trim().is_empty()).flat_map(imported_names) {
        let is_self = path == ["self"];
        let path = if is_self { head.clone() } else { [&head[..], &path].concat() };
        let name = if is_self && name == "self" { path[path.len() - 1].clone() } else { name };
        names.push((path, name));
    }
    names
}

/// A path of the crate from its root. Returns `None` for a path of another crate.
fn path_from_root(path: &[String], module: &[String], modules: &BTreeSet<ModulePath>) -> Option<ModulePath> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => Some([module.split_last()?.1, rest].concat()),
        _ => {
            let below = [module, path].concat();
            let submodule = &below[..=module.len()];
            modules.contains(submodule).then_some(below)
        }
    }
}

/// The file in which a path of the crate is defined, with re-exports followed. Returns `None` if no file holds it.
fn defining_file(path: &[String], parsed: &BTreeMap<&ModulePath, ParsedFile>) -> Option<ModulePath> {
    let mut path = path.to_vec();
    // A path passes through few re-exports; a longer chain would be one that repeats itself.
    for _ in 0..8 {
        let (length, (module, file)) = (0..=path.len())
            .rev()
            .find_map(|length| Some((length, parsed.get_key_value(&path[..length].to_vec())?)))?;
        let Some(target) = path.get(length).and_then(|name| file.reexports.get(name)) else {
            return Some((*module).clone());
        };
        path = [target, &path[length + 1..]].concat();
    }
    None
}

#[test]
fn files_do_not_import_each_other_in_a_cycle() {
    let root = crate::fixtures::root();
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut broken = Vec::new();
    for sources in crates.chain([root.join("src")]) {
        let graph = ImportGraph::from_sources(&sources);
        assert!(graph.edges.len() > 5, "no files in {}", sources.display());
        let place = sources.strip_prefix(root).unwrap().display().to_string();
        broken.extend(graph.cycles().iter().map(|cycle| format!("{place}: {}", cycle.join(" → "))));
    }
    assert!(
        broken.is_empty(),
        "these files import each other in a cycle; move what they share into a file that uses none of them, or make one a submodule \
         of the other:\n{}",
        broken.join("\n")
    );
}

#[test]
fn cycles_are_found_through_paths_lists_and_reexports() {
    let cycles = |files: &[(&str, &str)]| {
        let module =
            |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let files = files.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect();
        ImportGraph::from_files(&files).cycles().iter().map(|cycle| cycle.join(" → ")).collect::<Vec<_>>()
    };
    let root = ("", "mod a;\nmod b;\npub use b::{B, C as Renamed};");
    for (a, b, expected) in [
        ("use super::b::B;", "use crate::a::A;", &["a → b → a"][..]),
        ("use crate::{\n    Renamed,\n};", "fn f() { crate::a::f() }", &["a → b → a"]),
        ("use super::{b::{self, B}};\nfn f() { b::f() }", "use super::a;\nfn f() { a::f() }", &["a → b → a"]),
        ("use super::b::B;", "// use super::a::A;\nconst A: &str = \"crate::a::A\";", &[]),
        ("use super::b::B;", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}", &[]),
    ] {
        assert_eq!(cycles(&[root, ("a", a), ("b", b)]), expected, "{a}\n{b}");
    }
    let nested = [("", "mod a;"), ("a", "mod c;\nuse self::c::C;"), ("a::c", "use super::A;")];
    assert!(cycles(&nested).is_empty(), "a file and its submodule may use each other");
}
