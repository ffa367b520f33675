//! Many connections at once, to the server as a process.

use std::net::{Ipv4Addr, SocketAddr};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::process::ServerProcess;

const IDLE: u16 = 10_000;
/// Connections of one network.
const PER_NETWORK: u16 = 500;

/// A connection from a network of this machine that sends one request and stays open.
async fn idle_connection(address: SocketAddr, number: u16) -> TcpStream {
    let [high, low] = (number / PER_NETWORK).to_be_bytes();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 1 + high, low, 1), 0))).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200", "connection {number}");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_connections_leave_the_server_responsive() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(IDLE) + 500;
    assert!(
        limit.maximum.is_none_or(|most| most >= wanted),
        "this test needs {wanted} open files: {limit:?}"
    );
    // The server itself raises the limit that it inherits.
    setrlimit(Resource::Nofile, Rlimit { current: Some(1_024), maximum: limit.maximum }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yaml"), "policies: []").unwrap();
    let server = ServerProcess::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).unwrap();
    let mut open = Vec::new();
    for number in 0..IDLE {
        open.push(idle_connection(server.address, number).await);
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = r#"{"call":{"tool":"read","input":{}}}"#;
    let request = format!(
        "POST /v1/decide HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""effect":"run""#), "{answer}");
}
