//! `callgate install` and `uninstall`: one file of `install/` is one case, named by its client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use callgate::json::Value;

use super::{Desk, Ended, GOOD, settings};

const BACKUP: &str = ".before-callgate";

/// A desk with a client's file and what it is put behind.
fn desk(name: &str, text: &[u8]) -> Desk {
    let desk = Desk::new(&[("rules.yaml", GOOD), ("context.json", r#"{"principal":"ana"}"#)]);
    fs::write(desk.0.path().join(name), text).unwrap();
    desk
}

impl Desk {
    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    fn install(&self, client: &str, name: &str, more: &[&str]) -> Ended {
        let usual = ["install", client, "--file", name, "--policies", "rules.yaml"];
        self.run(&[&usual[..], more].concat())
    }

    fn uninstall(&self, client: &str, name: &str) -> Ended {
        self.run(&["uninstall", client, "--file", name])
    }

    /// What was seen, with the places of this run masked.
    fn masked(&self, text: &str) -> String {
        let here = fs::canonicalize(self.0.path()).unwrap();
        text.replace(env!("CARGO_BIN_EXE_callgate"), "/opt/callgate").replace(here.to_str().unwrap(), "/desk")
    }
}

#[test]
fn each_file_is_edited_and_given_back() {
    let mut settings = settings();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/cli/install"));
    settings.set_snapshot_suffix("");
    settings.bind(|| {
        insta::glob!("install/*", |path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let (client, _) = name.split_once("__").unwrap();
            let original = fs::read(path).unwrap();
            let desk = desk(name, &original);
            let more = ["--context", "context.json", "--state", "file:state.db"];
            let shown = desk.install(client, name, &[&more[..], &["--dry-run"]].concat());
            assert_eq!(desk.bytes(name), original, "--dry-run writes nothing");
            let done = desk.install(client, name, &more);
            assert_eq!(done.code, shown.code);
            insta::assert_snapshot!(desk.masked(&format!("{}\n{}", shown.shown(), done.shown())));
            given_back(client, name, &original, &more);
            let crlf = String::from_utf8(original).unwrap().replace('\n', "\r\n");
            given_back(client, name, crlf.as_bytes(), &more);
            given_back(client, name, format!("\u{feff}{crlf}").as_bytes(), &more);
        });
    });
}

fn given_back(client: &str, name: &str, original: &[u8], more: &[&str]) {
    let desk = desk(name, original);
    let backup = format!("{name}{BACKUP}");
    let first = desk.install(client, name, more);
    let behind = desk.bytes(name);
    let is_changed = behind != original;
    if is_changed {
        assert_eq!(desk.bytes(&backup), original);
    }
    let again = desk.install(client, name, more);
    assert_eq!((again.code, desk.bytes(name) == behind), (first.code, true), "{}", again.shown());
    let undone = desk.uninstall(client, name);
    assert_eq!(desk.text(name), String::from_utf8_lossy(original), "{}", undone.shown());
    assert!(!is_changed || !desk.0.path().join(&backup).exists(), "{}", undone.shown());
}

const TWO: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"] },
    "bare": { "command": "bare" }
  }
}
"#;

#[test]
fn changes_of_others_stay() {
    for (from, to) in [
        // Beside the servers, in a server, in what was put there, and the whole file written anew.
        ("{\n  \"mcpServers\"", "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\""),
        ("\"bare\": {", "\"new\": { \"command\": \"new\" },\n    \"bare\": { \"env\": { \"A\": \"1\" },"),
        ("\"-y\", \"files\"", "\"-y\", \"files\", \"/more\""),
        ("\"npx\"", "\"pnpx\""),
    ] {
        let desk = desk("mcp.json", TWO.as_bytes());
        desk.install("cursor", "mcp.json", &[]);
        let edited = desk.text("mcp.json").replacen(from, to, 1);
        fs::write(desk.0.path().join("mcp.json"), edited).unwrap();
        let undone = desk.uninstall("cursor", "mcp.json");
        assert_eq!(undone.code, Some(0));
        assert_eq!(desk.text("mcp.json"), TWO.replacen(from, to, 1), "{from}");
        assert!(undone.stdout.contains(BACKUP), "the backup is another file now: {}", undone.shown());
    }
}

#[test]
fn a_server_that_was_changed_too_much_is_left_and_named() {
    let original = r#"{ "mcpServers": { "r": { "url": "https://r.example/mcp" } } }"#;
    let desk = desk("mcp.json", original.as_bytes());
    desk.install("cursor", "mcp.json", &[]);
    let edited = desk.text("mcp.json").replace(r#", "args""#, r#", "env": {}, "args""#);
    fs::write(desk.0.path().join("mcp.json"), &edited).unwrap();
    let undone = desk.uninstall("cursor", "mcp.json");
    assert_eq!((undone.code, desk.text("mcp.json")), (Some(1), edited));
    assert!(undone.stdout.contains("write `url`: `https://r.example/mcp`"), "{}", undone.shown());
}

#[test]
fn a_file_that_its_client_wrote_anew_is_taken_out_by_what_it_says() {
    let original = r#"{"mcpServers":{"a":{"command":"x","args":["1"]},"b":{"command":"y"},"c":{"type":"http","url":"https://c.example/mcp"}}}"#;
    let desk = desk("mcp.json", original.as_bytes());
    desk.install("cursor", "mcp.json", &[]);
    let value: Value = callgate::json::from_str(&desk.text("mcp.json")).unwrap();
    let anew = callgate::json::to_string_pretty(&value).unwrap();
    fs::write(desk.0.path().join("mcp.json"), anew).unwrap();
    fs::remove_file(desk.0.path().join(format!("mcp.json{BACKUP}"))).unwrap();
    assert_eq!(desk.uninstall("cursor", "mcp.json").code, Some(0));
    let mut expected: Value = callgate::json::from_str(original).unwrap();
    // Nobody knows any more that there were none.
    expected["mcpServers"]["b"]["args"] = Value::Array(Vec::new());
    assert_eq!(callgate::json::from_str::<Value>(&desk.text("mcp.json")).unwrap(), expected);
}

#[test]
fn done_again_it_takes_in_new_servers_and_other_options() {
    let desk = desk("mcp.json", TWO.as_bytes());
    desk.install("cursor", "mcp.json", &["--server", "files"]);
    assert!(desk.text("mcp.json").contains(r#""bare": { "command": "bare" }"#));
    let more = desk.install("cursor", "mcp.json", &["--pins", "callgate.lock"]);
    assert_eq!(more.code, Some(0));
    let text = desk.text("mcp.json");
    assert_eq!(text.matches("\"--pins\"").count(), 2, "{text}");
    assert_eq!(text.matches("\"proxy\"").count(), 2, "{text}");
    assert_eq!(desk.text(&format!("mcp.json{BACKUP}")), TWO);
    let one = desk.run(&["uninstall", "cursor", "--file", "mcp.json", "--server", "bare"]);
    assert_eq!((one.code, desk.text("mcp.json").matches("\"proxy\"").count()), (Some(0), 1));
    desk.uninstall("cursor", "mcp.json");
    assert_eq!(desk.text("mcp.json"), TWO);
}

#[test]
fn what_is_asked_must_be_possible() {
    let desk = desk("mcp.json", TWO.as_bytes());
    fs::write(desk.0.path().join("bad.yaml"), "policies: [{ id: a, denny: {} }]").unwrap();
    for (arguments, code, said) in [
        (&["install", "cursr", "--policies", "rules.yaml"][..], 2, "'cursor'"),
        (&["install", "cursor", "--file", "mcp.json"], 2, "--policies"),
        (&["install", "cursor", "--file", "mcp.json", "--state", "memory:"], 2, "--policies"),
        (&["install", "cursor", "--policies", "rules.yaml", "--file", "nowhere.json"], 2, "does not exist"),
        (
            &["install", "cursor", "--policies", "rules.yaml", "--file", "mcp.json", "--server", "file"],
            2,
            "did you mean `files`?",
        ),
        (&["install", "cursor", "--policies", "bad.yaml", "--file", "mcp.json"], 1, "denny"),
        (&["install", "cursor", "--policies", "nowhere.yaml", "--file", "mcp.json"], 2, "nowhere.yaml"),
        (
            &["install", "cursor", "--policies", "rules.yaml", "--state", "redis:x", "--file", "mcp.json"],
            2,
            "is no state",
        ),
        (
            &["install", "claude-desktop", "--policies", "rules.yaml", "--scope", "project"],
            2,
            "no files of projects",
        ),
        (&["uninstall", "cursor", "--file", "mcp.json"], 0, "nothing to do"),
    ] {
        let ended = desk.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.shown());
        assert!(ended.shown().contains(said), "{arguments:?}: {}", ended.shown());
    }
    assert_eq!(desk.text("mcp.json"), TWO);
    assert!(!desk.0.path().join(format!("mcp.json{BACKUP}")).exists());
}

#[test]
fn without_a_file_named_the_clients_own_is_edited() {
    for (client, scope, path) in [
        ("claude-code", "user", "home/.claude.json"),
        ("claude-code", "project", ".mcp.json"),
        ("cursor", "user", "home/.cursor/mcp.json"),
        ("cursor", "project", ".cursor/mcp.json"),
        ("gemini", "user", "home/.gemini/settings.json"),
    ] {
        let desk = Desk::new(&[("rules.yaml", GOOD)]);
        let file = desk.0.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, TWO).unwrap();
        let arguments = ["install", client, "--scope", scope, "--policies", "rules.yaml"];
        let home = desk.0.path().join("home");
        let mut command = desk.command(&arguments);
        command.env("HOME", &home).env("USERPROFILE", &home).env_remove("CLAUDE_CONFIG_DIR");
        let ended: Ended = command.env_remove("GEMINI_CLI_HOME").output().unwrap().into();
        assert_eq!(ended.code, Some(0), "{client}: {}", ended.shown());
        assert_eq!(fs::read_to_string(&file).unwrap().matches("\"proxy\"").count(), 2, "{client}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_rights_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let desk = desk("real.json", TWO.as_bytes());
    let (real, link) = (desk.0.path().join("real.json"), desk.0.path().join("mcp.json"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.json", &link).unwrap();
    assert_eq!(desk.install("cursor", "mcp.json", &[]).code, Some(0));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    for name in ["real.json".to_owned(), format!("real.json{BACKUP}")] {
        let mode = fs::metadata(desk.0.path().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let behind = desk.text("real.json");
    let refused = desk.uninstall("cursor", "mcp.json");
    assert_eq!((refused.code, desk.text("real.json") == behind), (Some(2), true), "{}", refused.shown());
    assert!(
        fs::read_dir(desk.0.path())
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_str().unwrap().ends_with(".new") })
    );
}

/// A server that greets, as far as a client sees.
const SERVER: &str = r#"while read -r line; do
  case "$line" in
    *initialize*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"'"$GREETING $1"'","version":"1"}}}' ;;
  esac
done"#;

/// What the server of the file says to a greeting, started as a client does.
fn greeted(desk: &Desk, server: &Value) -> Value {
    let args = server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let env = server["env"].as_object().into_iter().flatten();
    let mut child = Command::new(server["command"].as_str().unwrap())
        .args(args)
        .envs(env.map(|(name, value)| (name, value.as_str().unwrap())))
        .current_dir(desk.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{initialize}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    callgate::json::from_str(&line).unwrap()
}

#[cfg(unix)]
#[test]
fn what_the_file_then_says_starts_the_server_behind_the_gateway() {
    let config = r#"{ "mcpServers": { "small": { "command": "sh", "args": ["server.sh", "two words"], "env": { "GREETING": "hello" } } } }"#;
    let desk = desk("mcp.json", config.as_bytes());
    fs::write(desk.0.path().join("server.sh"), SERVER).unwrap();
    desk.install("cursor", "mcp.json", &["--context", "context.json", "--state", "file:state.db"]);
    let config: Value = callgate::json::from_str(&desk.text("mcp.json")).unwrap();
    let answer = greeted(&desk, &config["mcpServers"]["small"]);
    assert_eq!(answer["result"]["serverInfo"]["name"], "hello two words", "{answer}");
}

#[test]
fn what_the_file_then_says_reaches_the_server_at_its_url() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap())));
    let config = format!(r#"{{ "servers": {{ "small": {{ "type": "http", "url": "{url}" }} }} }}"#);
    let desk = desk("mcp.json", config.as_bytes());
    desk.install("vscode", "mcp.json", &[]);
    let config: Value = callgate::json::from_str(&desk.text("mcp.json")).unwrap();
    assert_eq!(config["servers"]["small"]["type"], "stdio");
    let answer = greeted(&desk, &config["servers"]["small"]);
    assert_eq!(answer["result"]["serverInfo"]["name"], "far", "{answer}");
}

/// Answers a greeting over HTTP, and does nothing else.
fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let (status, body) = match String::from_utf8(body).unwrap().contains(r#""initialize""#) {
        true => (
            "200 OK",
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"far","version":"1"}}}"#,
        ),
        false => ("405 Method Not Allowed", ""),
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}
