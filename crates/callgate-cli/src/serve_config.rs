//! `callgate serve --config FILE`: the options of the command in YAML → arguments in front of those on the command line.
//!
//! Each key is the name of an option, so that the file has every option that the command has.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use callgate::diagnostic::{
    Diagnostic, Diagnostics, SourceMap, UNKNOWN_KEY, WRONG_TYPE, closest_match, render,
};
use callgate::policy;
use callgate::source::{self, YamlNode};
use callgate_bundle::BundleSource;

/// The options whose values are paths.
const PATHS: [&str; 14] = [
    "policies",
    "auth",
    "tls-cert",
    "tls-key",
    "tls-client-ca",
    "tools",
    "context",
    "candidate",
    "notify",
    "servers",
    "audit-key",
    "policies-signed-by",
    "policies-dir",
    "policies-credentials",
];
/// What precedes the path in values of `state` and `log`.
const PATH_PREFIXES: [&str; 2] = ["file:", "audit:"];

/// The arguments of `callgate`, with those of the file that `serve --config` names.
///
/// # Errors
/// The file is invalid: a text for the operator.
pub(super) fn with_config_file(arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    if arguments.get(1).map(OsString::as_os_str) != Some(OsStr::new("serve")) {
        return Ok(arguments);
    }
    let Some(file) = config_option(&arguments) else { return Ok(arguments) };
    let mut all: Vec<OsString> = arguments.iter().take(2).cloned().collect();
    all.extend(read(Path::new(&file))?);
    all.extend(arguments.into_iter().skip(2));
    Ok(all)
}

/// The value of `--config`.
fn config_option(arguments: &[OsString]) -> Option<OsString> {
    let mut rest = arguments.iter().skip(2);
    while let Some(argument) = rest.next() {
        if argument == "--config" {
            return rest.next().cloned();
        }
        if let Some(value) = argument.to_str().and_then(|text| text.strip_prefix("--config=")) {
            return Some(value.into());
        }
    }
    None
}

/// Reads a file as arguments.
fn read(path: &Path) -> Result<Vec<OsString>, String> {
    let loaded = source::load_trusted(path);
    let (sources, mut diagnostics) = (loaded.sources, loaded.diagnostics);
    let mut arguments = Vec::new();
    for file in &loaded.files {
        policy::check_version(&file.root, &mut diagnostics);
        let Some(entries) = file.root.entries() else {
            let message = "a server configuration must be a mapping of options";
            diagnostics.push(Diagnostic::new(&WRONG_TYPE, file.root.span, message));
            continue;
        };
        let command = super::command();
        let options = command.find_subcommand("serve").map(known_options).unwrap_or_default();
        for entry in entries.iter().filter(|entry| entry.key != "callgate") {
            let name = entry.key.replace('_', "-");
            if options.contains(&name) {
                add(&mut arguments, &name, &entry.value, path, &mut diagnostics);
            } else {
                let unknown = format!("`callgate serve` has no option `--{name}`");
                let near = closest_match(&name, options.iter().map(String::as_str));
                let help = match near {
                    Some(near) => format!("did you mean `{}`?", near.replace('-', "_")),
                    None => "see `callgate serve --help`".to_owned(),
                };
                diagnostics.push(Diagnostic::new(&UNKNOWN_KEY, entry.key_span, unknown).with_help(help));
            }
        }
    }
    if diagnostics.has_errors() {
        return Err(text(&diagnostics, &sources));
    }
    Ok(arguments)
}

fn text(diagnostics: &Diagnostics, sources: &SourceMap) -> String {
    format!("the server configuration is invalid\n{}", render::text(diagnostics, sources, false).trim_end())
}

/// The long names of the options that a file may have.
fn known_options(command: &clap::Command) -> Vec<String> {
    let names = command.get_arguments().filter_map(|argument| argument.get_long());
    names.filter(|name| !["config", "help", "version"].contains(name)).map(str::to_owned).collect()
}

/// Adds the arguments of an option.
fn add(
    arguments: &mut Vec<OsString>,
    name: &str,
    value: &YamlNode,
    file: &Path,
    diagnostics: &mut Diagnostics,
) {
    let values = value.items().unwrap_or(std::slice::from_ref(value));
    for value in values {
        let option = OsString::from(format!("--{name}"));
        match (value.as_bool(), value.as_str(), value.to_json()) {
            (Some(true), ..) => arguments.push(option),
            (Some(false), ..) => {}
            (None, Some(text), _) => arguments.extend([option, located(name, text, file)]),
            (None, None, number) if number.is_number() => {
                arguments.extend([option, number.to_string().into()]);
            }
            _ => {
                let message =
                    format!("`{name}` must be a string, a number, `true`, `false`, or a list of them");
                diagnostics.push(Diagnostic::new(&WRONG_TYPE, value.span, message));
            }
        }
    }
}

/// A value whose path, if it is one, is relative to the directory of the file.
fn located(name: &str, text: &str, file: &Path) -> OsString {
    let below = file.parent().unwrap_or_else(|| Path::new(""));
    if PATHS.contains(&name) && !(name == "policies" && BundleSource::is_url(text)) {
        return below.join(text).into();
    }
    if !["state", "log"].contains(&name) {
        return text.into();
    }
    for prefix in PATH_PREFIXES {
        if let Some(path) = text.strip_prefix(prefix) {
            let mut value = OsString::from(prefix);
            value.push(below.join(path));
            return value;
        }
    }
    // `stderr`, or a destination with a scheme.
    let is_name = ["stderr", "journald", "syslog"].contains(&text) || text.contains(':');
    if name == "log" && !is_name { below.join(text).into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(file: &str, more: &[&str]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.yaml");
        std::fs::write(&path, file).unwrap();
        let arguments = ["callgate", "serve", "--config"].map(OsString::from).into_iter();
        let arguments = arguments.chain([path.clone().into()]).chain(more.iter().map(OsString::from));
        let below = format!("{}/", folder.path().display());
        let all = with_config_file(arguments.collect())?;
        Ok(all.iter().map(|text| text.to_str().unwrap().replace(&below, "")).collect())
    }

    #[test]
    fn keys_are_options_and_paths_are_relative_to_the_file() {
        let file = "callgate: 1\npolicies: [rules, more.yaml]\nlisten: 127.0.0.1:0\nstate: file:state.db\n\
                    log: [audit:audit.jsonl, calls.jsonl, stderr, 'otlp:http://127.0.0.1:4318']\nmost_connections: 50\nstdio: false\n";
        let found = expanded(file, &["--listen", "127.0.0.1:9"]).unwrap();
        let expected = "callgate serve --policies rules --policies more.yaml --listen 127.0.0.1:0 --state file:state.db \
                        --log audit:audit.jsonl --log calls.jsonl --log stderr --log otlp:http://127.0.0.1:4318 \
                        --most-connections 50 --config serve.yaml --listen 127.0.0.1:9";
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn urls_of_rules_are_no_paths() {
        let file = "policies: https://rules.example.com/payments.json\npolicies_signed_by: keys\npolicies_dir: bundles\n";
        let found = expanded(file, &[]).unwrap();
        let expected = "callgate serve --policies https://rules.example.com/payments.json --policies-signed-by keys \
                        --policies-dir bundles --config serve.yaml";
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn invalid_files_are_explained() {
        assert!(expanded("polices: rules", &[]).unwrap_err().contains("did you mean `policies`?"));
        assert!(expanded("listen: { port: 1 }", &[]).unwrap_err().contains("must be a string"));
        assert!(expanded("- policies", &[]).unwrap_err().contains("must be a mapping"));
        assert!(
            with_config_file(["callgate", "serve", "--config", "none.yaml"].map(OsString::from).into())
                .is_err()
        );
    }

    #[test]
    fn other_commands_are_left_alone() {
        let arguments: Vec<OsString> =
            ["callgate", "proxy", "--config", "gateway.yaml"].map(OsString::from).into();
        assert_eq!(with_config_file(arguments.clone()).unwrap(), arguments);
    }
}
