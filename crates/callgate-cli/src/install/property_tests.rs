//! Property tests: install and uninstall are exact inverses for every file, and change nothing else.

use proptest::prelude::*;

use super::clients::{Client, ClientProperties, ConfigSyntax};
use super::config_file::read_entries;
use super::server_entry::{ServerEntry, Standing};
use super::text_edits::{TextEdit, add_gateway, apply_edits, remove_gateway};

const PROGRAM: &str = "/opt/callgate";

#[derive(Debug, Clone)]
struct Style {
    line: &'static str,
    indent: &'static str,
    comments: bool,
    trailing_comma: bool,
}

#[derive(Debug, Clone)]
struct Server {
    /// The URL, if it has one.
    url: Option<&'static str>,
    command: &'static str,
    args: Option<Vec<&'static str>>,
    kind: bool,
    env: bool,
    reversed: bool,
}

fn style() -> impl Strategy<Value = Style> {
    let line = prop::sample::select(vec![" ", "\n", "\r\n"]);
    let indent = prop::sample::select(vec!["", "  ", "\t"]);
    (line, indent, any::<bool>(), any::<bool>()).prop_map(|(line, indent, comments, trailing_comma)| Style {
        line,
        indent,
        comments,
        trailing_comma,
    })
}

fn server() -> impl Strategy<Value = Server> {
    let text = || prop::sample::select(vec!["-y", "", "--", "proxy", "é\\\"x", "--upstream", "two words"]);
    let url = prop::option::weighted(0.3, Just("https://example.com/mcp"));
    let command = prop::sample::select(vec!["npx", "C:\\x\\y.cmd", "ü b"]);
    let args = prop::option::of(prop::collection::vec(text(), 0..4));
    (url, command, args, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(url, command, args, kind, env, reversed)| Server { url, command, args, kind, env, reversed },
    )
}

impl Server {
    /// Its members, written as both formats write values.
    fn members(&self, style: &Style, syntax: ConfigSyntax) -> Vec<(&'static str, String)> {
        let text = |text: &str| callgate::json::Value::from(text).to_string();
        let mut members = Vec::new();
        if self.kind {
            members.push(("type", text(if self.url.is_some() { "http" } else { "stdio" })));
        }
        match (self.url, &self.args) {
            (Some(url), _) => members.push(("url", text(url))),
            (None, None) => members.push(("command", text(self.command))),
            (None, Some(args)) => {
                members.push(("command", text(self.command)));
                let words: Vec<String> = args.iter().map(|arg| text(arg)).collect();
                let end = if style.trailing_comma && !words.is_empty() { "," } else { "" };
                let lead = format!("{}{}", style.line, style.indent);
                members.push(("args", format!("[{lead}{}{end}{lead}]", words.join(&format!(",{lead}")))));
            }
        }
        if self.env {
            let env = if syntax == ConfigSyntax::Json { r#"{ "A": "1" }"# } else { r#"{ A = "1" }"# };
            members.push(("env", env.to_owned()));
        }
        if self.reversed {
            members.reverse();
        }
        members
    }
}

fn json(style: &Style, servers: &[Server]) -> String {
    let Style { line, indent, comments, trailing_comma } = style;
    let note = if *comments { " /* \"command\": */ " } else { "" };
    let end = if *trailing_comma { "," } else { "" };
    let servers: Vec<String> = servers
        .iter()
        .enumerate()
        .map(|(number, server)| {
            let members: Vec<String> = server
                .members(style, ConfigSyntax::Json)
                .into_iter()
                .map(|(key, value)| format!("{line}{indent}{indent}\"{key}\":{note}{value}{note}"))
                .collect();
            format!("{line}{indent}\"s{number}\": {{{}{end}{line}{indent}}}", members.join(","))
        })
        .collect();
    format!("{{{note}\"mcpServers\": {{{}}},{line}\"theme\": \"dark\"{line}}}", servers.join(","))
}

fn toml(style: &Style, servers: &[Server]) -> String {
    // Each TOML key needs its own line.
    let line = if style.line == " " { "\n" } else { style.line };
    let note = if style.comments { " # command = " } else { "" };
    let mut text = format!("theme = \"dark\"{note}{line}");
    for (number, server) in servers.iter().enumerate() {
        text.push_str(&format!("{line}[mcp_servers.s{number}]{note}{line}"));
        for (key, value) in server.members(style, ConfigSyntax::Toml) {
            text.push_str(&format!("{}{key} = {value}{note}{line}", style.indent));
        }
    }
    text
}

fn entries(text: &str, facts: &ClientProperties) -> Vec<ServerEntry> {
    read_entries(text, facts).unwrap_or_else(|broken| panic!("{}: {text}", broken.message))
}

fn out(text: &str, facts: &ClientProperties, backup: Option<&str>) -> String {
    let old = backup.map(|backup| (backup, entries(backup, facts)));
    let edits: Vec<TextEdit> = entries(text, facts)
        .iter()
        .flat_map(|entry| {
            let before = old.as_ref().and_then(|(backup, entries)| {
                entries.iter().find(|old| old.path == entry.path).map(|old| (*backup, old))
            });
            remove_gateway(text, entry, facts, before, PROGRAM).expect("nobody changed it")
        })
        .collect();
    apply_edits(text, edits)
}

/// The command and arguments of each server, or its URL.
fn starts(text: &str, facts: &ClientProperties) -> Vec<Vec<String>> {
    let words = |entry: &ServerEntry| {
        let first = entry.command.as_ref().or(entry.url.as_ref()).map(|member| member.value.clone());
        let args = entry.args.iter().flat_map(|args| args.value.iter().map(|text| text.value.clone()));
        first.into_iter().chain(args).collect()
    };
    entries(text, facts).iter().map(words).collect()
}

fn holds(original: &str, facts: &ClientProperties) {
    let options: Vec<String> = ["--name", "s", "--policies", "/rules dir"].map(str::to_owned).to_vec();
    let edits = entries(original, facts)
        .iter()
        .flat_map(|entry| add_gateway(original, entry, facts, PROGRAM, &options))
        .collect();
    let behind = apply_edits(original, edits);
    for entry in entries(&behind, facts) {
        let status = entry.gateway_status(PROGRAM);
        assert!(
            matches!(&status, Standing::Installed { options: now, .. } if *now == options),
            "{status:?}\n{behind}"
        );
    }
    assert_eq!(out(&behind, facts, Some(original)), original);
    assert_eq!(starts(&out(&behind, facts, None), facts), starts(original, facts), "{behind}");
    let (from, to) = match facts.syntax {
        ConfigSyntax::Json => ("{", "{ \"mine\": [1,2], "),
        ConfigSyntax::Toml => ("theme", "mine = [1,2]\ntheme"),
    };
    let edited = behind.replacen(from, to, 1);
    assert_eq!(out(&edited, facts, Some(original)), original.replacen(from, to, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn restores_json_files(style in style(), servers in prop::collection::vec(server(), 0..4)) {
        holds(&json(&style, &servers), Client::Cursor.properties());
    }

    #[test]
    fn restores_toml_files(style in style(), servers in prop::collection::vec(server(), 0..4)) {
        holds(&toml(&style, &servers), Client::Codex.properties());
    }

    #[test]
    fn never_panics_on_invalid_files(text in ".{0,60}", cut in 0..400_usize, style in style(), server in server()) {
        let servers = [server];
        for (client, whole) in [(Client::Cursor, json(&style, &servers)), (Client::Codex, toml(&style, &servers))] {
            let part: String = whole.chars().take(cut).collect();
            let _ = read_entries(&part, client.properties());
            let _ = read_entries(&format!("{part}{text}"), client.properties());
        }
    }
}
