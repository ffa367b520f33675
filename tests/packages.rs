//! Packages from PyPI and npm that tests use, at pinned versions, installed once below `target/packages`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command to completion. Returns its output, and whether it succeeded. Panics with what to install if the program is
/// missing.
pub fn run(command: &mut Command, input: &str) -> (String, bool) {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.unwrap_or_else(|error| {
        panic!("`{program}` could not be run ({error}); these tests need python3 with venv, node and npm")
    });
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that ends early closes its input; its output says why.
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
            "the packages could not be installed by {command:?} (is the registry reachable?):\n{printed}"
        );
    }
}

/// Returns the directory of these packages below `target/packages`, and calls `install` unless they are installed. A broken installation
/// is repeated.
pub fn installed(name: &str, pins: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| crate::fixtures::root().join("target"));
    let folder = target.join("packages");
    let version = &callgate::json::digest(&pins.into()).short_hex();
    let home = folder.join(format!("{name}-{version}"));
    // Concurrent test processes wait for the one that installs.
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

/// The directory of Debian packages of these names, unpacked and not installed: programs that a test needs and this machine lacks.
pub fn debian(names: &[&str]) -> PathBuf {
    installed(names[0], &format!("debian {}", names.join(" ")), |home| {
        let shell = |script: String| {
            let mut command = Command::new("sh");
            command.args(["-ec", &script]).current_dir(home);
            command
        };
        // With lists of its own, which other processes neither lock nor replace, and which need no rights.
        let apt = r#"apt-get -q -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache""#;
        install(&mut [
            shell("mkdir -p lists/partial cache/archives/partial".to_owned()),
            shell(format!("{apt} update && {apt} download {}", names.join(" "))),
            shell("for package in *.deb; do dpkg -x $package .; done; rm -r lists cache".to_owned()),
        ]);
    })
}

/// A Python virtual environment with the packages of a requirements file.
pub fn python(name: &str, requirements: &Path) -> PathBuf {
    installed(name, &fs::read_to_string(requirements).unwrap(), |home| {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(home);
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(requirements);
        install(&mut [venv, pip]);
    })
}

/// A directory with the packages that a `package-lock.json` pins.
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
