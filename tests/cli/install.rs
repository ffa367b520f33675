//! `callgate install` and `uninstall`: each file in `install/` is one case, named after its client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use callgate::json::Value;

use super::{CommandResult, GOOD, TestDir, settings};

const BACKUP: &str = ".before-callgate";

/// A directory with a client's config file and rules.
fn test_dir(name: &str, text: &[u8]) -> TestDir {
    let dir = TestDir::new(&[("rules.yaml", GOOD), ("context.json", r#"{"principal":"ana"}"#)]);
    fs::write(dir.0.path().join(name), text).unwrap();
    dir
}

impl TestDir {
    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    fn install(&self, client: &str, name: &str, more: &[&str]) -> CommandResult {
        let usual = ["install", client, "--file", name, "--policies", "rules.yaml"];
        self.run(&[&usual[..], more].concat())
    }

    fn uninstall(&self, client: &str, name: &str) -> CommandResult {
        self.run(&["uninstall", client, "--file", name])
    }

    /// The text with the paths of this run masked.
    fn mask(&self, text: &str) -> String {
        let here = fs::canonicalize(self.0.path()).unwrap();
        text.replace(env!("CARGO_BIN_EXE_callgate"), "/opt/callgate").replace(here.to_str().unwrap(), "/desk")
    }
}

#[test]
fn install_and_uninstall_restore_each_file() {
    let mut settings = settings();
    settings.set_snapshot_path(crate::fixtures::root().join("snapshots/cli/install"));
    settings.set_snapshot_suffix("");
    settings.bind(|| {
        insta::glob!("install/*", |path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let (client, _) = name.split_once("__").unwrap();
            let original = fs::read(path).unwrap();
            let dir = test_dir(name, &original);
            let more = ["--context", "context.json", "--state", "file:state.db"];
            let shown = dir.install(client, name, &[&more[..], &["--dry-run"]].concat());
            assert_eq!(dir.bytes(name), original, "--dry-run writes nothing");
            let done = dir.install(client, name, &more);
            assert_eq!(done.code, shown.code);
            insta::assert_snapshot!(dir.mask(&format!("{}\n{}", shown.transcript(), done.transcript())));
            assert_restored(client, name, &original, &more);
            let crlf = String::from_utf8(original).unwrap().replace('\n', "\r\n");
            assert_restored(client, name, crlf.as_bytes(), &more);
            assert_restored(client, name, format!("\u{feff}{crlf}").as_bytes(), &more);
        });
    });
}

fn assert_restored(client: &str, name: &str, original: &[u8], more: &[&str]) {
    let dir = test_dir(name, original);
    let backup = format!("{name}{BACKUP}");
    let first = dir.install(client, name, more);
    let behind = dir.bytes(name);
    let is_changed = behind != original;
    if is_changed {
        assert_eq!(dir.bytes(&backup), original);
    }
    let again = dir.install(client, name, more);
    assert_eq!((again.code, dir.bytes(name) == behind), (first.code, true), "{}", again.transcript());
    let undone = dir.uninstall(client, name);
    assert_eq!(dir.text(name), String::from_utf8_lossy(original), "{}", undone.transcript());
    assert!(!is_changed || !dir.0.path().join(&backup).exists(), "{}", undone.transcript());
}

const TWO: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"] },
    "bare": { "command": "bare" }
  }
}
"#;

#[test]
fn uninstall_keeps_later_edits() {
    for (from, to) in [
        // Beside the servers, in a server, in the installed arguments, and in the installed command.
        ("{\n  \"mcpServers\"", "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\""),
        ("\"bare\": {", "\"new\": { \"command\": \"new\" },\n    \"bare\": { \"env\": { \"A\": \"1\" },"),
        ("\"-y\", \"files\"", "\"-y\", \"files\", \"/more\""),
        ("\"npx\"", "\"pnpx\""),
    ] {
        let dir = test_dir("mcp.json", TWO.as_bytes());
        dir.install("cursor", "mcp.json", &[]);
        let edited = dir.text("mcp.json").replacen(from, to, 1);
        fs::write(dir.0.path().join("mcp.json"), edited).unwrap();
        let undone = dir.uninstall("cursor", "mcp.json");
        assert_eq!(undone.code, Some(0));
        assert_eq!(dir.text("mcp.json"), TWO.replacen(from, to, 1), "{from}");
        assert!(undone.stdout.contains(BACKUP), "the backup differs from the file: {}", undone.transcript());
    }
}

#[test]
fn uninstall_keeps_and_reports_a_heavily_edited_server() {
    let original = r#"{ "mcpServers": { "r": { "url": "https://r.example/mcp" } } }"#;
    let dir = test_dir("mcp.json", original.as_bytes());
    dir.install("cursor", "mcp.json", &[]);
    let edited = dir.text("mcp.json").replace(r#", "args""#, r#", "env": {}, "args""#);
    fs::write(dir.0.path().join("mcp.json"), &edited).unwrap();
    let undone = dir.uninstall("cursor", "mcp.json");
    assert_eq!((undone.code, dir.text("mcp.json")), (Some(1), edited));
    assert!(undone.stdout.contains("set `url` to `https://r.example/mcp`"), "{}", undone.transcript());
}

#[test]
fn uninstall_restores_a_file_that_the_client_rewrote() {
    let original = r#"{"mcpServers":{"a":{"command":"x","args":["1"]},"b":{"command":"y"},"c":{"type":"http","url":"https://c.example/mcp"}}}"#;
    let dir = test_dir("mcp.json", original.as_bytes());
    dir.install("cursor", "mcp.json", &[]);
    let value: Value = callgate::json::from_str(&dir.text("mcp.json")).unwrap();
    let rewritten = callgate::json::to_string_pretty(&value).unwrap();
    fs::write(dir.0.path().join("mcp.json"), rewritten).unwrap();
    fs::remove_file(dir.0.path().join(format!("mcp.json{BACKUP}"))).unwrap();
    assert_eq!(dir.uninstall("cursor", "mcp.json").code, Some(0));
    let mut expected: Value = callgate::json::from_str(original).unwrap();
    // It is no longer known that `args` was absent.
    expected["mcpServers"]["b"]["args"] = Value::Array(Vec::new());
    assert_eq!(callgate::json::from_str::<Value>(&dir.text("mcp.json")).unwrap(), expected);
}

#[test]
fn repeated_install_adds_servers_and_updates_options() {
    let dir = test_dir("mcp.json", TWO.as_bytes());
    dir.install("cursor", "mcp.json", &["--server", "files"]);
    assert!(dir.text("mcp.json").contains(r#""bare": { "command": "bare" }"#));
    let more = dir.install("cursor", "mcp.json", &["--pins", "callgate.lock"]);
    assert_eq!(more.code, Some(0));
    let text = dir.text("mcp.json");
    assert_eq!(text.matches("\"--pins\"").count(), 2, "{text}");
    assert_eq!(text.matches("\"proxy\"").count(), 2, "{text}");
    assert_eq!(dir.text(&format!("mcp.json{BACKUP}")), TWO);
    let one = dir.run(&["uninstall", "cursor", "--file", "mcp.json", "--server", "bare"]);
    assert_eq!((one.code, dir.text("mcp.json").matches("\"proxy\"").count()), (Some(0), 1));
    dir.uninstall("cursor", "mcp.json");
    assert_eq!(dir.text("mcp.json"), TWO);
}

#[test]
fn rejects_invalid_arguments() {
    let dir = test_dir("mcp.json", TWO.as_bytes());
    fs::write(dir.0.path().join("bad.yaml"), "policies: [{ id: a, denny: {} }]").unwrap();
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
            "is not a state store",
        ),
        (
            &["install", "claude-desktop", "--policies", "rules.yaml", "--scope", "project"],
            2,
            "no project config files",
        ),
        (&["uninstall", "cursor", "--file", "mcp.json"], 0, "nothing to do"),
    ] {
        let ended = dir.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.transcript());
        assert!(ended.transcript().contains(said), "{arguments:?}: {}", ended.transcript());
    }
    assert_eq!(dir.text("mcp.json"), TWO);
    assert!(!dir.0.path().join(format!("mcp.json{BACKUP}")).exists());
}

#[test]
fn edits_the_clients_default_file() {
    for (client, scope, path) in [
        ("claude-code", "user", "home/.claude.json"),
        ("claude-code", "project", ".mcp.json"),
        ("cursor", "user", "home/.cursor/mcp.json"),
        ("cursor", "project", ".cursor/mcp.json"),
        ("gemini", "user", "home/.gemini/settings.json"),
    ] {
        let dir = TestDir::new(&[("rules.yaml", GOOD)]);
        let file = dir.0.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, TWO).unwrap();
        let arguments = ["install", client, "--scope", scope, "--policies", "rules.yaml"];
        let home = dir.0.path().join("home");
        let mut command = dir.command(&arguments);
        command.env("HOME", &home).env("USERPROFILE", &home).env_remove("CLAUDE_CONFIG_DIR");
        let ended: CommandResult = command.env_remove("GEMINI_CLI_HOME").output().unwrap().into();
        assert_eq!(ended.code, Some(0), "{client}: {}", ended.transcript());
        assert_eq!(fs::read_to_string(&file).unwrap().matches("\"proxy\"").count(), 2, "{client}");
    }
}

#[cfg(unix)]
#[test]
fn keeps_symlinks_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let dir = test_dir("real.json", TWO.as_bytes());
    let (real, link) = (dir.0.path().join("real.json"), dir.0.path().join("mcp.json"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.json", &link).unwrap();
    assert_eq!(dir.install("cursor", "mcp.json", &[]).code, Some(0));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    for name in ["real.json".to_owned(), format!("real.json{BACKUP}")] {
        let mode = fs::metadata(dir.0.path().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let behind = dir.text("real.json");
    let refused = dir.uninstall("cursor", "mcp.json");
    assert_eq!((refused.code, dir.text("real.json") == behind), (Some(2), true), "{}", refused.transcript());
    assert!(
        fs::read_dir(dir.0.path())
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_str().unwrap().ends_with(".new") })
    );
}

/// A server that only answers `initialize`.
const SERVER: &str = r#"while read -r line; do
  case "$line" in
    *initialize*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"'"$GREETING $1"'","version":"1"}}}' ;;
  esac
done"#;

/// Starts the server of the config file as a client does. Returns its response to `initialize`.
fn initialize_server(dir: &TestDir, server: &Value) -> Value {
    let args = server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let env = server["env"].as_object().into_iter().flatten();
    let mut child = Command::new(server["command"].as_str().unwrap())
        .args(args)
        .envs(env.map(|(name, value)| (name.as_str(), value.as_str().unwrap())))
        .current_dir(dir.0.path())
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
fn installed_command_starts_the_server_behind_the_gateway() {
    let config = r#"{ "mcpServers": { "small": { "command": "sh", "args": ["server.sh", "two words"], "env": { "GREETING": "hello" } } } }"#;
    let dir = test_dir("mcp.json", config.as_bytes());
    fs::write(dir.0.path().join("server.sh"), SERVER).unwrap();
    dir.install("cursor", "mcp.json", &["--context", "context.json", "--state", "file:state.db"]);
    let config: Value = callgate::json::from_str(&dir.text("mcp.json")).unwrap();
    let answer = initialize_server(&dir, &config["mcpServers"]["small"]);
    assert_eq!(answer["result"]["serverInfo"]["name"], "hello two words", "{answer}");
}

#[test]
fn installed_command_reaches_a_server_at_its_url() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap())));
    let config = format!(r#"{{ "servers": {{ "small": {{ "type": "http", "url": "{url}" }} }} }}"#);
    let dir = test_dir("mcp.json", config.as_bytes());
    dir.install("vscode", "mcp.json", &[]);
    let config: Value = callgate::json::from_str(&dir.text("mcp.json")).unwrap();
    assert_eq!(config["servers"]["small"]["type"], "stdio");
    let answer = initialize_server(&dir, &config["servers"]["small"]);
    assert_eq!(answer["result"]["serverInfo"]["name"], "far", "{answer}");
}

/// Answers `initialize` over HTTP, and nothing else.
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
