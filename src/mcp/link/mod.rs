//! One client's connection with the servers behind it: what each says goes where it belongs, and tool calls go through policies.
//!
//! Messages keep their ids wherever they can. Where an id is taken already on the other side, the message gets another one there,
//! and its answer the old one again.

mod client_side;
mod sending;
mod server_side;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use super::asking::GoingOn;
use super::client::Client;
use super::frame::{Frame, Id};
use super::gateway::Gateway;
use super::http_words::META_SUBSCRIPTION;
use super::listing::KnownTools;
use super::method;
use super::outlet::{Outlet, QUEUE};
use super::server::{Connection, Gone, ServerSpec};
use super::tasks::Tasks;
use crate::call::ToolCall;
use crate::json::{Value, json};
use crate::message::RequestPart;
use crate::session::ConcurrentSession;

/// Approved calls of one connection whose servers asked for more. Of more the oldest is forgotten: it is asked about anew.
const GOING_ON: usize = 256;

/// How long an answer is passed on that is not wanted any more.
pub(super) const LATE_ANSWERS: Duration = Duration::from_secs(10);

/// Whom a connection serves, as far as its transport has verified it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Who {
    /// What is vouched for of every call: principal, roles, tenant, anything.
    pub context: Value,
    /// The session that its calls belong to, where it is to go on beyond the connection; otherwise it is one of its own.
    pub session: Option<String>,
    /// Names the requester: whoever has this name can use the approvals that were given under it.
    pub requester: String,
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
    going_on: Mutex<VecDeque<GoingOn>>,
    pub(super) tasks: Tasks,
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
    /// Requests to it that it has not answered yet, with the generation of the connection that they went to.
    awaiting: Mutex<HashMap<Id, (u64, Awaiting)>>,
    pub(super) tools: KnownTools,
    /// It took too long to answer, and has said nothing since.
    pub(super) is_silent: AtomicBool,
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
    /// It asks to be told when the tools are others.
    hears_of_tools: bool,
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
#[derive(Clone, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    /// It says what the server can do.
    Greet,
    /// It lists tools.
    ShowTools,
    /// It is about this task.
    OfTask(String),
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
    /// Connects a client to all servers, in a session of its own. `general`: where messages go that belong to none of its requests.
    pub(super) fn open(gateway: &Arc<Gateway>, who: &Who, general: Outlet) -> Result<Arc<Self>, Gone> {
        Self::open_in(gateway, gateway.session(who, false), who.context.clone(), general)
    }

    /// The same in a session that other connections may share. `context`: what is vouched for of the calls of this connection.
    pub(super) fn open_in(
        gateway: &Arc<Gateway>,
        session: ConcurrentSession,
        context: Value,
        general: Outlet,
    ) -> Result<Arc<Self>, Gone> {
        let secret = format!("callgate-{:016x}", fastrand::u64(..));
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
                is_silent: AtomicBool::new(false),
            };
            opened.push((server, heard));
        }
        let (servers, heard): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let link = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            gateway: Arc::clone(gateway),
            session,
            context,
            client: Client::default(),
            servers,
            going_on: Mutex::default(),
            tasks: Tasks::default(),
            asked: Mutex::default(),
            asking: Mutex::default(),
            general,
            secret,
            count: AtomicU64::new(0),
        });
        gateway.add_link(&link);
        for (index, heard) in heard.into_iter().enumerate() {
            tokio::spawn(server_side::listen(Arc::downgrade(&link), index, 0, heard));
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

    /// Keeps an approved call whose server asked for more.
    pub(super) fn may_go_on(&self, call: GoingOn) {
        let mut going_on = locked(&self.going_on);
        going_on.push_back(call);
        if going_on.len() > GOING_ON {
            going_on.pop_front();
        }
    }

    /// The approved call that goes on by this one, once.
    pub(super) fn goes_on(&self, call: &ToolCall, frame: &Frame, question: &RequestPart) -> Option<GoingOn> {
        let mut going_on = locked(&self.going_on);
        let place = going_on.iter().position(|known| known.is(call, frame, question))?;
        going_on.remove(place)
    }

    /// Tells the client that its tools may be others now: those that shake hands are told, the others where they asked to be.
    pub(super) async fn tell_tools_changed(&self) {
        if self.client.greeting().is_some() {
            self.general.send(Frame::notification(method::TOOLS_CHANGED, json!({}))).await;
        }
        let listening: Vec<(Id, Outlet)> = {
            let asked = locked(&self.asked);
            let listening = asked.iter().filter(|(_, asked)| asked.hears_of_tools);
            listening.map(|(id, asked)| (id.clone(), asked.outlet.clone())).collect()
        };
        for (id, outlet) in listening {
            let params = json!({ "_meta": { META_SUBSCRIPTION: id.to_json() } });
            outlet.send(Frame::notification(method::TOOLS_CHANGED, params)).await;
        }
    }

    /// Whether policies hide anything of what calls come to.
    pub(super) fn hides_results(&self) -> bool {
        self.servers.iter().any(|server| self.session.hides_results(&server.spec.name))
    }

    /// Whether the client still waits for answers.
    pub(super) fn is_busy(&self) -> bool {
        locked(&self.asked).values().any(|asked| !*asked.cancel.borrow())
    }
}
