//! Test harness: a scripted server, a gateway in front of it, and a client that sends raw requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::fixtures;
use callgate::Engine;
use callgate::engine;
use callgate::json::{Value, json};
use callgate_mcp::{Gateway, HttpServer, HttpSpec, ServerSpec, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

/// Longer than anything that works takes.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub verb: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// One step of the server's reaction to a request.
pub enum Action {
    Write(String),
    /// Waits for a notification by the test.
    Hold(Arc<Notify>),
    /// Waits until the client disconnects, then notifies the test.
    UntilDisconnected(Arc<Notify>),
}

/// A response with a body.
pub fn response(status: u16, headers: &str, body: &str) -> Vec<Action> {
    let length = body.len();
    vec![Action::Write(format!(
        "HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    ))]
}

pub fn json_response(message: &Value) -> Vec<Action> {
    response(200, "content-type: application/json\r\n", &message.to_string())
}

/// The head of an SSE stream.
pub fn stream_start() -> Action {
    Action::Write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".into())
}

pub fn event(message: &Value) -> Action {
    Action::Write(format!("data: {message}\n\n"))
}

pub fn result(got: &ReceivedRequest, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": got.body["id"], "result": result })
}

/// A server that responds by a script.
pub struct Upstream {
    pub url: String,
    got: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Upstream {
    /// `script` returns the reaction to a request, or `None` for the default response.
    pub async fn new(
        script: impl Fn(&ReceivedRequest) -> Option<Vec<Action>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let (script, noted) = (Arc::new(script), Arc::clone(&got));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (script, noted) = (Arc::clone(&script), Arc::clone(&noted));
                tokio::spawn(async move { serve(socket, &*script, &noted).await });
            }
        });
        Self { url, got }
    }

    pub async fn with_defaults() -> Self {
        Self::new(|_| None).await
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.got.lock().unwrap().clone()
    }

    /// The received requests of a method.
    pub fn requests_for(&self, method: &str) -> Vec<ReceivedRequest> {
        self.requests().into_iter().filter(|got| got.method() == method).collect()
    }
}

async fn serve(
    mut socket: TcpStream,
    script: &(dyn Fn(&ReceivedRequest) -> Option<Vec<Action>> + Send + Sync),
    noted: &Mutex<Vec<ReceivedRequest>>,
) {
    let Some(got) = read_request(&mut socket).await else { return };
    noted.lock().unwrap().push(got.clone());
    for act in script(&got).unwrap_or_else(|| default_response(&got)) {
        match act {
            Action::Write(text) => {
                if socket.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Action::Hold(released) => released.notified().await,
            Action::UntilDisconnected(gone) => {
                let mut byte = [0];
                while matches!(socket.read(&mut byte).await, Ok(read) if read > 0) {}
                gone.notify_one();
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let verb = lines.next()?.split(' ').next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = callgate::json::from_slice(&bytes[head..]).unwrap_or_default();
    Some(ReceivedRequest { verb, headers, body })
}

/// The default response, for clients with and without a handshake.
pub fn default_response(got: &ReceivedRequest) -> Vec<Action> {
    if got.verb != "POST" {
        return response(405, "", "");
    }
    if got.body.get("id").is_none() {
        return response(202, "", "");
    }
    match got.method() {
        "initialize" => {
            let version = &got.body["params"]["protocolVersion"];
            let answer = result(got, json!({ "protocolVersion": version, "capabilities": { "tools": {} } }));
            let headers = "content-type: application/json\r\nmcp-session-id: up-1\r\n";
            response(200, headers, &answer.to_string())
        }
        "tools/list" => {
            let schema = json!({ "type": "object",
                "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
            let tools = ["echo", "read", "send"].map(|name| json!({ "name": name, "inputSchema": schema }));
            json_response(&result(got, json!({ "tools": tools, "resultType": "complete" })))
        }
        "tools/call" => {
            let text = got.body["params"].to_string();
            let content = json!([{ "type": "text", "text": text }]);
            json_response(&result(got, json!({ "content": content, "resultType": "complete" })))
        }
        _ => json_response(&json!({ "jsonrpc": "2.0", "id": got.body["id"],
            "error": { "code": -32601, "message": "no such method" } })),
    }
}

/// A running gateway.
pub struct RunningGateway {
    pub address: String,
    pub gateway: Arc<Gateway>,
    pub log: Arc<Mutex<Vec<String>>>,
    pub end: Option<oneshot::Sender<()>>,
    pub ended: tokio::task::JoinHandle<Result<(), String>>,
}

/// A gateway in front of a server, with these rules.
pub fn gateway(url: &str, rules: &str, log: &Arc<Mutex<Vec<String>>>) -> Gateway {
    let spec = HttpSpec { url: url.to_owned(), headers: Vec::new(), auth: None };
    gateway_to(Transport::Http(spec), rules, log)
}

pub fn gateway_to(reach: Transport, rules: &str, log: &Arc<Mutex<Vec<String>>>) -> Gateway {
    let rules = engine::load_text(rules).unwrap();
    let server = ServerSpec::new("server", reach);
    let log = Arc::clone(log);
    let engine = Engine::builder(rules).keys(fixtures::keys()).build();
    Gateway::new(engine, [server]).with_log(move |line| log.lock().unwrap().push(line.to_owned()))
}

pub const NO_RULES: &str = "policies: []";

impl RunningGateway {
    pub async fn new(url: &str, rules: &str) -> Self {
        Self::with(url, rules, |server| server).await
    }

    pub async fn with(url: &str, rules: &str, server: impl FnOnce(HttpServer) -> HttpServer) -> Self {
        let log = Arc::default();
        Self::from_gateway(gateway(url, rules, &log), log, server).await
    }

    pub async fn from_gateway(
        gateway: Gateway,
        log: Arc<Mutex<Vec<String>>>,
        server: impl FnOnce(HttpServer) -> HttpServer,
    ) -> Self {
        Self::from_gateway_with(gateway, log, |_, http_server| server(http_server)).await
    }

    pub async fn from_gateway_with(
        gateway: Gateway,
        log: Arc<Mutex<Vec<String>>>,
        server: impl FnOnce(&Arc<Gateway>, HttpServer) -> HttpServer,
    ) -> Self {
        let gateway = Arc::new(gateway);
        let server = server(&gateway, HttpServer::new(Arc::clone(&gateway)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (end, told) = oneshot::channel();
        let ended = tokio::spawn(server.serve(listener, async move { drop(told.await) }));
        Self { address, gateway, log, end: Some(end), ended }
    }

    /// The keys that the gateway shares with its host.
    pub fn gateway_keys(&self) -> callgate::Keys {
        fixtures::keys()
    }

    /// Sends a raw request. The response can be read incrementally.
    pub async fn send(&self, request: &str) -> ResponseReader {
        let mut socket = TcpStream::connect(&self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        ResponseReader { socket, bytes: Vec::new() }
    }

    /// Posts a message with these headers, and reads the whole response.
    pub async fn post(&self, headers: &[(&str, &str)], body: &str) -> Response {
        let request = self.request("POST", headers, body);
        self.send(&request).await.response().await
    }

    /// Sends a request without a body.
    pub async fn send_without_body(&self, verb: &str, headers: &[(&str, &str)]) -> Response {
        let request = self.request(verb, headers, "");
        self.send(&request).await.response().await
    }

    /// A raw request with default headers. `headers` override them; an empty value removes a header.
    pub fn request(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut all = vec![
            ("host", self.address.as_str()),
            ("connection", "close"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        all.retain(|(name, _)| headers.iter().all(|(given, _)| given != name));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let headers: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{verb} /mcp HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    }

    /// Calls a tool with a stateless request.
    pub async fn call(&self, headers: &[(&str, &str)], tool: &str, arguments: Value) -> Response {
        let body = stateless_request(1, "tools/call", json!({ "name": tool, "arguments": arguments }));
        let mut all = vec![
            ("mcp-protocol-version", STATELESS_VERSION),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        all.extend(headers);
        self.post(&all, &body.to_string()).await
    }

    /// Initializes a session. Returns its id.
    pub async fn initialize_session(&self, headers: &[(&str, &str)]) -> String {
        let answer = self.post(headers, &initialize().to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let session = answer.header("mcp-session-id").expect("no session").to_owned();
        let mut all = vec![("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
        all.extend(headers);
        let told = self.post(&all, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        assert_eq!(told.status, 202, "{}", told.body);
        session
    }
}

pub const STATELESS_VERSION: &str = "2026-07-28";

pub fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } } })
}

/// A stateless request.
pub fn stateless_request(id: i64, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = STATELESS_VERSION.into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A response that is being read.
pub struct ResponseReader {
    socket: TcpStream,
    bytes: Vec<u8>,
}

impl ResponseReader {
    /// Reads until the response contains the text.
    pub async fn until(&mut self, text: &str) -> String {
        loop {
            let read = String::from_utf8_lossy(&self.bytes).into_owned();
            if read.contains(text) {
                return read;
            }
            let more = tokio::time::timeout(TIMEOUT, self.socket.read_buf(&mut self.bytes)).await;
            let more = more.unwrap_or_else(|_| panic!("timed out waiting for `{text}` after\n{read}"));
            assert!(more.unwrap_or_default() > 0, "the response ended before `{text}`:\n{read}");
        }
    }

    pub async fn response(mut self) -> Response {
        let read = tokio::time::timeout(TIMEOUT, self.socket.read_to_end(&mut self.bytes)).await;
        let _ = read.expect("timed out reading the response");
        Response::read(&String::from_utf8(self.bytes).unwrap())
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or_default();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Self { status, headers, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        callgate::json::from_str(&self.body).unwrap_or_else(|_| panic!("invalid JSON: {self:?}"))
    }

    /// The messages of an SSE stream.
    pub fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| callgate::json::from_str(data).unwrap()).collect()
    }

    /// The error code, or the reason code of the call's outcome.
    pub fn code(&self) -> Value {
        let json = self.json();
        match json["error"]["code"].clone() {
            Value::Null => json["result"]["_meta"]["dev.callgate/outcome"]["code"].clone(),
            code => code,
        }
    }
}

fn unchunked(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(rest.get(..size).unwrap_or(rest));
        text = rest.get(size + 2..).unwrap_or_default();
    }
    whole
}
