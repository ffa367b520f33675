//! Files that rules files refer to: the same checks apply as to rules files, and problems are reported at the reference.

use std::fs;
use std::path::Path;

use callgate::Engine;
use tempfile::TempDir;

/// Rules that refer to a file, with the file's name and the position of the reference.
const REFERENCES: [(&str, &str, &str); 2] = [
    (
        "policies:\n  - { id: a, match: t, validate: { schema: { file: drawn.json } } }",
        "drawn.json",
        "rules.yaml:2:52",
    ),
    ("policies:\n  - { id: a, match: t, around: { file: drawn.rhai } }", "drawn.rhai", "rules.yaml:2:40"),
];

/// The load errors of rules that refer to a file.
fn problems(rules: &str, prepare: impl FnOnce(&TempDir)) -> String {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rules.yaml"), rules).unwrap();
    prepare(&directory);
    Engine::from_paths(&[directory.path().join("rules.yaml")]).unwrap_err().to_string()
}

fn assert_problems(prepare: impl Fn(&Path), expected: [&str; 3]) {
    for (rules, file, place) in REFERENCES {
        let problems = problems(rules, |directory| prepare(&directory.path().join(file)));
        for words in expected.map(|words| words.replace("DRAWN", file)).into_iter().chain([place.to_owned()])
        {
            let words = words.as_str();
            assert!(problems.contains(words), "{words}: {problems}");
        }
    }
}

fn assert_problems_of_content(content: &[u8], expected: [&str; 3]) {
    assert_problems(|file| fs::write(file, content).unwrap(), expected);
}

/// Reading a pipe without a writer would block forever.
#[cfg(unix)]
#[test]
fn pipes_devices_and_directories_are_not_read() {
    let pipe = |file: &Path| {
        let made = std::process::Command::new("mkfifo").arg(file).status().unwrap();
        assert!(made.success());
    };
    assert_problems(pipe, ["CG001", "DRAWN` is not a regular file", "pipes and devices are not supported"]);
    let device = |file: &Path| std::os::unix::fs::symlink("/dev/zero", file).unwrap();
    assert_problems(device, ["CG006", "DRAWN` is not a file of the bundle", "below the rules directory"]);
    let inside = |file: &Path| fs::create_dir(file).unwrap();
    assert_problems(inside, ["CG001", "DRAWN` is a directory", "use the path of a file in it"]);
}

#[test]
fn rejects_missing_too_large_and_non_utf8_files() {
    assert_problems(
        |_| {},
        ["CG001", "DRAWN` does not exist", "relative to the directory of the file that contains them"],
    );
    assert_problems_of_content(
        &b" ".repeat((8 << 20) + 1),
        ["CG004", "DRAWN` is larger than 8 MiB", "use a smaller file"],
    );
    let latin1 = b"one\ncaf\xe9";
    assert_problems_of_content(latin1, ["CG005", "the byte 0xE9 in line 2 of `", "save the file as UTF-8"]);
    assert_problems_of_content(
        b"\xff\xfe{\0}\0",
        ["CG005", "the byte 0xFF in line 1 of `", "the file is in UTF-16"],
    );
}

#[test]
fn ignores_a_byte_order_mark() {
    for ((rules, file, _), text) in REFERENCES.into_iter().zip(["{}", "next(input)"]) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("rules.yaml"), rules).unwrap();
        let revision = |mark: &str| {
            fs::write(directory.path().join(file), format!("{mark}{text}")).unwrap();
            Engine::from_paths(&[directory.path().to_owned()]).unwrap().revision()
        };
        assert_eq!(revision("\u{feff}"), revision(""), "{rules}");
    }
}
