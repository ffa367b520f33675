//! The stdio listener: serves one client on stdin and stdout, one message per line.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, BufReader};

use super::client_info::ClientContext;
use super::client_sender::ClientSender;
use super::connection::ClientConnection;
use super::gateway::Gateway;
use super::jsonrpc::{JsonRpcMessage, MessageError};
use super::line_codec::{self, Line, LineReader};
use super::requester::{self, ClientSource};
use super::upstream_event::UpstreamError;

/// How long to wait for unanswered requests after the client has closed its input.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Timeout for all servers to end, and then for the client to read the last messages.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

impl Gateway {
    /// Serves one client until its input ends; its servers have ended when this returns.
    ///
    /// # Errors
    /// A server can't be started.
    pub async fn serve_stdio(
        self: Arc<Self>,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), UpstreamError> {
        let (sender, outgoing) = ClientSender::new();
        let mut writer = tokio::spawn(line_codec::write_messages(to, outgoing));
        let unnamed = ClientSource::Stdio { session: self.session.as_deref() };
        let client = ClientContext {
            requester: requester::name(&self.context, unnamed),
            context: self.context.clone(),
            session: self.session.clone(),
        };
        let connection = ClientConnection::open(&self, &client, sender.clone())?;
        let mut lines = LineReader::new(BufReader::with_capacity(64 << 10, from), self.max_message_size);
        loop {
            match lines.next().await {
                Line::Text(text) => match JsonRpcMessage::parse(&text) {
                    Ok(message) => connection.handle_client_message(message, &sender).await,
                    Err(why) => sender.send(why.to_response()).await,
                },
                Line::NotUtf8 { why, text } => {
                    sender.send(MessageError::unparsable(&text, why).to_response()).await;
                }
                Line::TooLong(why) => {
                    let response =
                        JsonRpcMessage::error_response(None, super::jsonrpc::code::PARSE_ERROR, &why, None);
                    sender.send(response).await;
                }
                Line::End => break,
            }
            if sender.is_closed() {
                break;
            }
        }
        // Requests before the end are still answered, as without a gateway; requests to the client fail, because no response can arrive.
        let answered = async {
            while connection.is_busy() && !sender.is_closed() {
                connection.fail_server_requests().await;
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(RESPONSE_TIMEOUT, answered).await;
        let closed = async {
            connection.close().await;
            self.close_shared_servers().await;
        };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, closed).await;
        drop((connection, sender));
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut writer).await.is_err() {
            writer.abort();
        }
        Ok(())
    }
}
