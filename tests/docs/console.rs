//! Runs the `console` blocks of a page as a reader would: in one shell, in order, in a directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;

use super::markdown::Page;
use crate::fixtures::root;

/// A command of a page.
struct Example {
    line: usize,
    command: String,
    shown: String,
    status: i32,
}

/// The lines of one command: continued by `\`, and here-documents up to their end.
fn command<'a>(first: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    static HERE_DOCUMENT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"<<-?\s*['"]?(\w+)['"]?"#).unwrap());
    let mut command = first.to_owned();
    while command.ends_with('\\') {
        let next = lines.next().unwrap_or_default();
        command = format!("{command}\n{next}");
    }
    if let Some(end) = HERE_DOCUMENT.captures(first).map(|captures| captures[1].to_owned()) {
        for line in lines {
            command = format!("{command}\n{line}");
            if line == end {
                break;
            }
        }
    }
    command
}

/// The commands of a block. `None` if its first line is not a command.
fn examples(text: &str, first_line: usize, status: i32) -> Option<Vec<Example>> {
    let mut examples: Vec<Example> = Vec::new();
    let total = text.lines().count();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(first) = line.strip_prefix("$ ") {
            let line = first_line + total - lines.clone().count();
            let command = command(first, &mut lines);
            examples.push(Example { line, command, shown: String::new(), status: 0 });
        } else {
            let example = examples.last_mut()?;
            example.shown = format!("{}{line}\n", example.shown);
        }
    }
    examples.last_mut()?.status = status;
    Some(examples)
}

/// The command as it runs here. What a reader runs in a clone runs in this one, with the binary of this build.
fn in_this_build(command: &str) -> String {
    match command.strip_prefix("cargo run -- ") {
        Some(arguments) => format!("(cd '{}' && callgate {arguments})", root().display()),
        None if command == "tests/run" => format!("test -x '{}'", root().join(command).display()),
        None => command.to_owned(),
    }
}

/// What differs from run to run: times, durations, and what depends on keys that are random.
fn without_variable_parts(text: &str) -> String {
    static VARIABLE: LazyLock<[(Regex, &str); 7]> = LazyLock::new(|| {
        [
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z)", "[time]"),
            ("digest [0-9a-f]{16}", "digest [digest]"),
            ("revision [0-9a-f]{12}", "revision [revision]"),
            (r#""revision":"[0-9a-f]{64}""#, r#""revision":"[revision]""#),
            (r#""duration_us":\d+"#, r#""duration_us":[duration]"#),
            // The column of durations is as wide as the longest.
            (r" +\d+(\.\d+)? (µs|ms|s)\b", " [duration]"),
            (" +TIME", " TIME"),
        ]
        .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
    });
    VARIABLE
        .iter()
        .fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

/// Whether the printed output is the shown one, in which `…` stands for anything.
fn is_shown(printed: &str, shown: &str) -> bool {
    if shown.trim().is_empty() {
        return true;
    }
    let pattern = regex::escape(without_variable_parts(shown).trim_end());
    let lines: Vec<&str> = pattern.split('\n').collect();
    let mut whole = String::new();
    for (index, line) in lines.iter().enumerate() {
        let is_last = index + 1 == lines.len();
        match (*line, is_last) {
            ("…", true) => whole += r"(?s:.*)",
            ("…", false) => whole += r"(?s:.*\n)??",
            (line, _) => {
                whole += &line.replace('…', r"(?s:.*?)");
                let precedes_omitted_end = index + 2 == lines.len() && lines[index + 1] == "…";
                whole += if is_last {
                    ""
                } else if precedes_omitted_end {
                    r"\n?"
                } else {
                    r"\n"
                };
            }
        }
    }
    Regex::new(&format!("^{whole}$")).unwrap().is_match(without_variable_parts(printed).trim_end())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// The page's commands as one script. Each command's output and exit status go to numbered files in `results`.
fn script(page: &Page, results: &Path, failures: &mut Vec<String>) -> (String, Vec<Example>) {
    let mut script = String::from("trap 'kill $(jobs -p) 2>/dev/null' EXIT\n");
    let mut run: Vec<Example> = Vec::new();
    for block in &page.blocks {
        if let Some(name) = block.file_name() {
            let contents = results.join(format!("file-{}", block.line));
            fs::write(&contents, &block.text).unwrap();
            script += &format!("mkdir -p \"$(dirname {name})\" && cp '{}' {name}\n", contents.display());
        } else if block.language == "console" {
            let Some(examples) = examples(&block.text, block.line, block.status()) else {
                failures.push(format!("{}: a `console` block begins with `$ `", page.at(block.line)));
                continue;
            };
            for example in examples {
                let (command, number) = (in_this_build(&example.command), run.len());
                let results = results.display();
                script += &format!(
                    "{{ {command}\n}} > '{results}/{number}' 2>&1\necho $? > '{results}/{number}.status'\n"
                );
                run.push(example);
            }
        }
    }
    (script, run)
}

/// Runs all commands of a page. Returns what is not as the page shows it.
pub fn failures(page: &Page) -> Vec<String> {
    let mut failures = Vec::new();
    let (home, results) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (script, examples) = script(page, results.path(), &mut failures);
    if examples.is_empty() {
        return failures;
    }
    let bundles = root().join("policies");
    let names_a_bundle = |example: &Example| {
        let named = example.command.split("policies/").skip(1);
        named.filter_map(|rest| rest.split([' ', '/']).next()).any(|name| bundles.join(name).is_dir())
    };
    if examples.iter().any(names_a_bundle) {
        copy(&bundles, &home.path().join("policies"));
    }
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_callgate"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let ended = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", path)
        .env("HOME", home.path())
        .env_remove("CALLGATE_KEYS")
        .env_remove("CLICOLOR_FORCE")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ended.stderr.is_empty(), "{}: {}", page.path.display(), String::from_utf8_lossy(&ended.stderr));
    for (number, example) in examples.iter().enumerate() {
        let read = |name: String| fs::read_to_string(results.path().join(name));
        let (printed, status) = (read(number.to_string()).unwrap(), read(format!("{number}.status")));
        let status: i32 = status.unwrap().trim().parse().unwrap();
        let Example { command, shown, .. } = example;
        let at = page.at(example.line);
        if status != example.status {
            failures.push(format!(
                "{at}: `{command}` ends with status {status}, not {}:\n{printed}",
                example.status
            ));
        } else if !is_shown(&printed, shown) {
            failures.push(format!("{at}: `{command}` prints\n{printed}\nbut the page shows\n{shown}"));
        }
    }
    failures
}

#[test]
fn omitted_output_is_anything_and_the_rest_is_exact() {
    let printed = "one\ntwo\nthree 3\nfour\n";
    for shown in [
        "",
        "one\ntwo\nthree 3\nfour\n",
        "…\nthree 3\nfour",
        "one\n…",
        "one\n…\nfour",
        "one\ntwo\n…three …\nfour\n…",
    ] {
        assert!(is_shown(printed, shown), "{shown}");
    }
    for shown in ["two\n…", "…\nthree 3", "one\nthree 3\n…", "one\n…\ntwo", "one.two.…"] {
        assert!(!is_shown(printed, shown), "{shown}");
    }
    assert!(is_shown(
        "until 2027-01-01 00:00 UTC (digest 0123456789abcdef)",
        "until 2026-11-22 18:16 UTC (digest aaaaaaaaaaaaaaaa)"
    ));
}

#[test]
fn commands_end_where_their_lines_end() {
    let text = "$ cat > a <<'EOF'\n$ not a command\nEOF\n$ callgate \\\n  check a\nclean\n";
    let found = examples(text, 10, 1).unwrap();
    let commands: Vec<(usize, &str, &str, i32)> =
        found.iter().map(|one| (one.line, one.command.as_str(), one.shown.as_str(), one.status)).collect();
    assert_eq!(
        commands,
        [(11, "cat > a <<'EOF'\n$ not a command\nEOF", "", 0), (14, "callgate \\\n  check a", "clean\n", 1)]
    );
    assert!(examples("clean\n", 1, 0).is_none());
}
