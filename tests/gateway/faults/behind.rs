//! A client that hears everything, and the gateway before a server of which any fault can be asked.

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

/// Nothing takes so long that works.
const PATIENCE: Duration = Duration::from_secs(50);

/// A session behind the gateway.
pub(super) struct Behind {
    process: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    /// All that was heard.
    pub(super) heard: Vec<Value>,
    told: Arc<Mutex<String>>,
    pub(super) folder: Folder,
}

/// Where a server works, with its log.
pub(super) struct Folder {
    home: TempDir,
    /// An argument that only this server's process has.
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

    /// Writes a file as editors do: others see the old one or the new one.
    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path("half"), text).unwrap();
        fs::rename(self.path("half"), self.path(name)).unwrap();
    }

    /// What the server got.
    pub(super) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(|line| callgate::json::from_str(line).unwrap()).collect()
    }

    /// What the server got of a method, as soon as that is so many.
    pub(super) fn got(&self, method: &str, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        until(&format!("the server gets {count} of {method}"), || {
            found = self.log();
            found.retain(|message| message["method"] == method);
            found.len() >= count
        });
        found
    }

    /// The calls of a tool that the server got.
    pub(super) fn calls(&self, tool: &str) -> usize {
        self.log()
            .iter()
            .filter(|message| message["method"] == "tools/call" && message["params"]["name"] == tool)
            .count()
    }

    /// The command of the server.
    pub(super) fn server(&self) -> Vec<String> {
        let paths = [script("faulty.py"), self.home.path().to_owned()];
        let paths = paths.map(|path| path.display().to_string());
        let command = ["python3", "-S", "-E"].map(str::to_owned).into_iter().chain(paths);
        command.chain([self.mark.clone()]).collect()
    }

    /// All processes of the server have ended, or do.
    pub(super) fn nobody_stays(&self) {
        let is_there = |process: &Path| {
            let command = fs::read(process.join("cmdline")).unwrap_or_default();
            // The gateway names its server's arguments, too.
            command.starts_with(b"python3\0") && String::from_utf8_lossy(&command).contains(&self.mark)
        };
        until("the server's process ends", || {
            let mut processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
            !processes.any(|process| is_there(&process))
        });
    }
}

/// Waits until it is so.
pub(super) fn until(what: &str, is_so: impl FnMut() -> bool) {
    until_within(PATIENCE, what, is_so);
}

fn until_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < patience, "it does not come that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Behind {
    /// A session under rules, with the handshake done.
    pub(super) fn rules(rules: &str) -> Self {
        let folder = Folder::new();
        folder.write("rules.yaml", rules);
        let policies = folder.path("rules.yaml").display().to_string();
        Self::start(folder, &["--policies", &policies])
    }

    /// A session with these arguments of the gateway, with the handshake done.
    pub(super) fn start(folder: Folder, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .arg("proxy")
            .args(arguments)
            .arg("--")
            .args(folder.server())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (hear, from) = channel();
        let out = BufReader::new(process.stdout.take().unwrap());
        let told = Arc::new(Mutex::new(String::new()));
        let (mut errors, tell) = (BufReader::new(process.stderr.take().unwrap()), Arc::clone(&told));
        // Neither is waited for: whoever stays behind holds their other ends.
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let message =
                    callgate::json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
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
        let mut behind = Self { process, to, from, heard: Vec::new(), told, folder };
        let greeting = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = behind.ask("initialize", greeting);
        assert_eq!(answer["result"]["serverInfo"]["name"], "faulty", "{answer}\n{}", behind.told());
        behind.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        behind
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends what may be no message.
    pub(super) fn send_line(&mut self, message: &str) {
        let to = self.to.as_mut().expect("the client is still there");
        writeln!(to, "{message}").unwrap();
        to.flush().unwrap();
    }

    /// Sends a request; its id.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = Value::from(fastrand::u32(..));
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Asks and waits for the answer.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(&id)
    }

    /// Begins a call; its id.
    pub(super) fn begin(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool and waits for the answer.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(&id)
    }

    /// The first message that is so, of those heard already and those to come.
    pub(super) fn hear(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        if let Some(message) = self.heard.iter().find(|message| is_so(message)) {
            return message.clone();
        }
        let begun = Instant::now();
        loop {
            match self.from.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
                Ok(message) => {
                    self.heard.push(message.clone());
                    if is_so(&message) {
                        return message;
                    }
                }
                Err(why) => {
                    let (heard, told) = (Value::from(self.heard.clone()), self.told());
                    panic!("{what} does not come ({why}); heard: {heard:#}\ntold:\n{told}")
                }
            }
        }
    }

    pub(super) fn answer(&mut self, id: &Value) -> Value {
        self.hear(&format!("the answer to {id}"), |message| {
            message["id"] == *id && message.get("method").is_none()
        })
    }

    /// What was told on stderr.
    pub(super) fn told(&self) -> String {
        self.told.lock().unwrap().clone()
    }

    /// Waits until it is told on stderr.
    pub(super) fn is_told(&self, text: &str) {
        until(&format!("`{text}` is told"), || self.told().contains(text));
    }

    /// The client says nothing more. It still hears.
    pub(super) fn hang_up(&mut self) {
        drop(self.to.take());
    }

    /// Sends the gateway a signal.
    pub(super) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits until the gateway has ended.
    pub(super) fn ends(&mut self) {
        until("the gateway ends", || self.process.try_wait().unwrap().is_some());
    }

    /// Waits until the gateway has ended, which does not wait for answers that were asked for.
    pub(super) fn ends_without_answers(&mut self) {
        until_within(Duration::from_secs(20), "the gateway ends", || {
            self.process.try_wait().unwrap().is_some()
        });
    }

    /// Tells the gateway to end until it has.
    pub(super) fn ends_when_told_again(&mut self) {
        until("the gateway ends", || {
            let is_over = self.process.try_wait().unwrap().is_some();
            if !is_over {
                self.signal("TERM");
            }
            is_over
        });
    }

    /// Ends the session; everything that was heard.
    pub(super) fn end(mut self) -> Vec<Value> {
        self.hang_up();
        loop {
            match self.from.recv_timeout(PATIENCE) {
                Ok(message) => self.heard.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the gateway does not end:\n{}", self.told()),
            }
        }
        self.ends();
        self.folder.nobody_stays();
        std::mem::take(&mut self.heard)
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How often an id was answered.
pub(super) fn answers(heard: &[Value], id: &Value) -> usize {
    heard.iter().filter(|message| message["id"] == *id && message.get("method").is_none()).count()
}
