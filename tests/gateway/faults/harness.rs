//! Test harness: a client that records every message, and a gateway in front of a server that fails on demand.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use callgate::json::{Value, json};
use tempfile::TempDir;

use crate::gateway::script;

/// Longer than anything that works takes.
const TIMEOUT: Duration = Duration::from_secs(50);

/// A client session through the gateway.
pub(super) struct Session {
    process: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    /// All messages received so far.
    pub(super) received: Vec<Value>,
    told: Arc<Mutex<String>>,
    pub(super) folder: Folder,
}

/// A server's working directory, with its log.
pub(super) struct Folder {
    home: TempDir,
    /// A unique argument that identifies the server's process.
    mark: String,
}

impl Folder {
    pub(super) fn new() -> Self {
        let mark = format!("faulty-{}-{:016x}", std::process::id(), fastrand::u64(..));
        Self { home: TempDir::new().unwrap(), mark }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Replaces a file atomically.
    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path("half"), text).unwrap();
        fs::rename(self.path("half"), self.path(name)).unwrap();
    }

    /// The messages that the server received.
    pub(super) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(|line| callgate::json::from_str(line).unwrap()).collect()
    }

    /// Waits until the server has received `count` messages of a method, and returns them.
    pub(super) fn wait_for_received(&self, method: &str, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        wait_until(&format!("the server receives {count} of {method}"), || {
            found = self.log();
            found.retain(|message| message["method"] == method);
            found.len() >= count
        });
        found
    }

    /// The number of calls of a tool that the server received.
    pub(super) fn call_count(&self, tool: &str) -> usize {
        self.log()
            .iter()
            .filter(|message| message["method"] == "tools/call" && message["params"]["name"] == tool)
            .count()
    }

    /// A server of a configuration file.
    pub(super) fn configured(&self, name: &str, options: &str) -> String {
        format!("  - {{ name: {name}, command: {}{options} }}\n", json!(self.server()))
    }

    /// The command of the server.
    pub(super) fn server(&self) -> Vec<String> {
        let paths = [script("faulty.py"), self.home.path().to_owned()];
        let paths = paths.map(|path| path.display().to_string());
        let command = ["python3", "-S", "-E"].map(str::to_owned).into_iter().chain(paths);
        command.chain([self.mark.clone()]).collect()
    }

    /// Asserts that all processes of the server end.
    pub(super) fn assert_server_ended(&self) {
        let program_exists = |process: &Path| {
            let command = fs::read(process.join("cmdline")).unwrap_or_default();
            // The server's arguments are also part of the gateway's command line.
            command.starts_with(b"python3\0") && String::from_utf8_lossy(&command).contains(&self.mark)
        };
        wait_until("the server's process ends", || {
            let mut processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
            !processes.any(|process| program_exists(&process))
        });
    }
}

/// Waits until `is_so` returns `true`.
pub(super) fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    wait_until_within(TIMEOUT, what, is_so);
}

fn wait_until_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < patience, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Session {
    /// Starts an initialized session under rules.
    pub(super) fn with_rules(rules: &str) -> Self {
        let folder = Folder::new();
        folder.write("rules.yaml", rules);
        let policies = folder.path("rules.yaml").display().to_string();
        Self::start(folder, &["--policies", &policies])
    }

    /// Starts an initialized session with these arguments of the gateway.
    pub(super) fn start(folder: Folder, arguments: &[&str]) -> Self {
        let server = folder.server();
        let server = ["--"].into_iter().chain(server.iter().map(String::as_str));
        let arguments: Vec<&str> = arguments.iter().copied().chain(server).collect();
        Self::start_configured(folder, &arguments)
    }

    /// As [`start`](Self::start), with arguments that name the servers, too.
    pub(super) fn start_configured(folder: Folder, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .arg("proxy")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (hear, from) = channel();
        let out = BufReader::new(process.stdout.take().unwrap());
        let told = Arc::new(Mutex::new(String::new()));
        let (mut errors, tell) = (BufReader::new(process.stderr.take().unwrap()), Arc::clone(&told));
        // The threads are not joined: a leftover process would keep the pipes open.
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let message =
                    callgate::json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"));
                if hear.send(message).is_err() {
                    return;
                }
            }
        });
        std::thread::spawn(move || {
            let mut line = String::new();
            while errors.read_line(&mut line).is_ok_and(|length| length > 0) {
                tell.lock().unwrap().push_str(&std::mem::take(&mut line));
            }
        });
        let to = process.stdin.take();
        let mut session = Self { process, to, from, received: Vec::new(), told, folder };
        let greeting = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = session.request("initialize", greeting);
        assert!(answer["result"]["serverInfo"]["name"].is_string(), "{answer}\n{}", session.log_text());
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        session
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a line that need not be a valid message.
    pub(super) fn send_line(&mut self, message: &str) {
        let to = self.to.as_mut().expect("the input is closed");
        writeln!(to, "{message}").unwrap();
        to.flush().unwrap();
    }

    /// Sends a request. Returns its id.
    pub(super) fn send_request(&mut self, method: &str, params: Value) -> Value {
        let id = Value::from(fastrand::u32(..));
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a request and waits for the response.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.response(&id)
    }

    /// Starts a call. Returns its id.
    pub(super) fn start_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.send_request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool and waits for the response.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.start_call(tool, arguments);
        self.response(&id)
    }

    /// Waits for the first message that matches, among those received already and those to come.
    pub(super) fn wait_for_message(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        if let Some(message) = self.received.iter().find(|message| is_so(message)) {
            return message.clone();
        }
        let begun = Instant::now();
        loop {
            match self.from.recv_timeout(TIMEOUT.saturating_sub(begun.elapsed())) {
                Ok(message) => {
                    self.received.push(message.clone());
                    if is_so(&message) {
                        return message;
                    }
                }
                Err(why) => {
                    let (heard, told) = (Value::from(self.received.clone()), self.log_text());
                    panic!("{what} is missing ({why}); received: {heard:#}\nlog:\n{told}")
                }
            }
        }
    }

    pub(super) fn response(&mut self, id: &Value) -> Value {
        self.wait_for_message(&format!("the response to {id}"), |message| {
            message["id"] == *id && message.get("method").is_none()
        })
    }

    /// The gateway's stderr so far.
    pub(super) fn log_text(&self) -> String {
        self.told.lock().unwrap().clone()
    }

    /// Waits until stderr contains the text.
    pub(super) fn wait_for_log(&self, text: &str) {
        wait_until(&format!("`{text}` is on stderr"), || self.log_text().contains(text));
    }

    /// Closes the client's output. The client still receives.
    pub(super) fn close_input(&mut self) {
        drop(self.to.take());
    }

    /// Sends the gateway a signal.
    pub(super) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits until the gateway has ended.
    pub(super) fn wait_for_exit(&mut self) {
        wait_until("the gateway ends", || self.process.try_wait().unwrap().is_some());
    }

    /// Waits until the gateway has ended, which must not wait for pending elicitations.
    pub(super) fn wait_for_prompt_exit(&mut self) {
        wait_until_within(Duration::from_secs(20), "the gateway ends", || {
            self.process.try_wait().unwrap().is_some()
        });
    }

    /// Sends SIGTERM repeatedly until the gateway has ended.
    pub(super) fn terminate_repeatedly(&mut self) {
        wait_until("the gateway ends", || {
            let is_over = self.process.try_wait().unwrap().is_some();
            if !is_over {
                self.signal("TERM");
            }
            is_over
        });
    }

    /// Ends the session. Returns all messages received.
    pub(super) fn finish(mut self) -> Vec<Value> {
        self.close_input();
        loop {
            match self.from.recv_timeout(TIMEOUT) {
                Ok(message) => self.received.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the gateway does not end:\n{}", self.log_text()),
            }
        }
        self.wait_for_exit();
        self.folder.assert_server_ended();
        std::mem::take(&mut self.received)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The number of responses with an id.
pub(super) fn response_count(heard: &[Value], id: &Value) -> usize {
    heard.iter().filter(|message| message["id"] == *id && message.get("method").is_none()).count()
}
