//! Files that are named in rules files are read with the same care as these, and problems stand where their name stands.

use std::fs;
use std::path::Path;

use callgate::Engine;
use tempfile::TempDir;

/// Ways to draw on a file, each with the file and the place of its name.
const DRAWING: [(&str, &str, &str); 2] = [
    (
        "policies:\n  - { id: a, match: t, validate: { schema: { file: drawn.json } } }",
        "drawn.json",
        "rules.yaml:2:52",
    ),
    ("policies:\n  - { id: a, match: t, around: { file: drawn.rhai } }", "drawn.rhai", "rules.yaml:2:40"),
];

/// What is told of rules that draw on a file.
fn problems(rules: &str, prepare: impl FnOnce(&TempDir)) -> String {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rules.yaml"), rules).unwrap();
    prepare(&directory);
    Engine::from_paths(&[directory.path().join("rules.yaml")]).unwrap_err().to_string()
}

fn told(prepare: impl Fn(&Path), expected: [&str; 3]) {
    for (rules, drawn, place) in DRAWING {
        let problems = problems(rules, |directory| prepare(&directory.path().join(drawn)));
        for words in expected.map(|words| words.replace("DRAWN", drawn)).into_iter().chain([place.to_owned()])
        {
            let words = words.as_str();
            assert!(problems.contains(words), "{words}: {problems}");
        }
    }
}

fn told_of(content: &[u8], expected: [&str; 3]) {
    told(|drawn| fs::write(drawn, content).unwrap(), expected);
}

/// A pipe that nobody writes to would keep its reader waiting for ever.
#[cfg(unix)]
#[test]
fn pipes_devices_and_directories_are_not_read() {
    let pipe = |drawn: &Path| {
        let made = std::process::Command::new("mkfifo").arg(drawn).status().unwrap();
        assert!(made.success());
    };
    told(pipe, ["CG001", "DRAWN` is no file", "pipes and devices are not read"]);
    let device = |drawn: &Path| std::os::unix::fs::symlink("/dev/zero", drawn).unwrap();
    told(device, ["CG006", "DRAWN` is not a file of the bundle", "below the directory of the rules"]);
    let inside = |drawn: &Path| fs::create_dir(drawn).unwrap();
    told(inside, ["CG001", "DRAWN` is a directory", "name a file in it"]);
}

#[test]
fn a_file_that_is_missing_too_large_or_no_text_is_refused() {
    told(|_| {}, ["CG001", "DRAWN` does not exist", "starts at the directory of the file that names it"]);
    told_of(&b" ".repeat((8 << 20) + 1), ["CG004", "DRAWN` is larger than 8 MiB", "name a smaller file"]);
    let latin1 = b"one\ncaf\xe9";
    told_of(latin1, ["CG005", "the byte 0xE9 in line 2 of `", "save the file as UTF-8"]);
    told_of(b"\xff\xfe{\0}\0", ["CG005", "the byte 0xFF in line 1 of `", "the file is in UTF-16"]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    for ((rules, drawn, _), text) in DRAWING.into_iter().zip(["{}", "next(input)"]) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("rules.yaml"), rules).unwrap();
        let revision = |mark: &str| {
            fs::write(directory.path().join(drawn), format!("{mark}{text}")).unwrap();
            Engine::from_paths(&[directory.path().to_owned()]).unwrap().revision()
        };
        assert_eq!(revision("\u{feff}"), revision(""), "{rules}");
    }
}
