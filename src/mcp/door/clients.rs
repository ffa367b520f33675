//! The clients that are connected: those with a session of theirs, and those that are told by who calls.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use data_encoding::BASE64URL_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{OwnedMutexGuard, mpsc, watch};

use super::headers::said;
use crate::json::{self, Map, Value, json};
use crate::mcp::frame::Frame;
use crate::mcp::gateway::Gateway;
use crate::mcp::identity::Caller;
use crate::mcp::link::{Link, Who};
use crate::mcp::outlet::Outlet;
use crate::mcp::server::Gone;
use crate::session::ConcurrentSession;

/// A client of which nothing was heard for so long is closed.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How often is looked for them.
const LOOK: Duration = Duration::from_secs(30);
/// What was seen in sessions that go on without a connection is remembered for this many.
const REMEMBERED: usize = 4096;
/// The longest name of a session that a client may choose, in bytes.
const LONGEST_NAME: usize = 256;

/// Where requests say which session of their caller they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFrom {
    /// In a header.
    Header(String),
    /// In a member of `_meta`.
    Meta(String),
}

impl FromStr for SessionFrom {
    type Err = String;

    /// Reads `header:NAME` or `meta:KEY`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(("meta", key)) if !key.is_empty() => Ok(Self::Meta(key.to_owned())),
            _ => Err(format!("`{text}` is no place of a session: write `header:NAME` or `meta:KEY`")),
        }
    }
}

impl SessionFrom {
    /// What a request says. Error: it says what no name can be.
    pub(super) fn read(&self, headers: &HeaderMap, frame: &Frame) -> Result<Option<String>, String> {
        let name = match self {
            Self::Header(name) => said(headers, name)?.map(str::to_owned),
            Self::Meta(key) => match frame.meta(key) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.clone()),
                Some(_) => return Err(format!("`{key}` in `_meta` is to be a text")),
            },
        };
        match name {
            Some(name) if name.len() > LONGEST_NAME => Err("the name of the session is too long".to_owned()),
            name => Ok(name),
        }
    }
}

/// What a client is found by. Who calls is part of it, so nobody finds another one's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Session(String),
    Shared { caller: String, name: Option<String> },
}

/// A client that is connected.
pub(super) struct Client {
    pub(super) link: Arc<Link>,
    /// Who it is.
    caller: String,
    /// Messages that belong to none of its requests.
    general: Option<Arc<tokio::sync::Mutex<mpsc::Receiver<Frame>>>>,
    requests: AtomicU64,
    under_way: AtomicUsize,
    last: Mutex<Instant>,
    closed: watch::Sender<bool>,
}

/// Held while a client's request is served, so that nobody closes it meanwhile.
pub(super) struct Served(Arc<Client>);

impl std::ops::Deref for Served {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        *locked(&self.0.last) = Instant::now();
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Client {
    fn serve(self: &Arc<Self>) -> Served {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        Served(Arc::clone(self))
    }

    /// The messages that belong to none of its requests, for one reader at a time.
    pub(super) fn general(&self) -> Option<OwnedMutexGuard<mpsc::Receiver<Frame>>> {
        Arc::clone(self.general.as_ref()?).try_lock_owned().ok()
    }

    /// A number that no other request of it has.
    pub(super) fn number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Becomes true when it is closed.
    pub(super) fn closed(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }

    fn is_busy(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) > 0 || self.link.is_busy()
    }

    async fn close(self: Arc<Self>) {
        self.closed.send_replace(true);
        self.link.close().await;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept here is changed in single steps, so a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All clients.
pub(super) struct Clients {
    gateway: Arc<Gateway>,
    most: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    connected: HashMap<Key, Arc<Client>>,
    /// What was seen in the sessions of callers, beyond their connections.
    remembered: HashMap<Key, (Instant, ConcurrentSession)>,
}

/// Why there is no client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoClient {
    /// There is no such session, or it is another one's.
    Unknown,
    /// All places are taken by clients with requests under way.
    Full,
    /// The servers can't be reached.
    Failed(String),
}

impl Clients {
    pub(super) fn new(gateway: &Arc<Gateway>, most: usize) -> Arc<Self> {
        Arc::new(Self { gateway: Arc::clone(gateway), most, table: Mutex::default() })
    }

    /// Begins a session; gives its name.
    pub(super) fn begin(&self, caller: &Caller) -> Result<(String, Served), NoClient> {
        let mut secret = [0; 24];
        let random = SystemRandom::new().fill(&mut secret);
        random.map_err(|_| NoClient::Failed("the system gives no random bytes".to_owned()))?;
        let name = BASE64URL_NOPAD.encode(&secret);
        let mut table = locked(&self.table);
        let client = self.connect(&mut table, Key::Session(name.clone()), caller, None)?;
        Ok((name, client))
    }

    /// The client of a session, if it is this caller's.
    pub(super) fn session(&self, name: &str, caller: &Caller) -> Result<Served, NoClient> {
        let table = locked(&self.table);
        let key = Key::Session(name.to_owned());
        let client = table.connected.get(&key).filter(|client| client.caller == caller.key);
        let client = client.ok_or(NoClient::Unknown)?;
        Ok(client.serve())
    }

    /// The client of a caller, or of one of the caller's sessions; it is connected if it is not.
    pub(super) fn shared(&self, caller: &Caller, name: Option<String>) -> Result<Served, NoClient> {
        let key = Key::Shared { caller: caller.key.clone(), name };
        let mut table = locked(&self.table);
        if let Some(client) = table.connected.get(&key) {
            return Ok(client.serve());
        }
        let Key::Shared { caller: who, name } = &key else { return Err(NoClient::Unknown) };
        let session = format!("http-{}", json::digest(&json!([who, name])));
        self.connect(&mut table, key, caller, Some(session))
    }

    /// Ends a session.
    pub(super) async fn end(&self, name: &str, caller: &Caller) -> bool {
        let key = Key::Session(name.to_owned());
        let client = {
            let mut table = locked(&self.table);
            match table.connected.get(&key) {
                Some(client) if client.caller == caller.key => table.connected.remove(&key),
                _ => None,
            }
        };
        match client {
            Some(client) => {
                client.close().await;
                true
            }
            None => false,
        }
    }

    fn connect(
        &self,
        table: &mut Table,
        key: Key,
        caller: &Caller,
        session: Option<String>,
    ) -> Result<Served, NoClient> {
        if table.connected.len() >= self.most {
            let idle = table.connected.iter().filter(|(_, client)| !client.is_busy());
            let idlest = idle.min_by_key(|(_, client)| *locked(&client.last)).map(|(key, _)| key.clone());
            self.disconnect(table, &idlest.ok_or(NoClient::Full)?);
        }
        let (outlet, general) = Outlet::lossy();
        // Who has no session has no stream of it either.
        let has_stream = matches!(key, Key::Session(_));
        let general = has_stream.then(|| Arc::new(tokio::sync::Mutex::new(general)));
        let who = Who { context: self.context(caller), session };
        let going_on = table.remembered.remove(&key).map(|(_, session)| session);
        let link = Link::open_again(&self.gateway, who, outlet, going_on)
            .map_err(|Gone(why)| NoClient::Failed(why))?;
        let client = Arc::new(Client {
            link,
            caller: caller.key.clone(),
            general,
            requests: AtomicU64::new(1),
            under_way: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
            closed: watch::Sender::new(false),
        });
        let served = client.serve();
        table.connected.insert(key, client);
        Ok(served)
    }

    /// What is vouched for of a caller: what the operator says of all, and what is known of this one.
    fn context(&self, caller: &Caller) -> Value {
        let mut context = match &self.gateway.context {
            Value::Object(context) => context.clone(),
            _ => Map::new(),
        };
        context.extend(caller.context.clone());
        if context.is_empty() { Value::Null } else { Value::Object(context) }
    }

    /// Closes a client. What was seen in a session that its caller can come back to is remembered: labels and facts must not be lost by
    /// leaving for a while.
    fn disconnect(&self, table: &mut Table, key: &Key) {
        let Some(client) = table.connected.remove(key) else { return };
        if matches!(key, Key::Shared { .. }) {
            table.remembered.insert(key.clone(), (Instant::now(), client.link.session.clone()));
            if table.remembered.len() > REMEMBERED {
                let oldest = table.remembered.iter().min_by_key(|(_, (since, _))| *since);
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    table.remembered.remove(&oldest);
                }
            }
        }
        tokio::spawn(client.close());
    }

    /// Closes clients of which nothing was heard for long, for ever.
    pub(super) async fn close_idle(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let mut table = locked(&self.table);
            let is_idle = |client: &Arc<Client>| {
                // Whoever listens is there.
                let listens = client.general.as_ref().is_some_and(|general| general.try_lock().is_err());
                !listens && !client.is_busy() && locked(&client.last).elapsed() > IDLE
            };
            let idle = table.connected.iter().filter(|(_, client)| is_idle(client));
            let idle: Vec<Key> = idle.map(|(key, _)| key.clone()).collect();
            for key in idle {
                self.disconnect(&mut table, &key);
            }
        }
    }

    /// Closes all of them; returns when their servers have ended.
    pub(super) async fn close_all(&self) {
        let clients: Vec<Arc<Client>> =
            locked(&self.table).connected.drain().map(|(_, client)| client).collect();
        let closing: Vec<_> = clients.into_iter().map(|client| tokio::spawn(client.close())).collect();
        for closed in closing {
            let _ = closed.await;
        }
    }
}
