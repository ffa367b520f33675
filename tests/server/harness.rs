//! Test harness: a server with a state file, and a client that sends raw requests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate::json::{self, Value, json};
use callgate::{Engine, EngineBuilder, Keys, Observer, load_text};
use callgate_http::IdentityFile;
use callgate_server::{ActivityLog, DecisionServer, NotificationTasks, Notifier};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Longer than anything that works takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A running server with its state file.
pub struct RunningServer {
    pub address: String,
    pub token: String,
    pub folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    ended: tokio::task::JoinHandle<Result<(), String>>,
}

pub const KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";

impl RunningServer {
    /// A server of these rules, with an approver who has `token`.
    pub async fn new(rules: &str) -> Self {
        Self::start(rules, tempfile::tempdir().unwrap(), |server| server).await
    }

    /// A server whose callers an identity file authenticates.
    pub async fn with_identities(rules: &str, identities: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identities.yaml");
        std::fs::write(&path, identities).unwrap();
        Self::start(rules, folder, |server| server.with_identity_file(IdentityFile::open(&path).unwrap()))
            .await
    }

    /// A server with the state of a folder.
    pub async fn start(
        rules: &str,
        folder: TempDir,
        configure: impl FnOnce(DecisionServer) -> DecisionServer,
    ) -> Self {
        Self::start_with(rules, folder, &[], |server, _| configure(server)).await
    }

    /// A server with the state of a folder and tools of its hosts, configured with its engine.
    pub async fn start_with(
        rules: &str,
        folder: TempDir,
        tools: &[&str],
        configure: impl FnOnce(DecisionServer, &Engine) -> DecisionServer,
    ) -> Self {
        let tools = json!(tools.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>()).to_string();
        let tools = callgate::tools::parse_list(&tools).unwrap();
        let (server, engine) = server_and_engine(rules, folder.path(), |builder| builder.tools(tools));
        Self::listen(configure(server, &engine), folder).await
    }

    /// A server that sends messages, and takes the answers that they lead to.
    pub async fn with_notifier(rules: &str, notifier: Notifier) -> Self {
        let (folder, answers) = (tempfile::tempdir().unwrap(), notifier.channel_answers());
        let (server, _) = server_and_engine(rules, folder.path(), |builder| builder.observer(notifier));
        Self::listen(server.with_channel_answers(answers), folder).await
    }

    /// A server that sends messages and takes the answers that they lead to. Its callers have tokens, and an observer gets all events.
    pub async fn with_messages(
        rules: &str,
        identities: &str,
        (notifier, tasks): (Notifier, &NotificationTasks),
        observer: impl Observer + 'static,
    ) -> Self {
        let (folder, answers) = (tempfile::tempdir().unwrap(), notifier.channel_answers());
        let path = folder.path().join("identities.yaml");
        std::fs::write(&path, identities).unwrap();
        let observe = |builder: EngineBuilder| builder.observer(notifier).observer(observer);
        let (server, engine) = server_and_engine(rules, folder.path(), observe);
        tasks.report_to(engine);
        let file = IdentityFile::open(&path).unwrap();
        Self::listen(server.with_channel_answers(answers).with_identity_file(file), folder).await
    }

    /// A server whose engine notifies an observer.
    pub async fn with_observer(rules: &str, observer: impl Observer + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (server, _) = server_and_engine(rules, folder.path(), |builder| builder.observer(observer));
        Self::listen(server, folder).await
    }

    /// Another server with the same state.
    pub async fn beside(&self, rules: &str) -> Self {
        let (server, _) = server_and_engine(rules, self.folder.path(), |builder| builder);
        Self::listen(server, tempfile::tempdir().unwrap()).await
    }

    async fn listen(server: DecisionServer, folder: TempDir) -> Self {
        let (server, token) = server.with_local_approver("ann").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(server.serve(listener, async {
            let _ = stopped.await;
        }));
        Self { address, token, folder, stop: Some(stop), ended }
    }

    /// Stops the server as a signal does, and returns its state.
    pub async fn stop(mut self) -> TempDir {
        drop(self.stop.take());
        tokio::time::timeout(TIMEOUT, self.ended).await.unwrap().unwrap().unwrap();
        self.folder
    }

    /// Kills the server: nothing of it runs any more.
    pub async fn kill(self) -> TempDir {
        self.ended.abort();
        let _ = self.ended.await;
        self.folder
    }

    pub async fn send(&self, method: &str, path: &str, headers: &str, body: Option<&str>) -> Reply {
        let address = &self.address;
        let mut socket = TcpStream::connect(address).await.unwrap();
        let content = body.map_or(String::new(), |body| format!("content-length: {}\r\n", body.len()));
        let host = if headers.starts_with("host:") { String::new() } else { format!("host: {address}\r\n") };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}connection: close\r\n{content}{headers}\r\n{}",
            body.unwrap_or_default()
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        tokio::time::timeout(TIMEOUT, socket.read_to_end(&mut bytes)).await.unwrap().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = json::parse(body).unwrap_or_else(|_| body.into());
        Reply { status, head: head.to_owned(), body }
    }

    /// Sends a JSON body without a credential.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, "content-type: application/json\r\n", Some(&body.to_string())).await
    }

    /// Sends a request with a bearer token.
    pub async fn send_as(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let headers = format!("content-type: application/json\r\nauthorization: Bearer {token}\r\n");
        self.send(method, path, &headers, body.map(Value::to_string).as_deref()).await
    }

    /// The pending requests, as the approver sees them.
    pub async fn pending(&self) -> Vec<Value> {
        let reply = self.send_as(&self.token, "GET", "/v1/approvals", None).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body["approvals"].as_array().unwrap().clone()
    }

    /// Answers a request as the approver.
    pub async fn answer(&self, request: &Value, decision: &str) -> Reply {
        let body = json!({ "decision": decision, "digest": request["digest"] });
        let path = format!("/v1/approvals/{}/answers", request["key"].as_str().unwrap());
        self.send_as(&self.token, "POST", &path, Some(&body)).await
    }

    /// Reports the result of the only execution of a reply.
    pub async fn report(&self, reply: &Reply, body: Value) -> Reply {
        assert_eq!(reply.body["status"], "execute", "{reply:?}");
        let execution = reply.body["executions"][0]["id"].as_str().unwrap();
        self.post(&format!("/v1/executions/{execution}"), &body).await
    }
}

/// A server with the state file of a folder.
pub fn decision_server(rules: &str, folder: &Path) -> DecisionServer {
    server_and_engine(rules, folder, |builder| builder).0
}

fn server_and_engine(
    rules: &str,
    folder: &Path,
    observe: impl FnOnce(EngineBuilder) -> EngineBuilder,
) -> (DecisionServer, Engine) {
    let url = format!("file:{}", folder.join("state.db").display());
    let store = callgate_sqlite::open_store(&url).unwrap();
    let activity = ActivityLog::default();
    let builder =
        Engine::builder(load_text(rules).unwrap()).store(Arc::clone(&store)).keys(Keys::parse(KEY).unwrap());
    let engine = observe(activity.observe(builder)).build();
    (DecisionServer::new(engine.clone(), store, activity), engine)
}

/// An identity file. Tokens are `NAME-token-NAME-token`; digests are made here.
pub fn identities(entries: &[(&str, &str)]) -> String {
    use sha2::{Digest, Sha256};
    let entry = |(name, rest): &(&str, &str)| {
        let digest: String =
            Sha256::digest(token(name).as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("  - {{ sha256: {digest}, principal: {name}, {rest} }}\n")
    };
    format!("tokens:\n{}", entries.iter().map(entry).collect::<String>())
}

/// The token of a name in [`identities`].
pub fn token(name: &str) -> String {
    format!("{name}-token-{name}-token")
}

/// A call in a session.
pub fn call(id: &str, tool: &str, input: Value) -> Value {
    json!({ "call": { "id": id, "tool": tool, "input": input }, "session": "s1" })
}
