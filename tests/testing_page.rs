//! The page on testing policies says what is so: its files are written down in their order, and its commands print what it shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::playback::project;

/// The fenced blocks with the words after their fences, in order.
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

/// `…` stands for what is left out; a command fails where a failure is shown.
#[test]
fn every_file_and_every_command_of_the_page_is_true() {
    let page = fs::read_to_string(project("docs/testing.md")).unwrap();
    let desk = tempfile::tempdir().unwrap();
    let mut commands = 0;
    for (info, text) in blocks(&page) {
        match info.split_once(' ') {
            Some((_, file)) => {
                let path = desk.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            None => {
                assert_eq!(info, "console", "a block that nothing tries");
                for example in format!("\n{text}").split("\n$ ").skip(1) {
                    let (line, shown) = example.split_once('\n').unwrap_or((example, ""));
                    commands += 1;
                    let output = run(line, desk.path());
                    let printed = String::from_utf8(output.stdout).unwrap();
                    let told = format!("{line}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
                    let status = if shown.contains(" failed") { 1 } else { 0 };
                    assert_eq!(output.status.code(), Some(status), "{told}");
                    for part in shown.split('…').map(str::trim_end).filter(|part| !part.trim().is_empty()) {
                        assert!(printed.contains(part), "no\n{part}\nin\n{told}");
                    }
                }
                // What is shown to fail is not among what is tested after it.
                let wrong = desk.path().join("wrong");
                if wrong.exists() {
                    fs::remove_dir_all(wrong).unwrap();
                }
            }
        }
    }
    assert_eq!(commands, 10, "the commands of the page were not found");
}
