//! A decision server that sends messages with links, and people who follow them.

use std::sync::{Arc, Mutex};

use callgate::json::{self, Value, json};
use callgate::{EngineEvent, Keys, Observer};
use callgate_log::{Content, EventFormat};
use callgate_server::{NotificationFile, NotificationTasks, Notifier};

use super::harness::{KEY, Reply, RunningServer, identities, token};

pub const PAGE: &str = "content-type: application/json\r\nx-callgate-page: 1\r\n";

/// The lines of a decision log.
#[derive(Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<String>>>);

impl Observer for LogLines {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let format = EventFormat::new(Content::Digests, Keys::parse(KEY).unwrap());
        self.0.lock().unwrap().push(format.line(event));
    }
}

/// A server, its log, and the warnings for its operator.
pub struct LinkOffice {
    pub server: RunningServer,
    log: LogLines,
    pub warnings: Arc<Mutex<Vec<String>>>,
    _tasks: NotificationTasks,
}

impl LinkOffice {
    /// A server that sends messages as a file says. `variable`: its environment variables.
    pub async fn open(rules: &str, file: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notifications.yaml");
        std::fs::write(&path, file).unwrap();
        let file = NotificationFile::open(&path, variable).unwrap_or_else(|error| panic!("{error}"));
        let warnings = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&warnings);
        let keys = Keys::parse(KEY).unwrap();
        let (notifier, tasks) =
            Notifier::start(file, keys, move |line| noted.lock().unwrap().push(line.to_owned()));
        let identities = identities(&[
            ("host", "access: [host]"),
            ("ann", "access: [approver], roles: [finance]"),
            ("bob", "access: [approver]"),
            ("eve", "access: [approver], tenant: other"),
        ]);
        let log = LogLines::default();
        let server = RunningServer::with_messages(rules, &identities, (notifier, &tasks), log.clone()).await;
        Self { server, log, warnings, _tasks: tasks }
    }

    /// Sends a call of the agent, and returns the reply.
    pub async fn call(&self, id: &str, tool: &str, input: Value) -> Reply {
        let body = json!({ "call": { "id": id, "tool": tool, "input": input }, "session": "s1", "context": { "principal": "agent" } });
        self.server.send_as(&token("host"), "POST", "/v1/calls", Some(&body)).await
    }

    /// The events of the log with this name, once there are so many.
    pub async fn events(&self, name: &str, count: usize) -> Vec<Value> {
        for _ in 0..2_000 {
            let lines: Vec<Value> =
                self.log.0.lock().unwrap().iter().map(|line| json::parse(line).unwrap()).collect();
            let found: Vec<Value> = lines.into_iter().filter(|line| line["event"] == name).collect();
            if found.len() >= count {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no {count} events {name}: {:?}", self.log.0.lock().unwrap());
    }

    pub fn log_text(&self) -> String {
        self.log.0.lock().unwrap().join("\n")
    }

    /// The cookie of a person who signs in on the page.
    pub async fn sign_in(&self, name: &str) -> String {
        let body = json!({ "token": token(name) }).to_string();
        let reply = self.server.send("POST", "/v1/browser-session", PAGE, Some(&body)).await;
        assert_eq!(reply.status, 204, "{reply:?}");
        reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    /// What the page of a link requests, for a person who is signed in or not.
    pub async fn follow(&self, path: &str, link: &str, cookie: Option<&str>) -> Reply {
        let cookie = cookie.map(|cookie| format!("cookie: {cookie}\r\n")).unwrap_or_default();
        let body = json!({ "link": link }).to_string();
        self.server.send("POST", path, &format!("{PAGE}{cookie}"), Some(&body)).await
    }

    pub async fn show(&self, link: &str, cookie: Option<&str>) -> Reply {
        self.follow("/v1/answer-links", link, cookie).await
    }

    pub async fn answer(&self, link: &str, cookie: Option<&str>) -> Reply {
        self.follow("/v1/answer-links/answers", link, cookie).await
    }

    /// The number of pending requests.
    pub async fn pending(&self) -> usize {
        let reply = self.server.send_as(&token("bob"), "GET", "/v1/approvals", None).await;
        reply.body["approvals"].as_array().unwrap_or_else(|| panic!("{reply:?}")).len()
    }
}

/// The token of a link to the page of answers.
pub fn link_token(url: &str) -> String {
    let token = url.strip_prefix("https://approvals.test/answer#").unwrap_or_else(|| panic!("{url}"));
    assert!(token.len() > 100 && token.bytes().all(|byte| byte.is_ascii_graphic()), "{token}");
    token.to_owned()
}

/// Asserts a refusal with this status and code.
#[track_caller]
pub fn assert_refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, &reply.body["code"]), (status, &json!(code)), "{reply:?}");
}
