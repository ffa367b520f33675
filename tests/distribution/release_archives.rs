//! `scripts/release`: what an archive contains, that it is reproducible, and what is reported when it cannot be built.

use std::fs;
use std::path::{Path, PathBuf};

use super::{bash, finished, read, run_tool, write_program};

/// The target of the packaged binary, which the script only uses as a name here.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Runs the script; `programs` come before those in `PATH`.
fn release(arguments: &str, programs: &Path) -> (i32, String, String) {
    let mut command = bash(&format!("scripts/release {arguments}"), programs);
    finished(command.env("SOURCE_DATE_EPOCH", "1700000000").output().unwrap())
}

/// Packages a program that starts the binary of this build, which is much smaller than the binary. Returns the archive.
pub(super) fn package_into(directory: &Path) -> PathBuf {
    let program = directory.join("callgate");
    write_program(&program, &format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_callgate")));
    let output = directory.join("archives");
    let arguments =
        format!("--target {TARGET} --binary '{}' --output '{}'", program.display(), output.display());
    let (code, stdout, stderr) = release(&arguments, directory);
    assert_eq!(code, 0, "{stdout}{stderr}");
    output.join(format!("callgate-{}-{TARGET}.tar.gz", version()))
}

#[test]
fn archive_contains_binary_completions_manual_pages_bundles_and_licences() {
    let home = tempfile::tempdir().unwrap();
    let archive = package_into(home.path());
    let script = format!(
        "cd '{}' && sha256sum --check --strict SHA256SUMS && tar -xzf '{}' && cd callgate-*/ &&
         ./callgate --version && ./callgate check policies/payments && ./callgate test policies/payments &&
         bash -n completions/callgate.bash && ls completions man/man1",
        archive.parent().unwrap().display(),
        archive.display()
    );
    let (code, stdout, stderr) = finished(bash(&script, home.path()).output().unwrap());
    assert_eq!(code, 0, "{stdout}{stderr}");
    let expected = [
        "_callgate",
        "callgate.bash",
        "callgate.fish",
        "callgate.ps1",
        "callgate.1",
        "callgate-approvals-list.1",
    ];
    for line in expected.into_iter().chain([format!("callgate {}", version()).as_str()]) {
        assert!(stdout.lines().any(|printed| printed == line), "{line} is missing in\n{stdout}");
    }
    let unpacked = archive.with_file_name(format!("callgate-{}-{TARGET}", version()));
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        assert_eq!(fs::read_to_string(unpacked.join(file)).unwrap(), read(file), "{file}");
    }
    let licences = fs::read_to_string(unpacked.join("THIRD-PARTY-LICENSES")).unwrap();
    for package in ["serde ", "regex ", "rusqlite ", "clap_builder ", "unicode-ident "] {
        let is_compiled_in = package != "unicode-ident ";
        assert_eq!(licences.lines().any(|line| line.starts_with(package)), is_compiled_in, "{package}");
    }
    assert!(licences.contains("THE SOFTWARE IS PROVIDED \"AS IS\""));
}

#[test]
fn two_runs_write_identical_archives() {
    let homes = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let [first, second] = homes.each_ref().map(|home| fs::read(package_into(home.path())).unwrap());
    assert!(first == second);
}

/// The script explains which toolchain is missing, for a compiler without any standard library for other targets.
#[test]
fn missing_toolchains_are_reported_with_what_to_install() {
    let home = tempfile::tempdir().unwrap();
    let rustc = format!("[ \"$1\" = -vV ] && echo 'host: {TARGET}' || echo /nonexistent");
    write_program(&home.path().join("rustc"), &rustc);
    write_program(&home.path().join("cargo"), "[ \"$1\" = pkgid ] && echo '#callgate-cli@1.2.3'");
    let output = home.path().join("archives");
    let arguments = format!("--target aarch64-unknown-linux-musl --output '{}'", output.display());
    let (code, stdout, stderr) = release(&arguments, home.path());
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    for part in [
        "skipped aarch64-unknown-linux-musl, as its toolchain is missing",
        "rustup target add aarch64-unknown-linux-musl",
        "pip install cargo-zigbuild ziglang",
        "error: not built: aarch64-unknown-linux-musl;",
    ] {
        assert!(stderr.contains(part), "{part} is missing in\n{stderr}");
    }
    let (code, _, stderr) = release(&format!("{arguments} --skip-missing"), home.path());
    assert!(code == 0 && !stderr.contains("error:") && !output.exists(), "{stderr}");
}

#[test]
fn unusable_arguments_are_rejected_before_anything_is_built() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, code, message) in [
        (
            "--target x86_64-pc-windows-msvc",
            2,
            "no releases for `x86_64-pc-windows-msvc`; the targets are: x86_64-",
        ),
        ("--target", 2, "--target needs a value"),
        ("--release", 2, "unknown argument `--release`; see scripts/release --help"),
        ("--all --binary callgate", 2, "--binary packages one target"),
        ("--binary nowhere", 2, "`nowhere` is not an executable file"),
        ("--tag v0.0.0", 1, "the tag is v0.0.0, but the version in Cargo.toml is"),
    ] {
        let (ended, stdout, stderr) = release(arguments, home.path());
        assert_eq!((ended, stdout.as_str()), (code, ""), "{arguments}: {stderr}");
        assert!(stderr.contains(message), "{arguments}: {stderr}");
    }
    let (code, help, _) = release("--help", home.path());
    let options = ["--target", "--all", "--zig", "--skip-missing", "--tag", "--output", "--binary"];
    assert!(code == 0 && options.iter().all(|option| help.contains(&format!("\n  {option}"))), "{help}");
}

#[test]
fn scripts_pass_shellcheck() {
    run_tool("shellcheck", &["scripts/release", "tests/run", ".ci/run", ".ci/dependencies"]);
}
