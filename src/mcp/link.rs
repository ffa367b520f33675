//! One client's connection with the servers behind it: what each says goes where it belongs, and tool calls go through policies.
//!
//! Messages keep their ids wherever they can. Where an id is taken already on the other side, the message gets another one there,
//! and its answer the old one again.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::asking::{self, Waiting};
use super::calls;
use super::client::Client;
use super::frame::{Frame, Id, Kind, code};
use super::gateway::Gateway;
use super::http_words::META_SUBSCRIPTION;
use super::listing::{self, KnownTools};
use super::many;
use super::method;
use super::outlet::{Outlet, QUEUE};
use super::server::{Connection, FromServer, Gone, ServerSpec};
use crate::call::ToolCall;
use crate::engine::Engine;
use crate::host::BoxFuture;
use crate::policy::Chains;
use crate::session::ConcurrentSession;
use crate::text::inert;

/// Calls of one connection that wait for people, so that an identical one goes on. Of more the oldest is forgotten: it is asked
/// about anew.
const WAITING: usize = 256;

/// So often a server is started again within a minute.
const RESTARTS: usize = 5;
const RESTARTS_WITHIN: Duration = Duration::from_secs(60);
/// How long a server that was started again has to take the connection.
const GREETING: Duration = Duration::from_secs(20);
/// How long an answer is passed on that is not wanted any more.
pub(super) const LATE_ANSWERS: Duration = Duration::from_secs(10);

/// Whom a connection serves, as far as its transport has verified it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Who {
    /// What is vouched for of every call: principal, roles, tenant, anything.
    pub context: Value,
    /// The session that its calls belong to, where it is to go on beyond the connection; otherwise it is one of its own.
    pub session: Option<String>,
}

/// One client's connection.
pub(super) struct Link {
    me: Weak<Self>,
    pub(super) gateway: Arc<Gateway>,
    pub(super) session: ConcurrentSession,
    /// What is vouched for of every call: what the operator says, and who the client is.
    pub(super) context: Value,
    pub(super) client: Client,
    servers: Vec<Server>,
    waiting: Mutex<VecDeque<Waiting>>,
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
    connected: tokio::sync::RwLock<Connected>,
    /// Requests to it that it has not answered yet.
    awaiting: Mutex<HashMap<Id, Awaiting>>,
    pub(super) tools: KnownTools,
}

/// How a server is reached now.
struct Connected {
    connection: Option<Connection>,
    /// Which connection it is, from 0.
    generation: u64,
    /// When it was started again of late.
    starts: Vec<Instant>,
    /// It is not started again.
    is_closed: bool,
}

/// A request of the client.
struct Asked {
    outlet: Outlet,
    /// The token by which progress of it is told.
    progress: Option<Id>,
    /// To which servers it went, and under which ids.
    sent: Vec<(usize, Id)>,
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
    pub(super) fn open(gateway: &Arc<Gateway>, who: Who, general: Outlet) -> Result<Arc<Self>, Gone> {
        Self::open_again(gateway, who, general, None)
    }

    /// The same for a client whose session goes on after an earlier connection.
    pub(super) fn open_again(
        gateway: &Arc<Gateway>,
        who: Who,
        general: Outlet,
        going_on: Option<ConcurrentSession>,
    ) -> Result<Arc<Self>, Gone> {
        let secret = format!("callgate-{:016x}", fastrand::u64(..));
        let Who { context, session } = who;
        let session = session.unwrap_or_else(|| secret.clone());
        let session = gateway.engine.session().named(session).with_context(context.clone());
        let mut opened = Vec::new();
        for spec in &gateway.servers {
            let (events, heard) = mpsc::channel(QUEUE);
            let connection = Connection::open(spec, events, gateway.longest_message)
                .map_err(|Gone(why)| Gone(format!("the server `{}`: {why}", spec.name)))?;
            let server = Server {
                spec: Arc::clone(spec),
                connected: tokio::sync::RwLock::new(Connected {
                    connection: Some(connection),
                    generation: 0,
                    starts: Vec::new(),
                    is_closed: false,
                }),
                awaiting: Mutex::default(),
                tools: KnownTools::default(),
            };
            opened.push((server, heard));
        }
        let (servers, heard): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let link = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            gateway: Arc::clone(gateway),
            session: going_on.unwrap_or_else(|| session.concurrent_with(rules_of(gateway))),
            context,
            client: Client::default(),
            servers,
            waiting: Mutex::default(),
            asked: Mutex::default(),
            asking: Mutex::default(),
            general,
            secret,
            count: AtomicU64::new(0),
        });
        gateway.add_link(&link);
        for (index, heard) in heard.into_iter().enumerate() {
            tokio::spawn(listen(Arc::downgrade(&link), index, 0, heard));
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
            sent: Vec::new(),
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
                    match calls::call(&link, frame, &id, &outlet, cancelled).await {
                        Some(answer) => link.finish(&id, &outlet, answer).await,
                        None => drop(locked(&link.asked).remove(&id)),
                    }
                });
            }
            method if method::may_be_read_as_tools_call(method) => {
                let message = "there is no such method; tools are called by `tools/call`";
                let answer = Frame::error(Some(&id), code::METHOD_NOT_FOUND, message, None);
                self.finish(&id, outlet, answer).await;
            }
            method => {
                if method == method::INITIALIZE {
                    self.client.greet(&frame);
                }
                if self.servers.len() > 1 {
                    let (link, outlet) = (Arc::clone(self), outlet.clone());
                    tokio::spawn(async move {
                        let answer = many::answer(&link, frame, &id).await;
                        link.finish(&id, &outlet, answer).await;
                    });
                    return;
                }
                let then = if method == method::TOOLS_LIST { Then::ShowTools } else { Then::Nothing };
                self.relay(0, frame, id, outlet, then).await;
            }
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
            asked.sent.push((index, sent_as.clone()));
        }
        let sent = self.send(index, frame.with_id(&sent_as)).await;
        if sent.is_err() {
            locked(&server.awaiting).remove(&sent_as);
        }
        sent
    }

    /// Sends a message to a server, which is started again for it where it is gone.
    async fn send(&self, index: usize, frame: Frame) -> Result<(), Gone> {
        let server = self.servers.get(index).ok_or_else(|| Gone("there is no such server".to_owned()))?;
        if server.connected.read().await.connection.is_none() {
            self.connect_again(index).await?;
        }
        match &server.connected.read().await.connection {
            Some(connection) => connection.send(frame).await,
            None => Err(Gone(format!("the server `{}` is gone", server.spec.name))),
        }
    }

    /// Sends a request of the client's, as far as policies let it, and waits for what the server answers.
    pub(super) async fn ask_for_client(&self, index: usize, frame: Frame, id: &Id) -> Result<Frame, Gone> {
        let told = self.begin_for_client(index, frame, id).await?;
        told.await.map_err(|_| Gone("the server is gone".to_owned()))
    }

    /// The same, without waiting for the answer yet.
    pub(super) async fn begin_for_client(
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
    pub(super) async fn ask_server(&self, index: usize, method: &str, params: Value) -> Result<Frame, Gone> {
        let id = self.own_id();
        let (tell, told) = oneshot::channel();
        self.send_request(index, Frame::request(&id, method, params), &id, Awaiting::Gateway(tell)).await?;
        told.await.map_err(|_| Gone("the server is gone".to_owned()))
    }

    /// Tells a server something of the gateway's own.
    pub(super) async fn tell_server(&self, index: usize, frame: Frame) {
        let _ = self.send(index, frame).await;
    }

    /// Tells a server that a request of the client is not wanted any more.
    pub(super) async fn cancel_at_server(&self, id: &Id, reason: Option<&Value>) {
        let sent = locked(&self.asked).get(id).map(|asked| asked.sent.clone()).unwrap_or_default();
        for (index, sent_as) in sent {
            let mut params = json!({ "requestId": sent_as.to_json() });
            if let (Some(reason), Some(params)) = (reason, params.as_object_mut()) {
                params.insert("reason".to_owned(), reason.clone());
            }
            let _ = self.send(index, Frame::notification(method::CANCELLED, params)).await;
        }
    }

    async fn notification(&self, frame: Frame) {
        if frame.method() == method::CANCELLED {
            let Some(id) = frame.param("requestId").and_then(Id::of) else { return };
            if let Some(asked) = locked(&self.asked).get(&id) {
                asked.cancel.send_replace(true);
            }
            self.cancel_at_server(&id, frame.param("reason")).await;
            tokio::spawn(forget_cancelled(Weak::clone(&self.me), id));
            return;
        }
        if method::may_be_read_as_tools_call(frame.method()) {
            return self.gateway.log("a tool call without id is not passed on");
        }
        for index in 0..self.servers.len() {
            let _ = self.send(index, frame.clone()).await;
        }
    }

    async fn answered_by_client(&self, frame: Frame, id: &Id) {
        let waits = locked(&self.asking).remove(id);
        match waits {
            None => self.gateway.log("the client answered what nobody asked"),
            Some(Asking::Gateway(tell)) => drop(tell.send(frame)),
            Some(Asking::Server(index, own)) => {
                let _ = self.send(index, frame.with_id(&own)).await;
            }
        }
    }

    /// Tells of trouble with a server.
    pub(super) fn log_of(&self, index: usize, message: &str) {
        let name = self.servers.get(index).map_or("", |server| &server.spec.name);
        self.gateway.log(&format!("the server `{name}`: {message}"));
    }

    /// Puts a server's prefix before the names of what it has.
    pub(super) fn prefix_names(&self, index: usize, items: &mut [Value]) {
        let Some(prefix) = self.servers.get(index).and_then(|server| server.spec.prefix.as_ref()) else {
            return;
        };
        for item in items {
            if let Some(Value::String(name)) = item.get_mut("name") {
                name.insert_str(0, prefix);
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

    /// The call that waits and that this one repeats.
    pub(super) fn waiting(&self, call: &ToolCall) -> Option<Waiting> {
        locked(&self.waiting).iter().find(|waiting| waiting.is_of(call)).cloned()
    }

    /// Keeps a call that waits, so that an identical one goes on.
    pub(super) fn wait(&self, waits: Waiting) {
        let mut waiting = locked(&self.waiting);
        waiting.retain(|known| !known.is_of(&waits.call));
        waiting.push_back(waits);
        if waiting.len() > WAITING {
            waiting.pop_front();
        }
    }

    /// Forgets a call that waited.
    pub(super) fn waits_no_more(&self, call: &ToolCall) {
        locked(&self.waiting).retain(|known| !known.is_of(call));
    }

    // What servers say.

    async fn from_server(self: &Arc<Self>, index: usize, generation: u64, said: FromServer) {
        let Some(server) = self.servers.get(index) else { return };
        match said {
            FromServer::Garbage { why, answers } => {
                self.log_of(index, &format!("it says what is no message: {}", inert(&why)));
                let Some(id) = answers else { return };
                let message = "the server's answer can't be read";
                let answer = Frame::error(Some(&id), code::INTERNAL_ERROR, message, None);
                self.answered_by_server(index, server, answer, &id).await;
            }
            FromServer::Trouble(why) => self.log_of(index, &inert(&why)),
            FromServer::Gone(Gone(why)) => self.lost(index, generation, &why).await,
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
        if frame.method() == method::ELICIT && frame.param("message").is_some_and(asking::imitates) {
            // Nobody but the gateway asks in its name.
            self.log_of(index, "it asks as if it were Callgate; the client is not asked");
            let message = "a question that speaks of Callgate is not passed on";
            let _ = self.send(index, Frame::error(Some(&id), code::INVALID_REQUEST, message, None)).await;
            return;
        }
        let outlet = self.outlet_about(&frame, about);
        let asked_as = {
            let mut asking = locked(&self.asking);
            let free = if asking.contains_key(&id) { self.own_id() } else { id.clone() };
            asking.insert(free.clone(), Asking::Server(index, id));
            free
        };
        outlet.send(frame.with_id(&asked_as)).await;
    }

    /// Where a message of a server goes: to what it is about, where its transport, its progress token or its subscription says so; else
    /// to what belongs to no request, or, for a client that does not listen to such, to the only request that is under way.
    fn outlet_about(&self, frame: &Frame, about: Option<&Id>) -> Outlet {
        let asked = locked(&self.asked);
        let token = frame.param("progressToken").and_then(Id::of);
        let by_token =
            token.and_then(|token| asked.values().find(|asked| asked.progress.as_ref() == Some(&token)));
        let subscription = frame.meta(META_SUBSCRIPTION).and_then(Id::of);
        let by_request = || {
            let about = about.or(subscription.as_ref())?;
            asked.values().find(|asked| asked.sent.iter().any(|(_, id)| id == about))
        };
        let the_only = || match asked.len() {
            1 if self.general.is_closed() => asked.values().next(),
            _ => None,
        };
        let found = by_token.or_else(by_request).or_else(the_only);
        found.map_or_else(|| self.general.clone(), |asked| asked.outlet.clone())
    }

    /// A server's connection ended. Whoever waits for an answer of it is told; the next message to it starts it again.
    async fn lost(&self, index: usize, generation: u64, why: &str) {
        let Some(server) = self.servers.get(index) else { return };
        let why = format!("the server `{}` is gone: {why}", server.spec.name);
        // First who waits: whoever starts it again waits, too, and holds the connection meanwhile.
        let waiting: Vec<Awaiting> = locked(&server.awaiting).drain().map(|(_, waits)| waits).collect();
        for waits in waiting {
            if let Awaiting::Client { id, outlet, .. } = waits {
                let is_cancelled = |asked: &Asked| *asked.cancel.borrow();
                if locked(&self.asked).get(&id).is_some_and(is_cancelled) {
                    locked(&self.asked).remove(&id);
                    continue;
                }
                let answer = Frame::error(Some(&id), code::INTERNAL_ERROR, &why, None);
                self.finish(&id, &outlet, answer).await;
            }
        }
        server.tools.forget();
        let mut connected = server.connected.write().await;
        if connected.generation == generation && connected.connection.take().is_some() {
            self.gateway.log(&why);
        }
    }

    /// Connects to a server again that was lost, and greets it as the client did.
    fn connect_again(&self, index: usize) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(self.start_again(index))
    }

    async fn start_again(&self, index: usize) -> Result<(), Gone> {
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
        let connection = Connection::open(&server.spec, events, self.gateway.longest_message)?;
        tokio::spawn(listen(Weak::clone(&self.me), index, generation, heard));
        if let Some(greeting) = self.client.greeting() {
            let id = self.own_id();
            let (tell, told) = oneshot::channel();
            locked(&server.awaiting).insert(id.clone(), Awaiting::Gateway(tell));
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

    /// Tells the client that its tools may be others now.
    pub(super) async fn tell_tools_changed(&self) {
        self.general.send(Frame::notification(method::TOOLS_CHANGED, json!({}))).await;
    }

    /// Whether the client still waits for answers.
    pub(super) fn is_busy(&self) -> bool {
        locked(&self.asked).values().any(|asked| !*asked.cancel.borrow())
    }

    /// The client is gone: its servers are to end. Returns when they have.
    pub(super) async fn close(&self) {
        let mut ends = Vec::new();
        for server in &self.servers {
            let mut connected = server.connected.write().await;
            connected.is_closed = true;
            ends.extend(connected.connection.take().map(Connection::close));
        }
        for mut ended in ends {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

/// The rules for the calls of each server alone, as they are when a call comes.
fn rules_of(gateway: &Gateway) -> impl Fn(&str) -> Option<Arc<Chains>> + Send + Sync + 'static {
    let with_rules = gateway.servers.iter().filter(|spec| spec.rules.is_some()).cloned();
    let with_rules: Vec<Arc<ServerSpec>> = with_rules.collect();
    move |name| with_rules.iter().find(|spec| spec.name == name)?.rules.as_ref().map(Engine::rules)
}

/// A request that the client does not want any more needs no answer; one that comes all the same is passed on for a while.
async fn forget_cancelled(link: Weak<Link>, id: Id) {
    tokio::time::sleep(LATE_ANSWERS).await;
    let Some(link) = link.upgrade() else { return };
    let Some(asked) = locked(&link.asked).remove(&id) else { return };
    for (index, sent_as) in asked.sent {
        if let Some(server) = link.servers.get(index) {
            locked(&server.awaiting).remove(&sent_as);
        }
    }
}

async fn listen(link: Weak<Link>, index: usize, generation: u64, mut heard: mpsc::Receiver<FromServer>) {
    while let Some(said) = heard.recv().await {
        let Some(link) = link.upgrade() else { return };
        link.from_server(index, generation, said).await;
    }
}
