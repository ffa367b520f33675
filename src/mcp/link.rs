//! One client's connection with the servers behind it: what each says goes where it belongs, and tool calls go through policies.
//!
//! Messages keep their ids wherever they can. Where an id is taken already on the other side, the message gets another one there,
//! and its answer the old one again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::calls;
use super::frame::{Frame, Id, Kind, code};
use super::gateway::Gateway;
use super::listing::{self, KnownTools};
use super::method;
use super::outlet::{Outlet, QUEUE};
use super::server::{Connection, FromServer, Gone, ServerSpec};
use crate::session::ConcurrentSession;
use crate::text::inert;

/// One client's connection.
pub(super) struct Link {
    pub(super) gateway: Arc<Gateway>,
    pub(super) session: ConcurrentSession,
    /// What is vouched for of every call: what the operator says, and who the client is.
    pub(super) context: Value,
    servers: Vec<Server>,
    /// The client's requests that are not answered yet.
    asked: Mutex<HashMap<Id, Asked>>,
    /// Requests to the client that it has not answered yet.
    asking: Mutex<HashMap<Id, Asking>>,
    /// Where messages go that belong to no request.
    general: Outlet,
    /// Makes names of our own that no peer can guess.
    secret: String,
    count: AtomicU64,
}

/// One server of the connection.
pub(super) struct Server {
    pub(super) spec: Arc<ServerSpec>,
    connection: tokio::sync::RwLock<Option<Connection>>,
    /// Requests to it that it has not answered yet.
    awaiting: Mutex<HashMap<Id, Awaiting>>,
    pub(super) tools: KnownTools,
}

/// A request of the client.
struct Asked {
    outlet: Outlet,
    /// The token by which progress of it is told.
    progress: Option<Id>,
    /// To which server it went, and under which id.
    sent: Option<(usize, Id)>,
    /// Tells that the client does not want it any more.
    cancel: watch::Sender<bool>,
}

/// Who waits for a server's answer.
enum Awaiting {
    /// The client, by its own id.
    Client { id: Id, outlet: Outlet, then: Then },
    /// The gateway.
    Gateway(oneshot::Sender<Frame>),
}

/// What is done with a server's answer before the client gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    /// It lists tools.
    ShowTools,
}

/// Who waits for the client's answer.
enum Asking {
    /// A server, by its own id.
    Server(usize, Id),
    /// The gateway.
    Gateway(oneshot::Sender<Frame>),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept here is changed in single steps, so a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Connects a client to all servers. `general`: where messages go that belong to none of its requests.
    pub(super) fn open(gateway: &Arc<Gateway>, context: Value, general: Outlet) -> Result<Arc<Self>, Gone> {
        let secret = format!("callgate-{:016x}", fastrand::u64(..));
        let session = gateway.engine.session().named(secret.clone()).with_context(context.clone());
        let mut opened = Vec::new();
        for spec in &gateway.servers {
            let (events, heard) = mpsc::channel(QUEUE);
            let connection = Connection::open(spec, events, gateway.longest_message)
                .map_err(|Gone(why)| Gone(format!("the server `{}`: {why}", spec.name)))?;
            let server = Server {
                spec: Arc::clone(spec),
                connection: tokio::sync::RwLock::new(Some(connection)),
                awaiting: Mutex::default(),
                tools: KnownTools::default(),
            };
            opened.push((server, heard));
        }
        let (servers, heard): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let link = Arc::new(Self {
            gateway: Arc::clone(gateway),
            session: session.concurrent(),
            context,
            servers,
            asked: Mutex::default(),
            asking: Mutex::default(),
            general,
            secret,
            count: AtomicU64::new(0),
        });
        gateway.add_link(&link);
        for (index, heard) in heard.into_iter().enumerate() {
            tokio::spawn(listen(Arc::downgrade(&link), index, heard));
        }
        Ok(link)
    }

    pub(super) fn server(&self, index: usize) -> Option<&Server> {
        self.servers.get(index)
    }

    /// The server that has a tool, with the tool's own name; of a single server, every tool.
    pub(super) fn server_of<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        self.servers.iter().enumerate().find_map(|(index, server)| match &server.spec.prefix {
            None => Some((index, name)),
            Some(prefix) => Some((index, name.strip_prefix(prefix.as_str())?)),
        })
    }

    /// A name of ours that nobody else has.
    fn own_id(&self) -> Id {
        Id::text(&format!("{}-{}", self.secret, self.count.fetch_add(1, Ordering::Relaxed)))
    }

    /// A name for a call, which no other call has that the same store knows.
    pub(super) fn call_id(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        format!("{}-{count}", self.secret.trim_start_matches("callgate-").get(..8).unwrap_or("call"))
    }

    // What the client says.

    /// Takes a message of the client. What answers it, and what belongs to it, goes to `outlet`.
    pub(super) async fn from_client(self: &Arc<Self>, frame: Frame, outlet: &Outlet) {
        match frame.kind().clone() {
            Kind::Request(id) => self.request(frame, id, outlet).await,
            Kind::Notification => self.notification(frame).await,
            Kind::Response(id) => self.answered_by_client(frame, &id).await,
            Kind::Complaint => self.gateway.log("the client could not read a message"),
        }
    }

    async fn request(self: &Arc<Self>, frame: Frame, id: Id, outlet: &Outlet) {
        let asked = Asked {
            outlet: outlet.clone(),
            progress: frame.meta("progressToken").and_then(Id::of),
            sent: None,
            cancel: watch::Sender::new(false),
        };
        let cancelled = asked.cancel.subscribe();
        let is_taken = {
            let mut all = locked(&self.asked);
            match all.entry(id.clone()) {
                std::collections::hash_map::Entry::Occupied(_) => true,
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(asked);
                    false
                }
            }
        };
        if is_taken {
            // Its answer could not be told from the other one's.
            let message = "a request with this id is not answered yet";
            return outlet.send(Frame::error(Some(&id), code::INVALID_REQUEST, message, None)).await;
        }
        match frame.method() {
            method::TOOLS_CALL => {
                let (link, outlet) = (Arc::clone(self), outlet.clone());
                tokio::spawn(async move {
                    let answer = calls::call(&link, frame, &id, &outlet, cancelled).await;
                    link.finish(&id, &outlet, answer).await;
                });
            }
            method::TOOLS_LIST => self.relay(0, frame, id, outlet, Then::ShowTools).await,
            method if method::may_be_read_as_tools_call(method) => {
                let message = "there is no such method; tools are called by `tools/call`";
                let answer = Frame::error(Some(&id), code::METHOD_NOT_FOUND, message, None);
                self.finish(&id, outlet, answer).await;
            }
            _ => self.relay(0, frame, id, outlet, Then::Nothing).await,
        }
    }

    /// Answers a request of the client.
    async fn finish(&self, id: &Id, outlet: &Outlet, answer: Frame) {
        locked(&self.asked).remove(id);
        outlet.send(answer.with_id(id)).await;
    }

    /// Passes a request on to a server.
    async fn relay(&self, index: usize, frame: Frame, id: Id, outlet: &Outlet, then: Then) {
        let waits = Awaiting::Client { id: id.clone(), outlet: outlet.clone(), then };
        if let Err(Gone(why)) = self.send_request(index, frame, &id, waits).await {
            let answer = Frame::error(Some(&id), code::INTERNAL_ERROR, &why, None);
            self.finish(&id, outlet, answer).await;
        }
    }

    /// Sends a request of the client to a server, under the client's id where that is free there.
    async fn send_request(&self, index: usize, frame: Frame, id: &Id, waits: Awaiting) -> Result<(), Gone> {
        let server = self.servers.get(index).ok_or_else(|| Gone("there is no such server".to_owned()))?;
        let sent_as = {
            let mut awaiting = locked(&server.awaiting);
            let free = if awaiting.contains_key(id) { self.own_id() } else { id.clone() };
            awaiting.insert(free.clone(), waits);
            free
        };
        if let Some(asked) = locked(&self.asked).get_mut(id) {
            asked.sent = Some((index, sent_as.clone()));
        }
        let sent = server.send(frame.with_id(&sent_as)).await;
        if sent.is_err() {
            locked(&server.awaiting).remove(&sent_as);
        }
        sent
    }

    /// Sends a request of the client's, as far as policies let it, and waits for what the server answers.
    pub(super) async fn ask_for_client(&self, index: usize, frame: Frame, id: &Id) -> Result<Frame, Gone> {
        let (tell, told) = oneshot::channel();
        self.send_request(index, frame, id, Awaiting::Gateway(tell)).await?;
        told.await.map_err(|_| Gone("the server is gone".to_owned()))
    }

    /// Asks a server something of the gateway's own.
    pub(super) async fn ask_server(&self, index: usize, method: &str, params: Value) -> Result<Frame, Gone> {
        let id = self.own_id();
        let (tell, told) = oneshot::channel();
        self.send_request(index, Frame::request(&id, method, params), &id, Awaiting::Gateway(tell)).await?;
        told.await.map_err(|_| Gone("the server is gone".to_owned()))
    }

    /// Tells a server that a request of the client is not wanted any more.
    pub(super) async fn cancel_at_server(&self, id: &Id, reason: Option<&Value>) {
        let sent = locked(&self.asked).get(id).and_then(|asked| asked.sent.clone());
        if let Some((index, sent_as)) = sent
            && let Some(server) = self.servers.get(index)
        {
            let mut params = json!({ "requestId": sent_as.to_json() });
            if let (Some(reason), Some(params)) = (reason, params.as_object_mut()) {
                params.insert("reason".to_owned(), reason.clone());
            }
            let _ = server.send(Frame::notification(method::CANCELLED, params)).await;
        }
    }

    async fn notification(&self, frame: Frame) {
        if frame.method() == method::CANCELLED {
            let Some(id) = frame.param("requestId").and_then(Id::of) else { return };
            if let Some(asked) = locked(&self.asked).get(&id) {
                asked.cancel.send_replace(true);
            }
            return self.cancel_at_server(&id, frame.param("reason")).await;
        }
        if method::may_be_read_as_tools_call(frame.method()) {
            return self.gateway.log("a tool call without id is not passed on");
        }
        for server in &self.servers {
            let _ = server.send(frame.clone()).await;
        }
    }

    async fn answered_by_client(&self, frame: Frame, id: &Id) {
        let waits = locked(&self.asking).remove(id);
        match waits {
            None => self.gateway.log("the client answered what nobody asked"),
            Some(Asking::Gateway(tell)) => drop(tell.send(frame)),
            Some(Asking::Server(index, own)) => {
                if let Some(server) = self.servers.get(index) {
                    let _ = server.send(frame.with_id(&own)).await;
                }
            }
        }
    }

    /// Asks the client something of the gateway's own, as part of what belongs to one of its requests.
    pub(super) async fn ask_client(&self, method: &str, params: Value, outlet: &Outlet) -> Option<Frame> {
        let id = self.own_id();
        let (tell, told) = oneshot::channel();
        locked(&self.asking).insert(id.clone(), Asking::Gateway(tell));
        outlet.send(Frame::request(&id, method, params)).await;
        let answer = told.await.ok();
        locked(&self.asking).remove(&id);
        answer
    }

    // What servers say.

    async fn from_server(self: &Arc<Self>, index: usize, said: FromServer) {
        let Some(server) = self.servers.get(index) else { return };
        match said {
            FromServer::Garbage(why) => {
                self.gateway.log(&format!(
                    "the server `{}` says what is no message: {}",
                    server.spec.name,
                    inert(&why)
                ));
            }
            FromServer::Trouble(why) => {
                self.gateway.log(&format!("the server `{}`: {}", server.spec.name, inert(&why)));
            }
            FromServer::Gone(Gone(why)) => self.lost(server, &why).await,
            FromServer::Frame { frame, about } => match frame.kind().clone() {
                Kind::Response(id) => self.answered_by_server(index, server, frame, &id).await,
                Kind::Request(id) => self.asked_by_server(index, frame, id, about.as_ref()).await,
                Kind::Notification => {
                    if frame.method() == method::TOOLS_CHANGED {
                        server.tools.forget();
                    }
                    let outlet = self.outlet_about(&frame, about.as_ref());
                    outlet.send(frame).await;
                }
                Kind::Complaint => {
                    let name = &server.spec.name;
                    self.gateway.log(&format!("the server `{name}` could not read a message"));
                }
            },
        }
    }

    async fn answered_by_server(self: &Arc<Self>, index: usize, server: &Server, frame: Frame, id: &Id) {
        let waits = locked(&server.awaiting).remove(id);
        match waits {
            None => {
                let name = &server.spec.name;
                self.gateway.log(&format!("the server `{name}` answered what nobody asked"));
            }
            Some(Awaiting::Gateway(tell)) => drop(tell.send(frame)),
            Some(Awaiting::Client { id, outlet, then }) => {
                let frame = match then {
                    Then::Nothing => frame,
                    Then::ShowTools => listing::shown(self, index, frame),
                };
                self.finish(&id, &outlet, frame).await;
            }
        }
    }

    async fn asked_by_server(&self, index: usize, frame: Frame, id: Id, about: Option<&Id>) {
        let outlet = self.outlet_about(&frame, about);
        let asked_as = {
            let mut asking = locked(&self.asking);
            let free = if asking.contains_key(&id) { self.own_id() } else { id.clone() };
            asking.insert(free.clone(), Asking::Server(index, id));
            free
        };
        outlet.send(frame.with_id(&asked_as)).await;
    }

    /// Where a message of a server goes: to what it is about, where its transport or its progress token says so, or to the only
    /// request that is under way.
    fn outlet_about(&self, frame: &Frame, about: Option<&Id>) -> Outlet {
        let asked = locked(&self.asked);
        let token = frame.param("progressToken").and_then(Id::of);
        let by_token =
            token.and_then(|token| asked.values().find(|asked| asked.progress.as_ref() == Some(&token)));
        let by_request =
            || asked.values().find(|asked| asked.sent.as_ref().map(|(_, id)| id) == about && about.is_some());
        by_token.or_else(by_request).map_or_else(|| self.general.clone(), |asked| asked.outlet.clone())
    }

    async fn lost(&self, server: &Server, why: &str) {
        *server.connection.write().await = None;
        let why = format!("the server `{}` is gone: {why}", server.spec.name);
        self.gateway.log(&why);
        let waiting: Vec<Awaiting> = locked(&server.awaiting).drain().map(|(_, waits)| waits).collect();
        for waits in waiting {
            if let Awaiting::Client { id, outlet, .. } = waits {
                let answer = Frame::error(Some(&id), code::INTERNAL_ERROR, &why, None);
                self.finish(&id, &outlet, answer).await;
            }
        }
    }

    /// Tells the client that its tools may be others now.
    pub(super) async fn tell_tools_changed(&self) {
        self.general.send(Frame::notification(method::TOOLS_CHANGED, json!({}))).await;
    }

    /// Whether requests of the client are not answered yet.
    pub(super) fn is_busy(&self) -> bool {
        !locked(&self.asked).is_empty()
    }

    /// The client is gone: its servers are to end. Returns when they have.
    pub(super) async fn close(&self) {
        let mut ends = Vec::new();
        for server in &self.servers {
            if let Some(connection) = server.connection.write().await.take() {
                ends.push(connection.close());
            }
        }
        for mut ended in ends {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

impl Server {
    async fn send(&self, frame: Frame) -> Result<(), Gone> {
        match &*self.connection.read().await {
            Some(connection) => connection.send(frame).await,
            None => Err(Gone(format!("the server `{}` is gone", self.spec.name))),
        }
    }
}

async fn listen(link: Weak<Link>, index: usize, mut heard: mpsc::Receiver<FromServer>) {
    while let Some(said) = heard.recv().await {
        let Some(link) = link.upgrade() else { return };
        link.from_server(index, said).await;
    }
}
