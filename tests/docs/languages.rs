//! Checks a block by its language.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use callgate::Engine;
use callgate_mcp::Config;
use callgate_server::NotificationFile;
use serde_json::Value;

use super::markdown::{Block, Page};
use super::shell_commands;
use crate::fixtures::root;
use crate::packages;

/// Checks a program's syntax with the command that runs it.
fn program(command: &mut Command, text: &str) -> Result<(), String> {
    match packages::run(command, text) {
        (_, true) => Ok(()),
        (printed, false) => Err(printed),
    }
}

fn javascript(text: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("example.mjs");
    fs::write(&file, text).unwrap();
    program(Command::new("node").arg("--check").arg(file), "")
}

fn json_lines(text: &str) -> Result<(), String> {
    text.lines()
        .try_for_each(|line| serde_json::from_str::<Value>(line).map(drop))
        .map_err(|error| error.to_string())
}

fn json(text: &str) -> Result<(), String> {
    serde_json::from_str::<Value>(text)
        .map(drop)
        .map_err(|error| error.to_string())
        .or_else(|error| json_lines(text).map_err(|_| error))
}

/// Identity files name key files that do not exist here, so their schema is checked.
fn identities(document: &Value) -> Result<(), String> {
    static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
        let schema = fs::read_to_string(root().join("schemas/identity.schema.json")).unwrap();
        jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap()
    });
    SCHEMA.validate(document).map_err(|error| format!("{}: {error}", error.instance_path()))
}

fn gateway_configuration(file: &Path) -> Result<(), String> {
    let read = Config::read(file, |_| Some("value".to_owned()));
    read.map(drop)
        .map_err(|error| callgate::diagnostic::render::text(&error.diagnostics, &error.sources, false))
}

/// The keys of a server configuration are options of `callgate serve`.
fn server_options(document: &Value) -> Result<(), String> {
    let command = callgate_cli::command();
    let serve = command.find_subcommand("serve").unwrap();
    let is_option = |name: &str| serve.get_arguments().any(|option| option.get_long() == Some(name));
    let unknown = document.as_object().unwrap().keys().find(|key| !is_option(&key.replace('_', "-")));
    unknown.map_or(Ok(()), |key| Err(format!("`callgate serve` has no option for `{key}`")))
}

fn policy_tests(text: &str) -> Result<(), String> {
    let loaded = callgate_policy_tests::load_texts([("page.test.yaml", text)]);
    match loaded.diagnostics.is_empty() {
        true => Ok(()),
        false => Err(callgate::diagnostic::render::text(&loaded.diagnostics, &loaded.sources, false)),
    }
}

/// What a YAML file is for is seen from its keys. `directory` has the files of the page.
fn yaml(block: &Block, directory: &Path) -> Result<(), String> {
    let document: Value = serde_yaml::from_str(&block.text).map_err(|error| error.to_string())?;
    let has = |key: &str| document.get(key).is_some();
    let file = directory.join(block.file_name().unwrap_or("block.yaml"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &block.text).unwrap();
    if has("cases") {
        policy_tests(&block.text)
    } else if has("servers") {
        gateway_configuration(&file)
    } else if has("listen") {
        server_options(&document)
    } else if has("channels") {
        let variable = |_: &str| Some("https://example.com/a-secret-of-24-bytes".to_owned());
        NotificationFile::open(&file, variable).map(drop).map_err(|error| error.to_string())
    } else if has("tokens") || has("certificates") || has("jwt") {
        identities(&document)
    } else if has("policies") {
        Engine::from_paths(&[file]).map(drop).map_err(|error| error.to_string())
    } else {
        Ok(())
    }
}

/// Returns what is wrong with the blocks of a page.
pub fn failures(page: &Page) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    for block in &page.blocks {
        if let Some(name) = block.file_name() {
            let file = directory.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &block.text).unwrap();
        }
    }
    let mut failures = Vec::new();
    for block in &page.blocks {
        let text = &block.text;
        let result = match block.language.as_str() {
            "sh" => match shell_commands::errors(text) {
                errors if errors.is_empty() => Ok(()),
                errors => Err(errors.join("\n")),
            },
            "yaml" => yaml(block, directory.path()),
            "json" => json(text),
            "jsonl" => json_lines(text),
            "toml" => {
                text.parse::<toml_edit::Document<String>>().map(drop).map_err(|error| error.to_string())
            }
            "python" => program(
                Command::new("python3").args(["-c", "import ast, sys; ast.parse(sys.stdin.read())"]),
                text,
            ),
            "js" => javascript(text),
            // Run as commands, as doc tests, by `server::guide`, shown by the site, and not checked.
            "console" | "rust" | "go" | "mermaid" | "text" => Ok(()),
            "" => Err("a block needs a language; `text` if it cannot be checked".to_owned()),
            other => Err(format!("no test checks blocks of `{other}`; use `text`")),
        };
        failures.extend(result.err().map(|error| format!("{}: {error}", page.at(block.line))));
    }
    failures
}
