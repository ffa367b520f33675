//! The Containerfile: what can be verified without building the image, which the release workflow does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use super::read;
use crate::fixtures::root;

/// The instructions, each with its arguments on one line.
fn instructions() -> Vec<(String, String)> {
    let text = read("Containerfile").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let instructions = lines.map(|line| {
        let (name, arguments) = line.split_once(' ').unwrap();
        (name.to_owned(), arguments.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    instructions.collect()
}

/// The instructions with this name of the last stage, which is the image.
fn of_image(name: &str) -> Vec<String> {
    let all = instructions();
    let begin = all.iter().rposition(|(name, _)| name == "FROM").unwrap();
    all.into_iter().skip(begin).filter(|(found, _)| found == name).map(|(_, arguments)| arguments).collect()
}

/// The paths of the build context, as `.dockerignore` selects them.
fn context() -> Vec<PathBuf> {
    let text = read(".dockerignore");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines[0], "*", "everything that is not listed is ignored");
    lines[1..].iter().map(|line| PathBuf::from(line.strip_prefix('!').unwrap())).collect()
}

#[test]
fn image_runs_one_binary_as_an_unprivileged_user() {
    assert_eq!(of_image("FROM"), ["scratch"]);
    assert_eq!(of_image("RUN"), [""; 0]);
    assert_eq!(of_image("ENTRYPOINT"), [r#"["/usr/local/bin/callgate"]"#]);
    let user = of_image("USER").last().unwrap().clone();
    let ids: Vec<u32> = user.split(':').map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() == 2 && ids.iter().all(|id| *id > 0), "{user}");
    let labels = of_image("LABEL").join(" ");
    for label in ["title", "description", "licenses"] {
        assert!(labels.contains(&format!("org.opencontainers.image.{label}=\"")), "{label}: {labels}");
    }
}

#[test]
fn base_images_are_pinned_to_a_version() {
    let pinned = Regex::new(r"^(scratch|[\w./-]+:\d+\.\d+\.\d+[\w.-]*( AS \w+)?)$").unwrap();
    for (_, base) in instructions().iter().filter(|(name, _)| name == "FROM") {
        assert!(pinned.is_match(base), "{base}");
    }
}

#[test]
fn copied_files_are_in_the_build_context_or_an_earlier_stage() {
    let stages: Vec<String> = instructions()
        .iter()
        .filter_map(|(_, arguments)| Some(arguments.split_once(" AS ")?.1.to_owned()))
        .collect();
    for (_, arguments) in instructions().into_iter().filter(|(name, _)| name == "COPY") {
        if let Some(from) = arguments.strip_prefix("--from=") {
            assert!(stages.iter().any(|stage| from.starts_with(&format!("{stage} "))), "{arguments}");
            continue;
        }
        let words: Vec<&str> = arguments.split(' ').collect();
        for source in words[..words.len() - 1].iter().filter(|source| **source != ".") {
            assert!(root().join(source).exists(), "{arguments}");
            assert!(context().contains(&PathBuf::from(source)), "{source} is ignored");
        }
    }
}

/// The workflow puts the binaries of a release where the build stage would put them.
#[test]
fn releases_replace_the_build_stage() {
    let sources: Vec<String> = of_image("COPY")
        .iter()
        .filter_map(|copy| copy.strip_prefix("--from=build ").map(str::to_owned))
        .collect();
    assert_eq!(sources.len(), 2);
    let workflow = read(".github/workflows/release.yml");
    assert!(workflow.contains("--build-context build=stage"));
    for source in sources {
        let path = source.split(' ').next().unwrap().replace("$TARGETARCH/callgate", "");
        let directory = Path::new(&path).parent().unwrap().display().to_string();
        let directory = if path.ends_with('/') { path.trim_end_matches('/').to_owned() } else { directory };
        assert!(workflow.contains(&format!("stage{directory}")), "{directory}");
    }
}

/// Cargo reads the workspace from the build context, and all files that are compiled in are there.
#[test]
fn build_context_contains_what_the_binary_is_built_from() {
    let home = tempfile::tempdir().unwrap();
    for path in context() {
        copy(&root().join(&path), &home.path().join(&path));
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"]);
    let output = cargo.current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let included = Regex::new(r#"include_(?:str|bytes)!\("([^"]+)"\)"#).unwrap();
    let mut open = vec![home.path().join("src"), home.path().join("crates")];
    let mut count = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            for found in included.captures_iter(&fs::read_to_string(&path).unwrap()) {
                count += 1;
                let file = path.parent().unwrap().join(&found[1]);
                assert!(
                    file.exists(),
                    "{} includes {}, which .dockerignore ignores",
                    path.display(),
                    &found[1]
                );
            }
        }
    }
    assert!(count >= 5, "{count}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    if from.is_dir() {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            copy(&path, &to.join(path.file_name().unwrap()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}
