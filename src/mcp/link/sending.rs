//! What is sent to servers, which are started again where they are gone.

use std::sync::Weak;
use std::time::{Duration, Instant};

use tokio::sync::{RwLockReadGuard, mpsc, oneshot};

use super::server_side::listen;
use super::{Asking, Awaiting, Connected, Link, Server, locked};
use crate::host::BoxFuture;
use crate::json::{Value, json};
use crate::mcp::frame::{Frame, Id, code};
use crate::mcp::method;
use crate::mcp::outlet::QUEUE;
use crate::mcp::server::{Connection, Gone};

/// So often a server is started again within a minute.
const RESTARTS: usize = 5;
const RESTARTS_WITHIN: Duration = Duration::from_secs(60);
/// How long a server that was started again has to take the connection.
const GREETING: Duration = Duration::from_secs(20);

impl Link {
    /// Sends a request of the client to a server, under the client's id where that is free there.
    pub(super) async fn send_request(
        &self,
        index: usize,
        frame: Frame,
        id: &Id,
        waits: Awaiting,
    ) -> Result<(), Gone> {
        let server = self.servers.get(index).ok_or_else(|| Gone("there is no such server".to_owned()))?;
        let connected = self.connected(index, server).await?;
        // While the connection is held it is not lost, so what is noted as sent to it is told of its end.
        let Some(connection) = &connected.connection else { return Err(gone(server)) };
        let sent_as = {
            let mut awaiting = locked(&server.awaiting);
            let free = if awaiting.contains_key(id) { self.own_id() } else { id.clone() };
            awaiting.insert(free.clone(), (connected.generation, waits));
            free
        };
        let is_wanted = locked(&self.asked).get_mut(id).is_none_or(|asked| {
            asked.sent.push((index, sent_as.clone()));
            !*asked.cancel.borrow()
        });
        let sent = match is_wanted {
            true => connection.send(frame.with_id(&sent_as)).await,
            // It was cancelled while the server was started again.
            false => Err(Gone("the client does not want it any more".to_owned())),
        };
        if sent.is_err() {
            locked(&server.awaiting).remove(&sent_as);
        }
        sent
    }

    /// Sends a message to a server, which is started again for it where it is gone.
    pub(super) async fn send(&self, index: usize, frame: Frame) -> Result<(), Gone> {
        let server = self.servers.get(index).ok_or_else(|| Gone("there is no such server".to_owned()))?;
        match &self.connected(index, server).await?.connection {
            Some(connection) => connection.send(frame).await,
            None => Err(gone(server)),
        }
    }

    /// How a server is reached, which is started again where it is gone.
    async fn connected<'s>(
        &self,
        index: usize,
        server: &'s Server,
    ) -> Result<RwLockReadGuard<'s, Connected>, Gone> {
        let connected = server.connected.read().await;
        if connected.connection.is_some() {
            return Ok(connected);
        }
        drop(connected);
        self.connect_again(index).await?;
        Ok(server.connected.read().await)
    }

    /// Sends a request of the client's, as far as policies let it, and waits for what the server answers.
    pub(in crate::mcp) async fn ask_for_client(
        &self,
        index: usize,
        frame: Frame,
        id: &Id,
    ) -> Result<Frame, Gone> {
        let told = self.begin_for_client(index, frame, id).await?;
        told.await.map_err(|_| Gone("the server is gone".to_owned()))
    }

    /// The same, without waiting for the answer yet.
    pub(in crate::mcp) async fn begin_for_client(
        &self,
        index: usize,
        frame: Frame,
        id: &Id,
    ) -> Result<oneshot::Receiver<Frame>, Gone> {
        let (tell, told) = oneshot::channel();
        self.send_request(index, frame, id, Awaiting::Gateway(tell)).await?;
        Ok(told)
    }

    /// Asks a server something of the gateway's own.
    pub(in crate::mcp) async fn ask_server(
        &self,
        index: usize,
        method: &str,
        params: Value,
    ) -> Result<Frame, Gone> {
        let id = self.own_id();
        let (tell, told) = oneshot::channel();
        self.send_request(index, Frame::request(&id, method, params), &id, Awaiting::Gateway(tell)).await?;
        told.await.map_err(|_| Gone("the server is gone".to_owned()))
    }

    /// Tells a server something of the gateway's own.
    pub(in crate::mcp) async fn tell_server(&self, index: usize, frame: Frame) {
        let _ = self.send(index, frame).await;
    }

    /// A server's connection ended. Whoever waits for an answer of it is told; the next message to it starts it again.
    pub(super) async fn lost(&self, index: usize, generation: u64, why: &str) {
        let Some(server) = self.servers.get(index) else { return };
        let why = format!("the server `{}` is gone: {why}", server.spec.name);
        // First who waits: whoever starts it again waits, too, and holds the connection meanwhile.
        self.tell_of_loss(server, generation, &why).await;
        server.tools.forget();
        let mut connected = server.connected.write().await;
        if connected.generation == generation && connected.connection.take().is_some() {
            self.gateway.log(&why);
        }
        drop(connected);
        // Then who was about to send while the connection was still there.
        self.tell_of_loss(server, generation, &why).await;
    }

    /// Tells whoever waits for an answer of a connection that is lost.
    async fn tell_of_loss(&self, server: &Server, generation: u64, why: &str) {
        let waiting: Vec<Awaiting> = {
            let mut awaiting = locked(&server.awaiting);
            let lost = awaiting.extract_if(|_, (sent_to, _)| *sent_to == generation);
            lost.map(|(_, (_, waits))| waits).collect()
        };
        for waits in waiting {
            if let Awaiting::Client { id, outlet, .. } = waits {
                self.fail(&id, &outlet, why).await;
            }
        }
    }

    /// Connects to a server again that was lost, and greets it as the client did.
    pub(super) fn connect_again(&self, index: usize) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(self.start_again(index))
    }

    pub(super) async fn start_again(&self, index: usize) -> Result<(), Gone> {
        let server = self.servers.get(index).ok_or_else(|| Gone("there is no such server".to_owned()))?;
        let gone = |why: &str| Gone(format!("the server `{}` is gone: {why}", server.spec.name));
        let mut connected = server.connected.write().await;
        if connected.connection.is_some() {
            return Ok(());
        }
        if connected.is_closed {
            return Err(gone("the connection is closed"));
        }
        connected.starts.retain(|at| at.elapsed() < RESTARTS_WITHIN);
        if connected.starts.len() >= RESTARTS {
            return Err(gone("it was started too often of late"));
        }
        connected.starts.push(Instant::now());
        connected.generation += 1;
        let generation = connected.generation;
        let (events, heard) = mpsc::channel(QUEUE);
        let connection = Connection::open(&server.spec, events, self.gateway.longest_message);
        // The command of a server is for the operator, not for agents.
        let connection = connection.map_err(|Gone(why)| {
            self.log_of(index, &why);
            gone("it can't be started")
        })?;
        tokio::spawn(listen(Weak::clone(&self.me), index, generation, heard));
        if let Some(greeting) = self.client.greeting() {
            let id = self.own_id();
            let (tell, told) = oneshot::channel();
            locked(&server.awaiting).insert(id.clone(), (generation, Awaiting::Gateway(tell)));
            connection.send(greeting.with_id(&id)).await?;
            let answer = tokio::time::timeout(GREETING, told).await;
            if !matches!(&answer, Ok(Ok(answer)) if answer.result_value().is_some()) {
                return Err(gone("it does not take the connection again"));
            }
            connection.send(Frame::notification(method::INITIALIZED, json!({}))).await?;
        }
        self.log_of(index, "it was started again");
        connected.connection = Some(connection);
        Ok(())
    }

    /// The client says nothing more: who waits for an answer of it is told that none comes.
    pub(in crate::mcp) async fn no_answers_come(&self) {
        let asking: Vec<Asking> = locked(&self.asking).drain().map(|(_, waits)| waits).collect();
        for waits in asking {
            // The gateway itself is told by the end of what it waits for.
            let Asking::Server(index, id) = waits else { continue };
            let Some(server) = self.servers.get(index) else { continue };
            let message = "the client says nothing more";
            let answer = Frame::error(Some(&id), code::INTERNAL_ERROR, message, None);
            // A server that is gone is not started again for this.
            if let Some(connection) = &server.connected.read().await.connection {
                let _ = connection.send(answer).await;
            }
        }
    }

    /// The client is gone: its servers are to end. Returns when they have.
    pub(in crate::mcp) async fn close(&self) {
        locked(&self.asking).clear();
        let mut ends = Vec::new();
        for server in &self.servers {
            let mut connected = server.connected.write().await;
            connected.is_closed = true;
            ends.extend(connected.connection.take().map(Connection::close));
        }
        for mut ended in ends {
            let _ = ended.wait_for(|ended| *ended).await;
        }
        // What they have not answered is not answered any more.
        for server in &self.servers {
            let generation = server.connected.read().await.generation;
            self.tell_of_loss(server, generation, "the gateway ends").await;
        }
        // What was asked meanwhile.
        locked(&self.asking).clear();
    }
}

fn gone(server: &Server) -> Gone {
    Gone(format!("the server `{}` is gone", server.spec.name))
}
