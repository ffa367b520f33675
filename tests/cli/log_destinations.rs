//! `--log` and `log:`: what syslog servers receive, and destinations that are full, hang or do not answer.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use callgate_log::LogEntry;

use super::TestDir;
use crate::packages;

const RULES: &str = "policies: [ { id: no-rm, match: rm, deny: {} } ]";
const CALLS: &str = "{\"tool\":\"rm\",\"input\":{\"path\":\"a\\nb\"}}\n{\"tool\":\"read\",\"input\":{}}\n";
/// The events of `CALLS`.
const EVENTS: [&str; 7] = [
    "log_opened",
    "rules_loaded",
    "call_decided",
    "call_completed",
    "call_decided",
    "call_started",
    "call_completed",
];

fn dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES), ("calls.jsonl", CALLS)])
}

/// Calls whose arguments have so many bytes in all.
fn many_calls(bytes: usize) -> String {
    let line = format!("{{\"tool\":\"read\",\"input\":{{\"text\":\"{}\"}}}}\n", "x".repeat(1_000));
    line.repeat(bytes / 1_000)
}

fn run_with_log(dir: &TestDir, destination: &str) -> super::CommandResult {
    dir.run(&["run", "--policies", "rules.yaml", "--log", destination, "calls.jsonl"])
}

fn event_names<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    lines
        .into_iter()
        .map(|line| LogEntry::parse(line).unwrap_or_else(|error| panic!("{error}: {line}")).event)
        .collect()
}

fn outcomes(stdout: &str, word: &str) -> usize {
    stdout.matches(&format!("\"outcome\":\"{word}\"")).count()
}

#[test]
fn a_local_syslog_socket_receives_each_event_in_the_form_of_the_c_library() {
    let dir = dir();
    let path = dir.0.path().join("log.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let run = run_with_log(&dir, &format!("syslog:{}", path.display()));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let mut buffer = vec![0; 1 << 16];
    let mut messages = Vec::new();
    while let Ok(length) = socket.recv(&mut buffer) {
        messages.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
    }
    let form =
        regex::Regex::new(r"^<30>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d callgate\[\d+\]: (\{.*\})$").unwrap();
    let lines: Vec<&str> = messages
        .iter()
        .map(|message| {
            form.captures(message).unwrap_or_else(|| panic!("{message:?}")).get(1).unwrap().as_str()
        })
        .collect();
    assert_eq!(event_names(lines), EVENTS);
}

#[test]
fn a_syslog_server_receives_each_event_by_rfc_5424() {
    let form = regex::Regex::new(r"^<30>1 \d{4}-\d\d-\d\dT\S+Z \S+ callgate \d+ - - (\{.*\})\n?$").unwrap();
    let lines = |messages: &[String]| -> Vec<String> {
        let line =
            |message: &String| form.captures(message).unwrap_or_else(|| panic!("{message:?}"))[1].to_owned();
        messages.iter().map(line).collect()
    };
    let dir = dir();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let run = run_with_log(&dir, &format!("syslog:udp:{}", server.local_addr().unwrap()));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let mut messages = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length) = server.recv(&mut buffer) {
        messages.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
    }
    assert_eq!(event_names(lines(&messages).iter().map(String::as_str)), EVENTS);

    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let received = std::thread::spawn(move || {
        let stream = server.accept().unwrap().0;
        BufReader::new(stream).lines().collect::<Result<Vec<String>, _>>().unwrap()
    });
    let run = run_with_log(&dir, &format!("syslog:tcp:{address}"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(event_names(lines(&received.join().unwrap()).iter().map(String::as_str)), EVENTS);
}

#[test]
fn an_event_that_is_too_long_for_a_datagram_arrives_without_its_values() {
    let dir = dir();
    let long = format!("{{\"tool\":\"read\",\"input\":{{\"text\":\"{}\"}}}}\n", "x".repeat(100_000));
    fs::write(dir.0.path().join("calls.jsonl"), long).unwrap();
    let path = dir.0.path().join("log.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let to = format!("syslog:{}", path.display());
    let arguments =
        ["run", "--policies", "rules.yaml", "--log", &to, "--log-content", "redacted", "calls.jsonl"];
    let run = dir.run(&arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let mut buffer = vec![0; 1 << 20];
    let mut decided = false;
    while let Ok(length) = socket.recv(&mut buffer) {
        let message = std::str::from_utf8(&buffer[..length]).unwrap();
        if message.contains("\"call_decided\"") {
            decided = true;
            assert!(message.contains("input_digest") && length < 10_000, "{message:.200}");
        }
    }
    assert!(decided);
}

#[test]
fn a_destination_that_cannot_be_used_is_refused_at_the_start() {
    let dir = dir();
    for (destination, problem) in [
        ("syslog:/nowhere/log", "syslog at `/nowhere/log` can't be used"),
        ("syslog:loghost", "write `syslog`"),
        ("syslog:udp:loghost", "write host and port"),
        ("audit:", "name a file"),
        ("/dev/full", "not a regular file"),
    ] {
        let run = run_with_log(&dir, destination);
        assert_eq!(run.code, Some(2), "{destination}");
        assert!(run.stderr.contains(problem), "{destination}: {}", run.stderr);
    }
    let run = dir.run(&[
        "run",
        "--policies",
        "rules.yaml",
        "--log",
        "stderr",
        "--log-on-failure",
        "deny",
        "calls.jsonl",
    ]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("needs a log that calls can depend on"), "{}", run.stderr);
}

/// Runs `callgate` so that no file grows beyond a size: what a full disk does, in the middle of a line, too.
fn run_on_a_full_disk(dir: &TestDir, arguments: &str) -> super::CommandResult {
    // A process that ignores the signal gets an error instead. The unit is 512 bytes.
    let script = format!("trap '' XFSZ; ulimit -f 10; exec '{}' {arguments}", env!("CARGO_BIN_EXE_callgate"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(dir.0.path()).stdin(Stdio::null()).env_remove("CALLGATE_KEYS");
    command.output().unwrap().into()
}

#[test]
fn on_a_full_disk_calls_run_or_are_denied_as_configured_and_no_line_is_cut() {
    for (options, denies) in [("", false), ("--log-on-failure deny", true)] {
        let dir = dir();
        fs::write(dir.0.path().join("calls.jsonl"), many_calls(1 << 20)).unwrap();
        let calls = (1 << 20) / 1_000;
        let run = run_on_a_full_disk(
            &dir,
            &format!("run --policies rules.yaml --format json --log log.jsonl {options} calls.jsonl"),
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let (executed, denied) = (outcomes(&run.stdout, "executed"), outcomes(&run.stdout, "denied"));
        assert_eq!(executed + denied, calls);
        assert_eq!(denied > 0, denies, "{options}: {denied} denied");
        assert_eq!(run.stdout.matches("log_unavailable").count(), denied);
        assert!(run.stderr.contains("the log can't be written"), "{}", run.stderr);
        assert!(run.stderr.contains("events are missing in a log"), "{}", run.stderr);
        let log = fs::read_to_string(dir.0.path().join("log.jsonl")).unwrap();
        assert!(log.ends_with('\n') && event_names(log.lines()).len() > 1, "{log}");
    }
}

#[test]
fn an_audit_log_on_a_full_disk_denies_and_stays_verifiable() {
    let dir = dir();
    fs::write(dir.0.path().join("calls.jsonl"), many_calls(50_000)).unwrap();
    let run = run_on_a_full_disk(
        &dir,
        "run --policies rules.yaml --format json --log audit:audit.jsonl calls.jsonl",
    );
    assert!(outcomes(&run.stdout, "denied") > 0 && outcomes(&run.stdout, "executed") > 0, "{}", run.stdout);
    assert!(run.stderr.contains("the audit log can't be written"), "{}", run.stderr);
    let verified = dir.run(&["audit", "verify", "audit.jsonl"]);
    assert!(verified.code == Some(0) && verified.stdout.contains("intact"), "{}", verified.transcript());
    // With room again, the chain continues, and says how much is missing.
    let again = run_with_log(&dir, "audit:audit.jsonl");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let verified = dir.run(&["audit", "verify", "audit.jsonl"]);
    assert_eq!(verified.code, Some(0), "{}", verified.transcript());
}

/// Runs `callgate` on a disk that hangs: from the third write of each thread to the file on, the thread is held in the write for longer
/// than the whole run takes.
fn run_on_a_hanging_disk(dir: &TestDir, file: &str, arguments: &[&str]) -> super::CommandResult {
    let mut command = Command::new(strace());
    command.args(["-f", "-qq", "-o", "trace.txt", "-e", "trace=write"]);
    command.arg("-P").arg(dir.0.path().join(file)).arg("-e").arg("inject=write:delay_enter=40000000:when=3+");
    command.arg(env!("CARGO_BIN_EXE_callgate")).args(arguments);
    command.current_dir(dir.0.path()).stdin(Stdio::null()).env_remove("CALLGATE_KEYS");
    command.output().unwrap().into()
}

/// The program that makes system calls slow: the installed one, or that of Debian's package.
fn strace() -> PathBuf {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok() {
        return "strace".into();
    }
    packages::debian(&["strace"]).join("usr/bin/strace")
}

#[test]
fn an_audit_log_on_a_disk_that_hangs_denies_calls_and_the_process_ends() {
    assert_bounded_on_a_hanging_disk(&[], "denied", "log_unavailable");
}

#[test]
fn calls_run_on_a_disk_that_hangs_if_so_configured_and_losses_are_reported() {
    assert_bounded_on_a_hanging_disk(&["--log-on-failure", "continue"], "executed", "unmatched");
}

/// Calls have this outcome and code from the first write on that hangs.
fn assert_bounded_on_a_hanging_disk(options: &[&str], last: &str, code: &str) {
    let dir = dir();
    fs::write(dir.0.path().join("calls.jsonl"), many_calls(100_000)).unwrap();
    let mut arguments =
        vec!["run", "--policies", "rules.yaml", "--format", "json", "--log", "audit:audit.jsonl"];
    arguments.extend(options);
    arguments.push("calls.jsonl");
    let run = run_on_a_hanging_disk(&dir, "audit.jsonl", &arguments);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    let outcomes: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(outcomes.len(), 100, "{}", run.stdout);
    let is = |line: &str, outcome: &str| line.contains(&format!("\"outcome\":\"{outcome}\""));
    let changed = outcomes.iter().position(|line| line.contains(code) && is(line, last)).unwrap();
    assert!(outcomes[..changed].iter().all(|line| is(line, "executed")), "{}", run.stdout);
    assert!(outcomes[changed..].iter().all(|line| is(line, last)), "{}", run.stdout);
    assert!(run.stderr.contains("the log has accepted nothing for 5000 ms"), "{}", run.stderr);
    assert!(run.stderr.contains("events are missing in a log"), "{}", run.stderr);
    // What was written before is intact, and the next process continues it.
    let again = run_with_log(&dir, "audit:audit.jsonl");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let verified = dir.run(&["audit", "verify", "audit.jsonl"]);
    assert!(verified.code == Some(0) && verified.stdout.contains("intact"), "{}", verified.transcript());
}

#[test]
fn a_stderr_that_nobody_reads_stops_nothing() {
    let dir = dir();
    fs::write(dir.0.path().join("calls.jsonl"), many_calls(20 << 20)).unwrap();
    let mut command = dir.command(&["run", "--policies", "rules.yaml", "--log", "stderr", "calls.jsonl"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut printed = String::new();
    child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    // What fits into the pipe: there were far more.
    assert!(printed.lines().count() < 5_000 && printed.contains("read executed"), "{printed:.300}");
}

#[test]
fn a_server_that_accepts_and_never_reads_stops_nothing_or_everything_as_configured() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let run_log = |destination: String, options: &[&str], denies: bool| {
        let dir = dir();
        // More than the buffers of the connection and the queue hold.
        fs::write(dir.0.path().join("calls.jsonl"), many_calls(16 << 20)).unwrap();
        let mut arguments =
            vec!["run", "--policies", "rules.yaml", "--format", "json", "--log", &destination];
        arguments.extend(["--log-content", "redacted"]);
        arguments.extend(options);
        arguments.push("calls.jsonl");
        let run = dir.run(&arguments);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(outcomes(&run.stdout, "denied") > 0, denies, "{destination} {options:?}");
        assert!(run.stderr.contains(" are "), "losses are reported: {}", run.stderr);
    };
    // Side by side, since each mostly waits.
    std::thread::scope(|threads| {
        threads.spawn(|| run_log(format!("syslog:tcp:{address}"), &[], false));
        threads.spawn(|| run_log(format!("syslog:tcp:{address}"), &["--log-on-failure", "deny"], true));
        threads.spawn(|| run_log(format!("otlp:http://{address}"), &[], false));
    });
}

#[test]
fn a_syslog_server_that_is_gone_is_found_again() {
    let dir = dir();
    let path = dir.0.path().join("log.sock");
    // Reads until the first event of so many calls.
    let serve = |calls: usize| {
        let socket = UnixDatagram::bind(&path).unwrap();
        std::thread::spawn(move || {
            let (mut buffer, mut seen) = (vec![0; 1 << 16], 0);
            while seen < calls {
                let length = socket.recv(&mut buffer).unwrap();
                seen += usize::from(String::from_utf8_lossy(&buffer[..length]).contains("call_decided"));
            }
        })
    };
    let first_server = serve(1);
    let to = format!("syslog:{}", path.display());
    let arguments = [
        "run",
        "--policies",
        "rules.yaml",
        "--log",
        &to,
        "--log-on-failure",
        "deny",
        "--format",
        "json",
        "-",
    ];
    let mut command = dir.command(&arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut outcome = || {
        input.write_all(b"{\"tool\":\"read\",\"input\":{}}\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    assert!(outcome().contains("\"executed\""));
    first_server.join().unwrap();
    fs::remove_file(&path).unwrap();
    while !outcome().contains("log_unavailable") {}
    let _second_server = serve(usize::MAX);
    while !outcome().contains("\"executed\"") {}
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

const GATEWAY: &str = "servers: [ { name: a, url: 'http://127.0.0.1:9/mcp' } ]\npolicies: rules.yaml\n";

#[test]
fn a_gateway_logs_where_its_configuration_says() {
    let dir = dir();
    fs::create_dir(dir.0.path().join("etc")).unwrap();
    let config = format!(
        "{GATEWAY}log:\n  - decisions.jsonl\n  - {{ to: 'audit:audit.jsonl', content: redacted, key: signing.key }}\n"
    );
    fs::write(dir.0.path().join("etc/gateway.yaml"), config.replace("rules.yaml", "../rules.yaml")).unwrap();
    let run = dir.run(&["proxy", "--config", "etc/gateway.yaml", "--log", "here.jsonl"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let names = |file: &str| event_names(fs::read_to_string(dir.0.path().join(file)).unwrap().lines());
    assert_eq!(names("etc/decisions.jsonl"), ["log_opened", "rules_loaded"]);
    assert_eq!(names("here.jsonl"), ["log_opened", "rules_loaded"]);
    assert_eq!(
        names("etc/audit.jsonl"),
        ["log_opened", "audit_checkpoint", "rules_loaded", "log_closed", "audit_checkpoint"]
    );
    assert!(dir.0.path().join("etc/signing.key").exists());
}

#[test]
fn mistakes_in_log_settings_are_reported_where_they_are() {
    for (log, line, problem) in [
        ("log: 'syslog:loghost'", 3, "is not a destination of a log"),
        (
            "log:\n  - a.jsonl\n  - { to: stderr, on_failure: deny }",
            5,
            "calls do not wait for this destination",
        ),
        ("log: { to: a.jsonl, key: k }", 3, "only audit logs are signed"),
        ("log: { to: a.jsonl, content: all }", 3, "all"),
        ("log: { content: digests }", 3, "to"),
        ("log: []", 3, ""),
    ] {
        let dir = TestDir::new(&[("rules.yaml", RULES), ("gateway.yaml", &format!("{GATEWAY}{log}\n"))]);
        let run = dir.run(&["proxy", "--config", "gateway.yaml"]);
        assert_eq!(run.code, Some(1), "{log}: {}", run.transcript());
        let printed = format!("{}{}", run.stdout, run.stderr);
        assert!(
            printed.contains(&format!("gateway.yaml:{line}")) && printed.contains(problem),
            "{log}: {printed}"
        );
    }
}
