//! Compares the public API of each library crate with its list below `snapshots/public-api`, which a release must not shrink
//! without saying so in the changelog. With `UPDATE_GENERATED=1` it writes the lists.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use similar::TextDiff;

/// The library crates, as `crates/` and the root have them.
const CRATES: [&str; 3] = ["callgate", "callgate-mcp", "callgate-sqlite"];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let update = std::env::var_os("UPDATE_GENERATED").is_some();
    let mut changed = false;
    for package in CRATES {
        match check(root, package, update) {
            Ok(true) => {}
            Ok(false) => changed = true,
            Err(error) => {
                eprintln!("error: the public API of {package} can't be read: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    if changed {
        eprintln!("The public API has changed. If that is intended, add it to CHANGELOG.md and run `UPDATE_GENERATED=1 .ci/run-public-api`.");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns whether the public API of a package is as its list says.
fn check(root: &Path, package: &str, update: bool) -> Result<bool, Box<dyn Error>> {
    let api = public_api(root, package)?;
    let list = root.join("snapshots/public-api").join(format!("{package}.txt"));
    if update {
        std::fs::create_dir_all(list.parent().unwrap_or(root))?;
        std::fs::write(&list, api)?;
        return Ok(true);
    }
    let known = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    if known == api {
        return Ok(true);
    }
    let name = format!("snapshots/public-api/{package}.txt");
    print!("{}", TextDiff::from_lines(&known, &api).unified_diff().context_radius(0).header(&name, package));
    Ok(false)
}

/// The public items of a package, one a line, without implementations that the compiler or a derive adds.
fn public_api(root: &Path, package: &str) -> Result<String, Box<dyn Error>> {
    let target: PathBuf = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["rustdoc", "--quiet", "--locked", "--lib", "--all-features", "--package", package])
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        // rustdoc writes JSON only for nightly toolchains, or with this variable.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", &target)
        .status()?;
    if !status.success() {
        return Err(format!("cargo rustdoc ended with {status}").into());
    }
    let json = target.join("doc").join(format!("{}.json", package.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}
