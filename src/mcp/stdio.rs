//! The door for one client on stdin and stdout.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, BufReader};

use super::frame::{Frame, Malformed};
use super::gateway::Gateway;
use super::lines::{self, Line, Lines};
use super::link::{Link, Who};
use super::outlet::Outlet;
use super::requester::{self, Unnamed};
use super::server::Gone;

/// How long requests are waited for whose client has closed its input.
const LAST_ANSWERS: Duration = Duration::from_secs(4);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long it may take until all servers have ended, and then until the client has read what it was told last.
const ENDING: Duration = Duration::from_secs(10);

impl Gateway {
    /// Serves one client until it says nothing more; its servers have ended then. Errors: a server that can't be started.
    pub async fn serve_lines(
        self: Arc<Self>,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), String> {
        let (outlet, outgoing) = Outlet::new();
        let mut writer = tokio::spawn(lines::write(to, outgoing));
        let unnamed = Unnamed::Lines { session: self.session.as_deref() };
        let who = Who {
            requester: requester::name(&self.context, unnamed),
            context: self.context.clone(),
            session: self.session.clone(),
        };
        let link = Link::open(&self, &who, outlet.clone()).map_err(|Gone(why)| why)?;
        let mut lines = Lines::new(BufReader::with_capacity(64 << 10, from), self.longest_message);
        loop {
            match lines.next().await {
                Line::Text(text) => match Frame::parse(&text) {
                    Ok(frame) => link.from_client(frame, &outlet).await,
                    Err(why) => outlet.send(why.answer()).await,
                },
                Line::Unreadable { why, text } => {
                    outlet.send(Malformed::unreadable(&text, why).answer()).await;
                }
                Line::TooLong(why) => {
                    let answer = Frame::error(None, super::frame::code::PARSE_ERROR, &why, None);
                    outlet.send(answer).await;
                }
                Line::End => break,
            }
            if outlet.is_closed() {
                break;
            }
        }
        // What was asked before the end is still answered, as a server without a gateway would; but who asks the client waits in vain.
        let answered = async {
            while link.is_busy() && !outlet.is_closed() {
                link.no_answers_come().await;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let _ = tokio::time::timeout(LAST_ANSWERS, answered).await;
        let _ = tokio::time::timeout(ENDING, link.close()).await;
        drop((link, outlet));
        if tokio::time::timeout(ENDING, &mut writer).await.is_err() {
            writer.abort();
        }
        Ok(())
    }
}
