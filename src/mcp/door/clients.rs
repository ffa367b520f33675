//! The clients that are connected: those that shook hands, found by the name of their session, and those found by who calls.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use data_encoding::BASE64URL_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{OwnedMutexGuard, mpsc, watch};

use super::conversations::{Beginning, Conversation, Conversations};
use super::headers::said;
use crate::host::Account;
use crate::json::{self, Map, Value, json};
use crate::mcp::frame::Frame;
use crate::mcp::gateway::Gateway;
use crate::mcp::identity::Caller;
use crate::mcp::link::{Link, Who};
use crate::mcp::outlet::Outlet;
use crate::mcp::requester::{self, Unnamed};
use crate::mcp::server::Gone;

/// A client of which nothing was heard for so long is closed.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How often is looked for them.
const LOOK: Duration = Duration::from_secs(30);
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
    Shared(Conversation),
}

/// A client that is connected.
pub(super) struct Client {
    pub(super) link: Arc<Link>,
    account: Account,
    /// Everything that is vouched for of its calls, as a digest.
    vouched: String,
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

struct Table {
    connected: HashMap<Key, Arc<Client>>,
    conversations: Conversations,
}

impl Table {
    /// The idle client that makes room for another one of an account: of the heaviest tenant's heaviest caller, the one that was idle
    /// longest. A tenant with fewer clients than the account's own, or as many, loses none, nor does such a caller of the same tenant.
    fn victim(&self, account: &Account) -> Option<Key> {
        let mut tenants: HashMap<&[u8], usize> = HashMap::new();
        let mut callers: HashMap<&[u8], usize> = HashMap::new();
        for client in self.connected.values() {
            *tenants.entry(client.account.tenant()).or_default() += 1;
            *callers.entry(client.account.caller()).or_default() += 1;
        }
        let weight = |of: &Account| {
            let held =
                |clients: &HashMap<&[u8], usize>, holder| clients.get(holder).copied().unwrap_or_default();
            (held(&tenants, of.tenant()), held(&callers, of.caller()))
        };
        let own = weight(account);
        let gives_way = |of: &Account| match of.tenant() == account.tenant() {
            true => of == account || weight(of).1 > own.1,
            false => weight(of).0 > own.0,
        };
        let idle =
            self.connected.iter().filter(|(_, client)| !client.is_busy() && gives_way(&client.account));
        let victim = idle.min_by_key(|(_, client)| (Reverse(weight(&client.account)), *locked(&client.last)));
        victim.map(|(key, _)| key.clone())
    }
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
    /// At most `most` clients are connected at once, and `most_conversations` of one caller are remembered.
    pub(super) fn new(gateway: &Arc<Gateway>, most: usize, most_conversations: usize) -> Arc<Self> {
        let conversations = Conversations::new(most_conversations);
        let table = Mutex::new(Table { connected: HashMap::new(), conversations });
        Arc::new(Self { gateway: Arc::clone(gateway), most, table })
    }

    /// Begins a connection with a handshake, in a conversation of its caller; returns the name by which it is found.
    pub(super) fn begin(&self, caller: &Caller, name: Option<String>) -> Result<(String, Served), NoClient> {
        let mut secret = [0; 24];
        let random = SystemRandom::new().fill(&mut secret);
        random.map_err(|_| NoClient::Failed("the system gives no random bytes".to_owned()))?;
        let session = BASE64URL_NOPAD.encode(&secret);
        let conversation = Conversation { caller: self.name_of(caller), name };
        let mut table = locked(&self.table);
        let client = self.connect(&mut table, Key::Session(session.clone()), caller, &conversation)?;
        Ok((session, client))
    }

    /// The client of a session, if it is this caller's.
    pub(super) fn session(&self, name: &str, caller: &Caller) -> Result<Served, NoClient> {
        let table = locked(&self.table);
        let key = Key::Session(name.to_owned());
        let client = table.connected.get(&key).filter(|client| client.vouched == caller.vouched());
        let client = client.ok_or(NoClient::Unknown)?;
        Ok(client.serve())
    }

    /// The client of a caller, or of one of the caller's sessions; it is connected if it is not.
    pub(super) fn shared(&self, caller: &Caller, name: Option<String>) -> Result<Served, NoClient> {
        let conversation = Conversation { caller: self.name_of(caller), name };
        let key = Key::Shared(conversation.clone());
        let mut table = locked(&self.table);
        if let Some(client) = table.connected.get(&key) {
            if client.vouched == caller.vouched() {
                return Ok(client.serve());
            }
            // The caller's roles are others now. The conversation goes on, by another connection.
            self.disconnect(&mut table, &key);
        }
        self.connect(&mut table, key, caller, &conversation)
    }

    /// Ends a session.
    pub(super) async fn end(&self, name: &str, caller: &Caller) -> bool {
        let key = Key::Session(name.to_owned());
        let client = {
            let mut table = locked(&self.table);
            match table.connected.get(&key) {
                Some(client) if client.vouched == caller.vouched() => table.connected.remove(&key),
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
        conversation: &Conversation,
    ) -> Result<Served, NoClient> {
        let context = self.context(caller);
        let account = Account::from_context(&context);
        if table.connected.len() >= self.most {
            let victim = table.victim(&account).ok_or(NoClient::Full)?;
            self.disconnect(table, &victim);
        }
        let (outlet, general) = Outlet::lossy();
        // Who has no session has no stream of it either.
        let has_stream = matches!(key, Key::Session(_));
        let general = has_stream.then(|| Arc::new(tokio::sync::Mutex::new(general)));
        let unnamed = Unnamed::Http { session: conversation.name.as_deref() };
        let requester = requester::name(&context, unnamed);
        let name = format!("http-{}", json::digest(&json!([conversation.caller, conversation.name])));
        let who = Who { context: context.clone(), session: Some(name), requester };
        let session = table.conversations.session(conversation, account, |beginning| {
            self.gateway.session(&who, beginning == Beginning::MayBeEvicted)
        });
        session.set_context(context.clone());
        let link = Link::open_in(&self.gateway, session, context, outlet)
            .map_err(|Gone(why)| NoClient::Failed(why))?;
        let client = Arc::new(Client {
            link,
            account,
            vouched: caller.vouched(),
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

    /// What tells a caller from others, as the rules compare principals.
    fn name_of(&self, caller: &Caller) -> String {
        caller.name(self.gateway.engine.rules().defaults().principals)
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

    /// Closes a client. What its conversation has seen is remembered: labels and facts must not be lost by leaving for a while.
    fn disconnect(&self, table: &mut Table, key: &Key) {
        if let Some(client) = table.connected.remove(key) {
            tokio::spawn(client.close());
        }
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
