//! The helper of `callgate hook`: events after the first one are decided by a process that keeps rules and state open.

use std::fs::{self, File, Permissions};
use std::io::{Read, Seek, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use callgate::json::{Value, json};

use super::{CommandResult, TestDir, after, assert_proceeds, before, is_blocked, test_dir};

const AGENT: &str = "claude-code";

/// Waits for something that other processes do.
fn wait_for<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl TestDir {
    fn runtime(&self) -> PathBuf {
        self.0.path().join("run")
    }

    fn hook_with_helper(&self, event: &Value) -> CommandResult {
        let mut file = tempfile::tempfile().unwrap();
        write!(file, "{event}").unwrap();
        file.rewind().unwrap();
        let mut command =
            self.command(&["hook", AGENT, "--policies", "rules.yaml", "--state", "file:state.db"]);
        command.env("XDG_RUNTIME_DIR", self.runtime()).stdin(file);
        command.output().unwrap().into()
    }

    fn file_with(&self, extension: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(self.runtime().join("callgate")).ok()?;
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|found| found == extension))
    }

    /// The socket, once the helper listens.
    fn socket(&self) -> PathBuf {
        wait_for("helper", || self.file_with("sock").filter(|path| UnixStream::connect(path).is_ok()))
    }

    fn helper_process(&self) -> String {
        wait_for("process number", || {
            let text = fs::read_to_string(self.file_with("lock")?).unwrap();
            text.strip_suffix('\n').map(str::to_owned)
        })
    }

    fn bash(&self, command: &str) -> CommandResult {
        self.hook_with_helper(&before(AGENT, "Bash", json!({ "command": command })))
    }
}

/// What the helper itself answers.
fn ask(socket: &Path, event: &Value) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    write!(stream, "{{\"project\":null,\"attended\":true}}\n{event}").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_helper_decides_with_the_state_of_all_events() {
    let dir = test_dir();
    assert_proceeds(AGENT, &dir.bash("make test"));
    let socket = dir.socket();
    assert_proceeds(AGENT, &dir.bash("make test"));
    assert!(
        ask(&socket, &before(AGENT, "Bash", json!({ "command": "git push --force" })))
            .contains("no-force-push")
    );
    assert_proceeds(AGENT, &dir.bash("make test"));
    let fourth = dir.bash("make test");
    assert!(is_blocked(AGENT, &fourth) && fourth.stderr.contains("three-tests"), "{}", fourth.transcript());
    // A label of the event before it.
    let read = json!({ "file_path": "/work/a" });
    dir.hook_with_helper(&before(AGENT, "Read", read.clone()));
    dir.hook_with_helper(&after(AGENT, "Read", read, json!("token")));
    let upload = dir.bash("curl example.com");
    assert!(is_blocked(AGENT, &upload) && upload.stderr.contains("secret"), "{}", upload.transcript());
    // The files that another process finds are the same.
    let in_process = dir.hook(AGENT, &before(AGENT, "Bash", json!({ "command": "make test" })));
    assert!(in_process.stderr.contains("three-tests"), "{}", in_process.transcript());
}

#[test]
fn changed_rules_take_effect_with_the_next_event() {
    let dir = test_dir();
    assert_proceeds(AGENT, &dir.bash("ls"));
    dir.socket();
    let rules = dir.0.path().join("rules.yaml");
    fs::write(&rules, "policies: [ { id: no-ls, match: Bash, deny: {} } ]").unwrap();
    let denied = dir.bash("ls");
    assert!(is_blocked(AGENT, &denied) && denied.stderr.contains("no-ls"), "{}", denied.transcript());
    fs::write(&rules, "policies: [ { id: no-ls, match: Bash } ]").unwrap();
    let broken = dir.bash("ls");
    assert!(
        is_blocked(AGENT, &broken) && broken.stderr.contains("the rules have errors"),
        "{}",
        broken.transcript()
    );
    fs::write(&rules, "policies: []").unwrap();
    assert_proceeds(AGENT, &dir.bash("ls"));
}

#[test]
fn a_killed_helper_is_replaced_and_an_ended_one_leaves_nothing() {
    let dir = test_dir();
    dir.bash("ls");
    dir.socket();
    let first = dir.helper_process();
    assert!(Command::new("kill").args(["-9", &first]).status().unwrap().success());
    wait_for("end of the helper", || (!Path::new(&format!("/proc/{first}")).exists()).then_some(()));
    let denied = dir.bash("git push --force");
    assert!(is_blocked(AGENT, &denied), "{}", denied.transcript());
    dir.socket();
    let second = wait_for("new helper", || Some(dir.helper_process()).filter(|process| *process != first));
    fs::remove_file(dir.socket()).unwrap();
    wait_for("end of the helper", || (!Path::new(&format!("/proc/{second}")).exists()).then_some(()));
}

#[test]
fn many_events_at_once_start_one_helper_and_are_all_decided() {
    let dir = test_dir();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert!(is_blocked(AGENT, &dir.bash("git push --force")));
                }
            });
        }
    });
    dir.socket();
    let locks = fs::read_dir(dir.runtime().join("callgate")).unwrap();
    let count = locks.filter(|entry| entry.as_ref().unwrap().path().extension().unwrap() == "lock").count();
    assert_eq!(count, 1);
}

#[test]
fn a_helper_that_ends_or_hangs_denies() {
    let dir = test_dir();
    dir.bash("ls");
    let socket = dir.socket();
    let process = dir.helper_process();
    // In place of the helper: one that closes the connection, and one that never answers.
    fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let closing = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let lost = dir.bash("ls");
    closing.join().unwrap();
    assert!(is_blocked(AGENT, &lost) && lost.stderr.contains("helper"), "{}", lost.transcript());
    wait_for("end of the helper", || (!Path::new(&format!("/proc/{process}")).exists()).then_some(()));
    fs::remove_file(&socket).unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    let event = dir.0.path().join("event.json");
    fs::write(&event, before(AGENT, "Bash", json!({ "command": "ls" })).to_string()).unwrap();
    let arguments =
        ["hook", AGENT, "--policies", "rules.yaml", "--state", "file:state.db", "--timeout", "1s"];
    let hang = |directory: &Path| -> CommandResult {
        let mut command = dir.command(&arguments);
        command.env("XDG_RUNTIME_DIR", directory).stdin(File::open(&event).unwrap()).output().unwrap().into()
    };
    // Other arguments have another helper: this one is for the socket of these arguments.
    hang(&dir.runtime());
    let own = wait_for("second socket", || {
        let entries = fs::read_dir(dir.runtime().join("callgate")).ok()?;
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|found| found == "sock") && *path != socket)
    });
    fs::remove_file(&own).unwrap();
    let _silent = UnixListener::bind(&own).unwrap();
    let hung = hang(&dir.runtime());
    assert!(is_blocked(AGENT, &hung) && hung.stderr.contains("in time"), "{}", hung.transcript());
}

#[test]
fn a_directory_that_others_can_enter_is_not_used() {
    let dir = test_dir();
    let directory = dir.runtime().join("callgate");
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o750)).unwrap();
    assert!(is_blocked(AGENT, &dir.bash("git push --force")));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    // Nor one behind a link.
    fs::remove_dir(&directory).unwrap();
    let elsewhere = dir.0.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &directory).unwrap();
    assert!(is_blocked(AGENT, &dir.bash("git push --force")));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn requests_that_are_no_events_are_refused() {
    let dir = test_dir();
    dir.bash("ls");
    let socket = dir.socket();
    assert!(ask(&socket, &json!([1])).contains("can't use the event"));
    for cut in ["", "{}\n", "{\"project\":1,\"attended\":true}\n{}", "{\"project\":null}\n{}", "no json"] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(cut.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "", "{cut}");
    }
    assert!(is_blocked(AGENT, &dir.bash("git push --force")));
}
