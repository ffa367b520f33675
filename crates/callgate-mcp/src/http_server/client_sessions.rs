//! The connected clients: found by session id after a handshake, or by caller without one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{OwnedMutexGuard, mpsc, watch};

use crate::client_info::ClientContext;
use crate::client_sender::ClientSender;
use crate::connection::ClientConnection;
use crate::gateway::Gateway;
use crate::jsonrpc::JsonRpcMessage;
use crate::requester::{self, ClientSource};
use crate::upstream_event::UpstreamError;
use callgate::host::Account;
use callgate::json::{self, Map, Value, json};
use callgate_http::{Caller, ConversationKey, ConversationStart, Conversations};

/// A client without requests for this long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The interval of the search for idle clients.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The key of a client. Sessions are checked against their caller, and shared clients include it, so no caller finds another's client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ClientKey {
    Session(String),
    Shared(ConversationKey),
}

/// A connected client.
pub(super) struct ConnectedClient {
    pub(super) connection: Arc<ClientConnection>,
    account: Account,
    /// The digest of its verified context.
    context_digest: String,
    /// The session that a sealed task must be for: the name of its conversation, or else its own session id.
    task_session: Option<String>,
    /// The messages that belong to none of its requests.
    general: Option<Arc<tokio::sync::Mutex<mpsc::Receiver<JsonRpcMessage>>>>,
    request_counter: AtomicU64,
    pending_requests: AtomicUsize,
    last_used: Mutex<Instant>,
    closed: watch::Sender<bool>,
}

/// Keeps a client open while a request of it is served.
pub(super) struct ClientGuard(Arc<ConnectedClient>);

impl std::ops::Deref for ClientGuard {
    type Target = ConnectedClient;

    fn deref(&self) -> &ConnectedClient {
        &self.0
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        *lock(&self.0.last_used) = Instant::now();
        self.0.pending_requests.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ConnectedClient {
    fn guard(self: &Arc<Self>) -> ClientGuard {
        self.pending_requests.fetch_add(1, Ordering::SeqCst);
        ClientGuard(Arc::clone(self))
    }

    /// The messages that belong to none of its requests, for one reader at a time.
    pub(super) fn general_messages(&self) -> Option<OwnedMutexGuard<mpsc::Receiver<JsonRpcMessage>>> {
        Arc::clone(self.general.as_ref()?).try_lock_owned().ok()
    }

    /// The session that a sealed task must be for. `None` for a client without session and conversation: no task can be for it.
    pub(super) fn task_session(&self) -> Option<&str> {
        self.task_session.as_deref()
    }

    /// A number unique among its requests.
    pub(super) fn next_request_number(&self) -> u64 {
        self.request_counter.fetch_add(1, Ordering::Relaxed)
    }

    /// Becomes true when it is closed.
    pub(super) fn closed(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }

    fn is_busy(&self) -> bool {
        self.pending_requests.load(Ordering::SeqCst) > 0 || self.connection.is_busy()
    }

    async fn close(self: Arc<Self>) {
        self.closed.send_replace(true);
        self.connection.close().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every update is a single step, so a panic elsewhere leaves the data consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All connected clients.
pub(super) struct ClientRegistry {
    gateway: Arc<Gateway>,
    max_clients: usize,
    table: Mutex<ClientTable>,
}

struct ClientTable {
    connected: HashMap<ClientKey, Arc<ConnectedClient>>,
    conversations: Conversations,
}

impl ClientTable {
    /// The idle client to close for a new one of an account: the longest idle one of the heaviest tenant's heaviest caller. Tenants with no
    /// more clients than the account's own lose none, nor do such callers of the same tenant.
    fn eviction_candidate(&self, account: &Account) -> Option<ClientKey> {
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
        let account_to_evict = |of: &Account| match of.tenant() == account.tenant() {
            true => of == account || weight(of).1 > own.1,
            false => weight(of).0 > own.0,
        };
        let idle = self
            .connected
            .iter()
            .filter(|(_, client)| !client.is_busy() && account_to_evict(&client.account));
        let victim =
            idle.min_by_key(|(_, client)| (Reverse(weight(&client.account)), *lock(&client.last_used)));
        victim.map(|(key, _)| key.clone())
    }
}

/// The reason why no client is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientError {
    /// The session does not exist, or belongs to another caller.
    UnknownSession,
    /// The limit is reached, and all clients have pending requests.
    TooManyClients,
    /// A server can't be started or reached.
    ServerUnavailable(String),
}

impl ClientRegistry {
    /// Allows at most `max_clients` connected clients, and keeps at most `max_conversations` conversations of one caller.
    pub(super) fn new(gateway: &Arc<Gateway>, max_clients: usize, max_conversations: usize) -> Arc<Self> {
        let conversations = Conversations::new(max_conversations);
        let table = Mutex::new(ClientTable { connected: HashMap::new(), conversations });
        Arc::new(Self { gateway: Arc::clone(gateway), max_clients, table })
    }

    /// Begins a session with a handshake, in a conversation of its caller; returns the session id.
    pub(super) fn begin_session(
        &self,
        caller: &Caller,
        name: Option<String>,
    ) -> Result<(String, ClientGuard), ClientError> {
        let mut secret = [0; 24];
        let random = SystemRandom::new().fill(&mut secret);
        random
            .map_err(|_| ClientError::ServerUnavailable("the system provides no random bytes".to_owned()))?;
        let session = BASE64URL_NOPAD.encode(&secret);
        let conversation = ConversationKey { caller: self.caller_name(caller), name };
        let mut table = lock(&self.table);
        let client = self.connect(&mut table, ClientKey::Session(session.clone()), caller, &conversation)?;
        Ok((session, client))
    }

    /// The client of a session, if it belongs to this caller.
    pub(super) fn session(&self, name: &str, caller: &Caller) -> Result<ClientGuard, ClientError> {
        let table = lock(&self.table);
        let key = ClientKey::Session(name.to_owned());
        let client =
            table.connected.get(&key).filter(|client| client.context_digest == caller.context_digest());
        let client = client.ok_or(ClientError::UnknownSession)?;
        Ok(client.guard())
    }

    /// The shared client of a caller's conversation; connects it if necessary.
    pub(super) fn shared_client(
        &self,
        caller: &Caller,
        name: Option<String>,
    ) -> Result<ClientGuard, ClientError> {
        let conversation = ConversationKey { caller: self.caller_name(caller), name };
        let key = ClientKey::Shared(conversation.clone());
        let mut table = lock(&self.table);
        if let Some(client) = table.connected.get(&key) {
            if client.context_digest == caller.context_digest() {
                return Ok(client.guard());
            }
            // The caller's verified context has changed. The conversation continues on a new connection.
            self.disconnect(&mut table, &key);
        }
        self.connect(&mut table, key, caller, &conversation)
    }

    /// Ends a session. Returns `false` if it does not exist or belongs to another caller.
    pub(super) async fn end_session(&self, name: &str, caller: &Caller) -> bool {
        let key = ClientKey::Session(name.to_owned());
        let client = {
            let mut table = lock(&self.table);
            match table.connected.get(&key) {
                Some(client) if client.context_digest == caller.context_digest() => {
                    table.connected.remove(&key)
                }
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
        table: &mut ClientTable,
        key: ClientKey,
        caller: &Caller,
        conversation: &ConversationKey,
    ) -> Result<ClientGuard, ClientError> {
        let context = self.merged_context(caller);
        let account = Account::from_context(&context);
        if table.connected.len() >= self.max_clients {
            let victim = table.eviction_candidate(&account).ok_or(ClientError::TooManyClients)?;
            self.disconnect(table, &victim);
        }
        let (sender, general) = ClientSender::lossy();
        // Only sessions have a general stream.
        let has_stream = matches!(key, ClientKey::Session(_));
        let general = has_stream.then(|| Arc::new(tokio::sync::Mutex::new(general)));
        let unnamed = ClientSource::Http { session: conversation.name.as_deref() };
        let requester = requester::name(&context, unnamed);
        let name = format!("http-{}", json::digest(&json!([conversation.caller, conversation.name])));
        let client_context = ClientContext { context: context.clone(), session: Some(name), requester };
        let session = table.conversations.session(conversation, account, |beginning| {
            self.gateway.open_session(&client_context, beginning == ConversationStart::MayBeEvicted)
        });
        session.set_context(context.clone());
        let connection = ClientConnection::open_in_session(&self.gateway, session, context, sender)
            .map_err(|UpstreamError(why)| ClientError::ServerUnavailable(why))?;
        let own_id = match &key {
            ClientKey::Session(id) => Some(id.clone()),
            ClientKey::Shared(_) => None,
        };
        let client = Arc::new(ConnectedClient {
            connection,
            account,
            task_session: conversation.name.clone().or(own_id),
            context_digest: caller.context_digest(),
            general,
            request_counter: AtomicU64::new(1),
            pending_requests: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            closed: watch::Sender::new(false),
        });
        let guard = client.guard();
        table.connected.insert(key, client);
        Ok(guard)
    }

    /// The caller's unique name, with principals compared as the rules define.
    fn caller_name(&self, caller: &Caller) -> String {
        caller.name(self.gateway.engine.rules().defaults().principals)
    }

    /// The verified context of a caller: the operator's context, overridden by the caller's.
    fn merged_context(&self, caller: &Caller) -> Value {
        let mut context = match &self.gateway.context {
            Value::Object(context) => context.clone(),
            _ => Map::new(),
        };
        context.extend(caller.context.clone());
        if context.is_empty() { Value::Null } else { Value::Object(context) }
    }

    /// Closes a client. Its conversation stays in memory: a client must not lose labels and facts by disconnecting for a while.
    fn disconnect(&self, table: &mut ClientTable, key: &ClientKey) {
        if let Some(client) = table.connected.remove(key) {
            tokio::spawn(client.close());
        }
    }

    /// Closes idle clients periodically; never returns.
    pub(super) async fn close_idle(self: Arc<Self>) {
        loop {
            tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
            let mut table = lock(&self.table);
            let is_idle = |client: &Arc<ConnectedClient>| {
                // A client with an open stream is active.
                let listens = client.general.as_ref().is_some_and(|general| general.try_lock().is_err());
                !listens && !client.is_busy() && lock(&client.last_used).elapsed() > IDLE_TIMEOUT
            };
            let idle = table.connected.iter().filter(|(_, client)| is_idle(client));
            let idle: Vec<ClientKey> = idle.map(|(key, _)| key.clone()).collect();
            for key in idle {
                self.disconnect(&mut table, &key);
            }
        }
    }

    /// Closes all clients; returns when their servers have ended.
    pub(super) async fn close_all(&self) {
        let clients: Vec<Arc<ConnectedClient>> =
            lock(&self.table).connected.drain().map(|(_, client)| client).collect();
        let closing: Vec<_> = clients.into_iter().map(|client| tokio::spawn(client.close())).collect();
        for closed in closing {
            let _ = closed.await;
        }
    }
}
