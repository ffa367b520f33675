//! Compares the public API of each library crate with its list below `snapshots/public-api`, so that no change of it goes unnoticed.
//! With `UPDATE_GENERATED=1` it writes the lists. An argument names the target directory. Hidden members of types that are
//! re-exported from hidden modules are listed, too. Any warning of rustdoc about the documentation is an error.

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use similar::TextDiff;

/// The library crates.
const CRATES: [&str; 16] = [
    "callgate",
    "callgate-analysis",
    "callgate-bundle",
    "callgate-hooks",
    "callgate-http",
    "callgate-lint",
    "callgate-log",
    "callgate-mcp",
    "callgate-policy-tests",
    "callgate-postgres",
    "callgate-redis",
    "callgate-server",
    "callgate-shell",
    "callgate-sqlite",
    "callgate-state",
    "callgate-telemetry",
];

/// Set where this program runs in place of rustdoc.
const IN_PLACE_OF_RUSTDOC: &str = "CALLGATE_PUBLIC_API_RUSTDOC";

fn main() -> ExitCode {
    if let Some(rustdoc) = std::env::var_os(IN_PLACE_OF_RUSTDOC) {
        return run_rustdoc(&rustdoc);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let target = std::env::args_os().nth(1).map_or_else(|| root.join("target"), PathBuf::from);
    let update = std::env::var_os("UPDATE_GENERATED").is_some();
    let is_known = match check_all(root, &target, update) {
        Ok(is_known) => is_known,
        Err(error) => {
            eprintln!("error: the public API can't be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !is_known {
        eprintln!(
            "The public API has changed. If that is intended, add it to CHANGELOG.md and run\n\
             UPDATE_GENERATED=1 cargo run --manifest-path .ci/public-api/Cargo.toml"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs rustdoc with these arguments, as if its toolchain were a nightly one: others write no JSON. Only rustdoc sees the variable, for a
/// change of it has cargo run build scripts again, and compile all that depends on them.
fn run_rustdoc(rustdoc: &OsStr) -> ExitCode {
    match Command::new(rustdoc).args(std::env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: rustdoc can't be run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the public API of every package is the listed one.
fn check_all(root: &Path, target: &Path, update: bool) -> Result<bool, Box<dyn Error>> {
    // The second run overwrites the files of the first.
    let documented = items_of_all(root, target, false)?;
    let all = items_of_all(root, target, true)?;
    let mut is_known = true;
    for ((package, documented), all) in CRATES.into_iter().zip(documented).zip(all) {
        is_known &= check(root, package, &documented, all, update)?;
    }
    Ok(is_known)
}

/// Returns whether the public API of a package is the listed one. `all`: with hidden items.
fn check(
    root: &Path,
    package: &str,
    documented: &[String],
    all: Vec<String>,
    update: bool,
) -> Result<bool, Box<dyn Error>> {
    let reexports: BTreeSet<&str> =
        documented.iter().filter_map(|item| item.strip_prefix("pub use ")).collect();
    let mut api: BTreeSet<String> =
        documented.iter().filter(|item| !item.starts_with("pub use ")).cloned().collect();
    if !reexports.is_empty() {
        // The documentation shows hidden items where they are re-exported; the JSON has them where they are defined.
        let names: BTreeSet<&str> = reexports.iter().filter_map(|path| path.rsplit("::").next()).collect();
        api.extend(all.into_iter().filter(|item| {
            let path = defined_path(item);
            reexports.contains(path) || owner_of(path).is_some_and(|owner| names.contains(owner))
        }));
    }
    let api: String = api.iter().map(|item| format!("{item}\n")).collect();
    let list = root.join("snapshots/public-api").join(format!("{package}.txt"));
    if update {
        std::fs::create_dir_all(list.parent().unwrap_or(root))?;
        std::fs::write(&list, api)?;
        return Ok(true);
    }
    let known = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    if known != api {
        let name = format!("snapshots/public-api/{package}.txt");
        print!(
            "{}",
            TextDiff::from_lines(&known, &api).unified_diff().context_radius(0).header(&name, "now")
        );
    }
    Ok(known == api)
}

/// The path that an item defines: `callgate::engine::Engine::new` of `pub fn callgate::engine::Engine::new() -> Self`.
fn defined_path(item: &str) -> &str {
    let path = item.split_whitespace().find(|word| word.starts_with("callgate")).unwrap_or_default();
    path.split(|c: char| c != ':' && c != '_' && !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
        .trim_end_matches(':')
}

/// The type that a member belongs to: `Engine` of `callgate::engine::Engine::new`.
fn owner_of(path: &str) -> Option<&str> {
    let mut segments = path.rsplit("::");
    segments.next()?;
    segments.next()
}

/// The public items of each package, one a line, without implementations that the compiler or a derive adds.
fn items_of_all(root: &Path, target: &Path, with_hidden: bool) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let mut flags = "-D warnings -Z unstable-options --output-format json".to_owned();
    if with_hidden {
        flags.push_str(" --document-hidden-items");
    }
    // All packages at once, so that dependencies are compiled with one set of features.
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["doc", "--quiet", "--locked", "--workspace", "--no-deps", "--lib", "--all-features"])
        .env("RUSTDOCFLAGS", flags)
        .env(IN_PLACE_OF_RUSTDOC, std::env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into()))
        .env("RUSTDOC", std::env::current_exe()?)
        .env("CARGO_TARGET_DIR", target)
        .status()?;
    if !status.success() {
        return Err(format!("cargo doc ended with {status}").into());
    }
    CRATES.into_iter().map(|package| items(target, package)).collect()
}

fn items(target: &Path, package: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let json = target.join("doc").join(format!("{}.json", package.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    Ok(api.items().map(ToString::to_string).collect())
}
