//! Other people's packages that tests check against: from PyPI and npm, at pinned versions, installed once below `target/`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command to its end; what it printed, and whether it succeeded. The panic says what to install where the program
/// itself is missing.
pub(crate) fn run(command: &mut Command, input: &str) -> (String, bool) {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.unwrap_or_else(|error| {
        panic!("`{program}` could not be run ({error}); the tests need python3 with venv, node and npm")
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

/// The folder of these packages, installed by `install` unless the same were before; a broken installation is begun anew. Who
/// comes while another test or process installs them waits for it.
fn installed(name: &str, pins: &str, install: impl FnOnce(&Path) -> Vec<Command>) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    let folder = target.join("packages");
    let home = folder.join(format!("{name}-{}", callgate::json::digest(&pins.into()).short()));
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(home.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !home.join("installed").exists() {
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        for mut command in install(&home) {
            let (printed, done) = run(&mut command, "");
            assert!(done, "{command:?} could not install packages (is the registry in reach?):\n{printed}");
        }
        fs::write(home.join("installed"), pins).unwrap();
    }
    home
}

/// An environment of Python with what a requirements file names.
pub(crate) fn python(name: &str, requirements: &Path) -> PathBuf {
    installed(name, &fs::read_to_string(requirements).unwrap(), |home| {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(home);
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(requirements);
        vec![venv, pip]
    })
}

/// A folder with what the `package.json` of a folder names, and its lock file pins where it has one.
pub(crate) fn node(name: &str, folder: &Path) -> PathBuf {
    let files = ["package.json", "package-lock.json"].map(|file| folder.join(file));
    let pins: String = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    installed(name, &pins, |home| {
        let files: Vec<_> = files.iter().filter(|file| file.exists()).collect();
        for file in &files {
            fs::copy(file, home.join(file.file_name().unwrap())).unwrap();
        }
        let mut npm = Command::new("npm");
        npm.arg(if files.len() == 2 { "ci" } else { "install" });
        npm.args(["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(home);
        vec![npm]
    })
}
