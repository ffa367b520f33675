//! A client of a gateway over stdio, in this process.

use std::sync::Arc;

use callgate::json::{self, Value, json};
use callgate_mcp::Gateway;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use super::harness::TIMEOUT;

/// One client over stdio.
pub struct Client {
    say: WriteHalf<DuplexStream>,
    heard: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    pub async fn new(gateway: Gateway, capabilities: Value) -> Self {
        let (client, theirs) = tokio::io::duplex(1 << 20);
        let (from, to) = tokio::io::split(theirs);
        tokio::spawn(Arc::new(gateway).serve_stdio(from, to));
        let (heard, say) = tokio::io::split(client);
        let mut client = Self { say, heard: BufReader::new(heard).lines() };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "t", "version": "0" } });
        client.request(0, "initialize", params).await;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    pub async fn send(&mut self, message: &Value) {
        self.say.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub async fn start(&mut self, id: i64, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    /// The next message that the client receives.
    pub async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(TIMEOUT, self.heard.next_line()).await;
        json::parse(&line.expect("no message").unwrap().expect("the gateway has ended")).unwrap()
    }

    /// The response to a request.
    pub async fn request(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.start(id, method, params).await;
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub async fn read(&mut self, uri: &str) -> Value {
        self.request(7, "resources/read", json!({ "uri": uri })).await
    }

    pub async fn call(&mut self, tool: &str) -> Value {
        self.request(8, "tools/call", json!({ "name": tool, "arguments": {} })).await
    }
}
