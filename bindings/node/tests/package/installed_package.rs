//! The installed package: the addon and the command line that cargo built, with the compiled TypeScript, as tarballs in a directory of an
//! application.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use callgate::json::{digest, json};

/// The directory of this crate.
pub fn crate_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The directory of the whole project.
pub fn project() -> PathBuf {
    crate_directory().join("../..").canonicalize().unwrap()
}

/// The directory in which cargo built this test: that of the profile.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_owned()
}

/// Runs a command to completion. Panics with its output unless it succeeds.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{command:?} could not be run ({error}); these tests need node and npm")
    });
    let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        printed(&output.stdout),
        printed(&output.stderr)
    );
    printed(&output.stdout)
}

fn npm(directory: &Path, arguments: &[&str]) {
    let options = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"];
    run(Command::new("npm").args(arguments).args(options).current_dir(directory));
}

/// The addon that cargo built as a dependency of this test.
fn addon() -> PathBuf {
    let name = format!("{}callgate_node{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let found =
        [profile_directory().join("deps"), profile_directory()].map(|directory| directory.join(&name));
    found.into_iter().find(|file| file.exists()).unwrap_or_else(|| panic!("cargo built no {name}"))
}

/// The command line, which cargo builds for the tests of the workspace.
fn command_line() -> PathBuf {
    let program = profile_directory().join(format!("callgate{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        run(Command::new(env!("CARGO")).args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "callgate-cli",
            "--bin",
            "callgate",
        ]));
    }
    program
}

/// Says whether the parts of the package have changed.
fn fingerprint(parts: &[PathBuf]) -> String {
    let mut stamps = Vec::new();
    let mut waiting: Vec<PathBuf> = parts.to_vec();
    while let Some(path) = waiting.pop() {
        let metadata = fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let modified = metadata.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            stamps.push(format!("{} {} {}", path.display(), metadata.len(), modified.as_nanos()));
        }
    }
    stamps.sort();
    digest(&json!(stamps)).short_hex()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// Builds and packs the package in `home/source`, and returns the tarballs.
fn pack(home: &Path) -> Vec<PathBuf> {
    let source = home.join("source/bindings/node");
    let _ = fs::remove_dir_all(home.join("source/tarballs"));
    fs::create_dir_all(&source).unwrap();
    for part in ["bin", "lib", "scripts", "package.json", "tsconfig.json", "README.md"] {
        let _ = fs::remove_dir_all(source.join(part));
        copy(&crate_directory().join(part), &source.join(part));
    }
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(project().join(license), home.join("source").join(license)).unwrap();
    }
    if !source.join("node_modules/typescript").exists() {
        npm(&source, &["install", "--omit=optional"]);
    }
    run(Command::new("node").arg("scripts/build.mjs").current_dir(&source));
    let target =
        if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };
    let mut packing = Command::new("node");
    packing.args(["scripts/pack.mjs", "--main", "--target", target, "--addon"]).arg(addon());
    packing.arg("--binary").arg(command_line()).args(["--output", "../../tarballs"]);
    let printed = run(packing.current_dir(&source));
    printed.lines().map(|line| source.join(line)).collect()
}

/// The directory of an application with the package, the frameworks, and the files of `test/`. Built once for the present sources.
pub fn application() -> PathBuf {
    let home = profile_directory().ancestors().nth(1).unwrap().join("packages/node-package");
    let application = home.join("application");
    fs::create_dir_all(&application).unwrap();
    // Concurrent test processes wait for the one that builds.
    let lock = fs::File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    let parts = ["bin", "lib", "scripts", "package.json", "tsconfig.json", "README.md", "test"];
    let mut parts: Vec<PathBuf> = parts.map(|part| crate_directory().join(part)).to_vec();
    let example = project().join("examples/node");
    parts.extend([addon(), command_line(), example.clone()]);
    let fingerprint = fingerprint(&parts);
    if fs::read_to_string(home.join("built")).is_ok_and(|built| built == fingerprint) {
        return application;
    }
    let pins = fs::read_to_string(crate_directory().join("test/package.json")).unwrap();
    if fs::read_to_string(home.join("pins")).ok().as_ref() != Some(&pins) {
        let _ = fs::remove_dir_all(home.join("frameworks"));
        fs::create_dir_all(home.join("frameworks")).unwrap();
        fs::write(home.join("frameworks/package.json"), &pins).unwrap();
        npm(&home.join("frameworks"), &["install"]);
        fs::write(home.join("pins"), &pins).unwrap();
    }
    let tarballs = pack(&home);
    let _ = fs::remove_dir_all(&application);
    fs::create_dir_all(&application).unwrap();
    fs::write(application.join("package.json"), r#"{ "private": true, "type": "module" }"#).unwrap();
    let mut install = vec!["install", "--offline"];
    install.extend(tarballs.iter().map(|tarball| tarball.to_str().unwrap()));
    npm(&application, &install);
    // The frameworks are found in the directory above, as in a workspace of npm.
    let modules = home.join("node_modules");
    if !modules.exists() {
        std::os::unix::fs::symlink(home.join("frameworks/node_modules"), modules).unwrap();
    }
    for entry in fs::read_dir(crate_directory().join("test")).unwrap() {
        let name = entry.unwrap().file_name();
        if name != "package.json" {
            copy(&crate_directory().join("test").join(&name), &application.join(&name));
        }
    }
    copy(&example, &application.join("support-desk"));
    fs::write(home.join("built"), fingerprint).unwrap();
    application
}
