//! Checking untrusted rules: nothing outside the bundle is read or shown, nor whether it exists.

use std::fs;
use std::path::{Path, PathBuf};

use callgate::diagnostic::render;
use callgate::policy;
use proptest::prelude::*;
use tempfile::TempDir;

/// Occurs in every file that must not be read.
const CANARY: &str = "canary-4711";

/// A directory with a bundle, and secrets beside it.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        for name in [
            "secret.rhai",
            "secret.json",
            "secret.yaml",
            "outside/secret.rhai",
            "bundle/.hidden.rhai",
            "bundle/.d/s.rhai",
        ] {
            sandbox.write(name, &format!("\"{CANARY}\" {CANARY}"));
        }
        sandbox.write("bundle/notes.txt", CANARY);
        sandbox.write("bundle/scripts/good.rhai", "next(input)");
        sandbox.write("bundle/good.json", "{}");
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// All diagnostics of the bundle and its policy tests.
    fn diagnostics(&self) -> String {
        diagnostics(&self.path("bundle"))
    }
}

fn diagnostics(bundle: &Path) -> String {
    let paths = [bundle.to_owned()];
    let built = policy::build(&paths);
    let suite = callgate_policy_tests::load(&paths);
    let mut told = render::text(&built.diagnostics, &built.sources, false);
    told += &render::text(&suite.diagnostics, &suite.sources, false);
    told += &render::json(&built.diagnostics, &built.sources).unwrap();
    told
}

fn script(file: &str) -> String {
    format!("policies:\n  - {{ id: a, match: t, around: {{ file: \"{file}\" }} }}\n")
}

fn schema(file: &str) -> String {
    format!("policies:\n  - {{ id: a, match: t, validate: {{ schema: {{ file: \"{file}\" }} }} }}\n")
}

#[test]
fn files_outside_the_bundle_are_not_shown() {
    let sandbox = Sandbox::new();
    let absolute = sandbox.path("secret.rhai").display().to_string();
    let in_scripts = [
        "/proc/self/environ",
        "../secret.rhai",
        &absolute,
        "../outside/secret.rhai",
        "scripts/../../secret.rhai",
    ];
    let hidden = [".hidden.rhai", ".d/s.rhai", "notes.txt"];
    for rules in
        in_scripts.into_iter().chain(hidden).map(script).chain(["../secret.json", "/etc/passwd"].map(schema))
    {
        sandbox.write("bundle/rules.yaml", &rules);
        let told = sandbox.diagnostics();
        assert!(told.contains("CG006"), "{rules}: {told}");
        assert!(!told.contains(CANARY), "{rules}: {told}");
    }
    sandbox.write(
        "bundle/rules.yaml",
        &format!(
            "{}{}",
            script("scripts/good.rhai"),
            "  - { id: b, match: t, validate: { schema: { file: good.json } } }\n"
        ),
    );
    assert_eq!(sandbox.diagnostics().trim(), "[]");
    sandbox.write("bundle/a.test.yaml", "tools: ../secret.json\ncases: []\n");
    let told = sandbox.diagnostics();
    assert!(told.contains("CG006") && !told.contains(CANARY), "{told}");
}

/// Diagnostics do not reveal whether a file outside exists.
#[test]
fn outside_files_are_indistinguishable_from_missing_ones() {
    let sandbox = Sandbox::new();
    let about = |file: &str| {
        sandbox.write("bundle/rules.yaml", &script(file));
        sandbox.diagnostics().replace(file, "FILE")
    };
    assert_eq!(about("../secret.rhai"), about("../absent.rhai"));
    assert_eq!(about("../outside/secret.rhai"), about("../absentt/secret.rhai"));
    #[cfg(unix)]
    {
        let link = |target: &str| {
            let _ = fs::remove_file(sandbox.path("bundle/link.rhai"));
            std::os::unix::fs::symlink(target, sandbox.path("bundle/link.rhai")).unwrap();
            about("link.rhai")
        };
        assert_eq!(link("../secret.rhai"), link("../absent.rhai"));
        assert_eq!(link("/etc/passwd"), link("/etc/absent"));
        assert!(
            link("absent.rhai").contains("does not exist"),
            "within the bundle a missing file is reported"
        );
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_bundle_are_not_followed() {
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::new();
    sandbox.write("bundle/rules.yaml", "policies: []\n");
    for (target, name) in [("../secret.yaml", "linked.yaml"), ("../outside", "linked"), ("/", "root")] {
        symlink(target, sandbox.path("bundle").join(name)).unwrap();
        let told = sandbox.diagnostics();
        assert!(told.contains("CG006") && told.contains("leads out of"), "{name}: {told}");
        assert!(!told.contains(CANARY), "{name}: {told}");
        fs::remove_file(sandbox.path("bundle").join(name)).unwrap();
    }
    // Also if the given bundle or file itself is a link.
    symlink("/", sandbox.path("bundle/all")).unwrap();
    assert!(diagnostics(&sandbox.path("bundle/all")).contains("CG006"));
    symlink("../secret.yaml", sandbox.path("bundle/given.yaml")).unwrap();
    let given = diagnostics(&sandbox.path("bundle/given.yaml"));
    assert!(given.contains("CG006") && !given.contains(CANARY), "{given}");
    // A pipe does not block.
    fs::remove_file(sandbox.path("bundle/all")).unwrap();
    fs::remove_file(sandbox.path("bundle/given.yaml")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(sandbox.path("bundle/pipe.rhai")).status().unwrap();
    assert!(made.success());
    sandbox.write("bundle/rules.yaml", &script("pipe.rhai"));
    assert!(sandbox.diagnostics().contains("pipes and devices are not supported"));
}

#[cfg(unix)]
#[test]
fn links_within_the_bundle_are_followed() {
    use std::os::unix::fs::symlink;
    // The layout of a Kubernetes ConfigMap volume.
    let sandbox = Sandbox::new();
    sandbox.write("bundle/..2026/rules.yaml", &script("good.rhai"));
    sandbox.write("bundle/..2026/good.rhai", "next(input)");
    symlink("..2026", sandbox.path("bundle/..data")).unwrap();
    for name in ["rules.yaml", "good.rhai"] {
        symlink(format!("..data/{name}"), sandbox.path("bundle").join(name)).unwrap();
    }
    assert_eq!(sandbox.diagnostics().trim(), "[]");
    assert_eq!(diagnostics(&sandbox.path("bundle/rules.yaml")).trim(), "[]");
}

/// Race condition (TOCTOU): the file is replaced by a link while it is read.
#[cfg(unix)]
#[test]
fn file_replaced_during_reading_shows_nothing() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    let sandbox = Sandbox::new();
    sandbox.write("bundle/rules.yaml", &script("scripts/s.rhai"));
    sandbox.write("bundle/scripts/s.rhai", "next(input)");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (file, draft) = (sandbox.path("bundle/scripts/s.rhai"), sandbox.path("bundle/scripts/draft"));
            while !over.load(Ordering::Relaxed) {
                symlink("../../secret.rhai", &draft).unwrap();
                fs::rename(&draft, &file).unwrap();
                fs::write(&draft, "next(input)").unwrap();
                fs::rename(&draft, &file).unwrap();
            }
        });
        let exchanged: Vec<String> = (0..300).map(|_| sandbox.diagnostics()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(exchanged.iter().all(|told| !told.contains(CANARY)));
    });
}

#[test]
fn bundles_with_too_many_files_are_rejected() {
    let sandbox = Sandbox::new();
    for number in 0..10_001 {
        fs::write(sandbox.path(&format!("bundle/{number}.yaml")), "").unwrap();
    }
    let told = sandbox.diagnostics();
    assert!(
        told.contains("CG007") && told.contains("10000 files"),
        "{}",
        told.chars().take(1000).collect::<String>()
    );
    let sandbox = Sandbox::new();
    for number in 0..5 {
        sandbox.write(&format!("bundle/{number}.yaml"), &"# comment\n".repeat(800_000));
    }
    assert!(sandbox.diagnostics().contains("CG007"));
}

#[cfg(unix)]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any links, directories and names in a bundle, nothing outside is shown.
    #[test]
    fn no_bundle_shows_outside_content(
        links in prop::collection::vec((0..6usize, "[a-c]{1,2}", 0..8usize), 0..8),
        file in prop::collection::vec(prop::sample::select(vec!["..", ".", "a", "b", "c", "ab", "secret.rhai", "outside", "bundle"]), 1..6),
    ) {
        let sandbox = Sandbox::new();
        for directory in ["a", "b", "c"] {
            fs::create_dir_all(sandbox.path("bundle").join(directory)).unwrap();
        }
        for (within, name, target) in &links {
            let within = ["", "a", "b", "c", "scripts", "ab"][*within];
            let target = ["..", "../..", "/", "../secret.rhai", "../../secret.rhai", "../outside", "a", "../b"][*target];
            let _ = std::os::unix::fs::symlink(target, sandbox.path("bundle").join(within).join(name));
            let _ = std::os::unix::fs::symlink(target, sandbox.path("bundle").join(within).join(format!("{name}.yaml")));
        }
        sandbox.write("bundle/rules.yaml", &script(&file.join("/")));
        let told = sandbox.diagnostics();
        prop_assert!(!told.contains(CANARY), "{}", told);
    }
}
