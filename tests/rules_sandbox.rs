//! Rules from people who are not trusted can be checked: nothing outside of the bundle is read, shown, or told to exist.

use std::fs;
use std::path::{Path, PathBuf};

use callgate::diagnostic::render;
use callgate::{policy, suite};
use proptest::prelude::*;
use tempfile::TempDir;

/// Stands in every file that is not to be read.
const CANARY: &str = "canary-4711";

/// A directory with a bundle, and secrets beside it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in [
            "secret.rhai",
            "secret.json",
            "secret.yaml",
            "outside/secret.rhai",
            "bundle/.hidden.rhai",
            "bundle/.d/s.rhai",
        ] {
            place.write(name, &format!("\"{CANARY}\" {CANARY}"));
        }
        place.write("bundle/notes.txt", CANARY);
        place.write("bundle/scripts/good.rhai", "next(input)");
        place.write("bundle/good.json", "{}");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// All that is said of the bundle, its policy tests included.
    fn told(&self) -> String {
        told(&self.path("bundle"))
    }
}

fn told(bundle: &Path) -> String {
    let paths = [bundle.to_owned()];
    let built = policy::build(&paths);
    let suite = suite::load(&paths);
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
fn files_outside_of_the_bundle_are_not_shown() {
    let place = Place::new();
    let absolute = place.path("secret.rhai").display().to_string();
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
        place.write("bundle/rules.yaml", &rules);
        let told = place.told();
        assert!(told.contains("CG006"), "{rules}: {told}");
        assert!(!told.contains(CANARY), "{rules}: {told}");
    }
    place.write(
        "bundle/rules.yaml",
        &format!(
            "{}{}",
            script("scripts/good.rhai"),
            "  - { id: b, match: t, validate: { schema: { file: good.json } } }\n"
        ),
    );
    assert_eq!(place.told().trim(), "[]");
    place.write("bundle/a.test.yaml", "tools: ../secret.json\ncases: []\n");
    let told = place.told();
    assert!(told.contains("CG006") && !told.contains(CANARY), "{told}");
}

/// Whether a file outside exists is not said either.
#[test]
fn what_is_outside_is_not_told_from_what_does_not_exist() {
    let place = Place::new();
    let about = |file: &str| {
        place.write("bundle/rules.yaml", &script(file));
        place.told().replace(file, "FILE")
    };
    assert_eq!(about("../secret.rhai"), about("../absent.rhai"));
    assert_eq!(about("../outside/secret.rhai"), about("../absentt/secret.rhai"));
    #[cfg(unix)]
    {
        let link = |target: &str| {
            let _ = fs::remove_file(place.path("bundle/link.rhai"));
            std::os::unix::fs::symlink(target, place.path("bundle/link.rhai")).unwrap();
            about("link.rhai")
        };
        assert_eq!(link("../secret.rhai"), link("../absent.rhai"));
        assert_eq!(link("/etc/passwd"), link("/etc/absent"));
        assert!(link("absent.rhai").contains("does not exist"), "within the bundle it is said");
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_bundle_are_not_followed() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.write("bundle/rules.yaml", "policies: []\n");
    for (target, name) in [("../secret.yaml", "linked.yaml"), ("../outside", "linked"), ("/", "root")] {
        symlink(target, place.path("bundle").join(name)).unwrap();
        let told = place.told();
        assert!(told.contains("CG006") && told.contains("leads out of"), "{name}: {told}");
        assert!(!told.contains(CANARY), "{name}: {told}");
        fs::remove_file(place.path("bundle").join(name)).unwrap();
    }
    // Also where the bundle that was given is a link itself, or the file.
    symlink("/", place.path("bundle/all")).unwrap();
    assert!(told(&place.path("bundle/all")).contains("CG006"));
    symlink("../secret.yaml", place.path("bundle/given.yaml")).unwrap();
    let given = told(&place.path("bundle/given.yaml"));
    assert!(given.contains("CG006") && !given.contains(CANARY), "{given}");
    // A pipe is not waited for.
    fs::remove_file(place.path("bundle/all")).unwrap();
    fs::remove_file(place.path("bundle/given.yaml")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(place.path("bundle/pipe.rhai")).status().unwrap();
    assert!(made.success());
    place.write("bundle/rules.yaml", &script("pipe.rhai"));
    assert!(place.told().contains("pipes and devices are not read"));
}

#[cfg(unix)]
#[test]
fn links_within_the_bundle_are_followed() {
    use std::os::unix::fs::symlink;
    // As a mounted configuration map of Kubernetes is laid out.
    let place = Place::new();
    place.write("bundle/..2026/rules.yaml", &script("good.rhai"));
    place.write("bundle/..2026/good.rhai", "next(input)");
    symlink("..2026", place.path("bundle/..data")).unwrap();
    for name in ["rules.yaml", "good.rhai"] {
        symlink(format!("..data/{name}"), place.path("bundle").join(name)).unwrap();
    }
    assert_eq!(place.told().trim(), "[]");
    assert_eq!(told(&place.path("bundle/rules.yaml")).trim(), "[]");
}

/// Between two looks at a file somebody exchanges it for a link.
#[cfg(unix)]
#[test]
fn a_file_that_is_exchanged_while_it_is_read_shows_nothing() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = Place::new();
    place.write("bundle/rules.yaml", &script("scripts/s.rhai"));
    place.write("bundle/scripts/s.rhai", "next(input)");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (file, draft) = (place.path("bundle/scripts/s.rhai"), place.path("bundle/scripts/draft"));
            while !over.load(Ordering::Relaxed) {
                symlink("../../secret.rhai", &draft).unwrap();
                fs::rename(&draft, &file).unwrap();
                fs::write(&draft, "next(input)").unwrap();
                fs::rename(&draft, &file).unwrap();
            }
        });
        let exchanged: Vec<String> = (0..300).map(|_| place.told()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(exchanged.iter().all(|told| !told.contains(CANARY)));
    });
}

#[test]
fn more_files_than_a_bundle_has_are_not_read() {
    let place = Place::new();
    for number in 0..10_001 {
        fs::write(place.path(&format!("bundle/{number}.yaml")), "").unwrap();
    }
    let told = place.told();
    assert!(
        told.contains("CG007") && told.contains("10000 files"),
        "{}",
        told.chars().take(1000).collect::<String>()
    );
    let place = Place::new();
    for number in 0..5 {
        place.write(&format!("bundle/{number}.yaml"), &"# comment\n".repeat(800_000));
    }
    assert!(place.told().contains("CG007"));
}

#[cfg(unix)]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever links, directories and names are in a bundle, nothing of what is outside is shown.
    #[test]
    fn no_bundle_shows_what_is_outside(
        links in prop::collection::vec((0..6usize, "[a-c]{1,2}", 0..8usize), 0..8),
        file in prop::collection::vec(prop::sample::select(vec!["..", ".", "a", "b", "c", "ab", "secret.rhai", "outside", "bundle"]), 1..6),
    ) {
        let place = Place::new();
        for directory in ["a", "b", "c"] {
            fs::create_dir_all(place.path("bundle").join(directory)).unwrap();
        }
        for (within, name, target) in &links {
            let within = ["", "a", "b", "c", "scripts", "ab"][*within];
            let target = ["..", "../..", "/", "../secret.rhai", "../../secret.rhai", "../outside", "a", "../b"][*target];
            let _ = std::os::unix::fs::symlink(target, place.path("bundle").join(within).join(name));
            let _ = std::os::unix::fs::symlink(target, place.path("bundle").join(within).join(format!("{name}.yaml")));
        }
        place.write("bundle/rules.yaml", &script(&file.join("/")));
        let told = place.told();
        prop_assert!(!told.contains(CANARY), "{}", told);
    }
}
