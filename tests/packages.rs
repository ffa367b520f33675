//! Packages of other registries that tests check against, at pinned versions, installed once below `target/packages`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command to its end; what it printed, and whether it succeeded. The panic says what to install where the program
/// itself is missing.
pub fn run(command: &mut Command, input: &str) -> (String, bool) {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.unwrap_or_else(|error| {
        panic!("`{program}` could not be run ({error}); these tests need python3 with venv, node and npm")
    });
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that ends early closes its input; what it printed says why.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (printed.concat(), output.status.success())
}

/// Runs the commands that install packages.
pub fn install(commands: &mut [Command]) {
    for command in commands {
        let (printed, done) = run(command, "");
        assert!(
            done,
            "the packages could not be installed by {command:?} (is the registry in reach?):\n{printed}"
        );
    }
}

/// The folder below `target/packages` of these packages, installed by `install` unless the same were before; a broken installation is begun anew.
pub fn installed(name: &str, pins: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    let folder = target.join("packages");
    let version = &callgate::json::digest(&pins.into()).short();
    let home = folder.join(format!("{name}-{version}"));
    // Tests that run at once in processes of their own wait for the one that installs.
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(folder.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !home.join("installed").exists() {
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        install(&home);
        fs::write(home.join("installed"), pins).unwrap();
    }
    home
}

/// An environment of Python with what a requirements file names.
pub fn python(name: &str, requirements: &Path) -> PathBuf {
    installed(name, &fs::read_to_string(requirements).unwrap(), |home| {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(home);
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(requirements);
        install(&mut [venv, pip]);
    })
}

/// A folder with what the `package-lock.json` of a folder pins.
pub fn node(name: &str, folder: &Path) -> PathBuf {
    let lock = fs::read_to_string(folder.join("package-lock.json")).unwrap();
    installed(name, &lock, |home| {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(folder.join(file), home.join(file)).unwrap();
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(home);
        install(&mut [npm]);
    })
}
