//! The page on testing policies: its files are written in order, and its commands print the shown output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::recorded_calls::project;

/// The fenced blocks with their info strings, in order.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    for rest in page.split("\n```").skip(1).step_by(2) {
        let (info, text) = rest.split_once('\n').unwrap();
        blocks.push((info.to_owned(), format!("{text}\n")));
    }
    blocks
}

fn run(line: &str, directory: &Path) -> std::process::Output {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_callgate"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    Command::new("bash").args(["-c", line]).env("PATH", path).current_dir(directory).output().unwrap()
}

/// `…` stands for omitted output. A command must fail if a failure is shown.
#[test]
fn every_file_and_command_of_the_page_works() {
    let page = fs::read_to_string(project("docs/testing.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut commands = 0;
    for (info, text) in blocks(&page) {
        match info.split_once(' ') {
            Some((_, file)) => {
                let path = dir.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            None => {
                assert_eq!(info, "console", "a block that no test runs");
                for example in format!("\n{text}").split("\n$ ").skip(1) {
                    let (line, shown) = example.split_once('\n').unwrap_or((example, ""));
                    commands += 1;
                    let output = run(line, dir.path());
                    let printed = String::from_utf8(output.stdout).unwrap();
                    let told = format!("{line}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
                    let status = if shown.contains(" failed") { 1 } else { 0 };
                    assert_eq!(output.status.code(), Some(status), "{told}");
                    for part in shown.split('…').map(str::trim_end).filter(|part| !part.trim().is_empty()) {
                        assert!(printed.contains(part), "missing\n{part}\nin\n{told}");
                    }
                }
                // Remove the failing example before the next commands.
                let wrong = dir.path().join("wrong");
                if wrong.exists() {
                    fs::remove_dir_all(wrong).unwrap();
                }
            }
        }
    }
    assert_eq!(commands, 10, "the commands of the page were not found");
}
