//! What all connections of a gateway share: the rules that decide, the servers behind it, and where it tells of trouble.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::link::{Link, Who};
use super::pins::{LockError, Pins, Signers, Standing};
use super::server::{Reach, ServerSpec};
use crate::engine::Engine;
use crate::json::Value;
use crate::policy::Chains;
use crate::session::ConcurrentSession;
use crate::text::inert;

/// The longest message that is taken, in bytes, unless another bound is set.
pub const LONGEST_MESSAGE: usize = 64 << 20;

/// What a gateway is made of.
pub struct Gateway {
    pub(super) engine: Engine,
    pub(super) servers: Vec<Arc<ServerSpec>>,
    /// What the operator vouches for of every call.
    pub(super) context: Value,
    /// The session of the one client that is served over lines, where it is to go on beyond its connection.
    pub(super) session: Option<String>,
    /// The longest message, in bytes.
    pub(super) longest_message: usize,
    /// The state in which people answer questions that clients can't put to them.
    pub(super) answered_in: Option<String>,
    /// The tools that people have reviewed, where only those may be used.
    pub(super) pins: Option<Pins>,
    /// Its rules change while it runs.
    rules_change: bool,
    log: Box<dyn Fn(&str) + Send + Sync>,
    links: Mutex<Vec<Weak<Link>>>,
    /// Tools of which it was told that nobody has reviewed them.
    quarantined: Mutex<BTreeSet<String>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway before these servers.
    pub fn new(engine: Engine, servers: impl IntoIterator<Item = ServerSpec>) -> Self {
        Self {
            engine,
            servers: servers.into_iter().map(Arc::new).collect(),
            context: Value::Null,
            session: None,
            longest_message: LONGEST_MESSAGE,
            answered_in: None,
            pins: None,
            rules_change: false,
            log: Box::new(|_| {}),
            links: Mutex::new(Vec::new()),
            quarantined: Mutex::default(),
        }
    }

    /// What the operator vouches for of every call: principal, roles, anything.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Self {
        self.context = context;
        self
    }

    /// The session that the calls of the one client belong to that [`serve_lines`](Self::serve_lines) serves: over a store that is
    /// shared, it goes on when the client comes again.
    #[must_use]
    pub fn in_session(mut self, name: impl Into<String>) -> Self {
        self.session = Some(name.into());
        self
    }

    /// The state in which people answer questions that clients can't put to them, as it stands in a command: its URL, quoted where it must
    /// be. It is named in the log, never to agents.
    #[must_use]
    pub fn answered_in(mut self, state: impl Into<String>) -> Self {
        self.answered_in = Some(state.into());
        self
    }

    /// Only tools that are as this lock file has them are shown and run; with `signers`, only if one of them signed it. A missing file has
    /// nothing in it.
    ///
    /// # Errors
    /// The file can't be read, was edited, or is not signed as it must be.
    pub fn pinned_by(mut self, lock_file: PathBuf, signers: Option<Signers>) -> Result<Self, LockError> {
        self.pins = Some(Pins::read(lock_file, signers)?);
        Ok(self)
    }

    /// The rules can change while the gateway runs: clients learn at the handshake that they are notified of other tools, as
    /// [`tools_changed`](Self::tools_changed) does.
    #[must_use]
    pub fn with_changing_rules(mut self) -> Self {
        self.rules_change = true;
        self
    }

    /// Whether clients are notified by the gateway itself that their tools may be others: by other rules, or a session that a server over
    /// HTTP has lost.
    pub(super) fn notifies_of_tools(&self) -> bool {
        self.rules_change || self.servers.iter().any(|server| matches!(server.reach, Reach::Http(_)))
    }

    /// Where trouble is told that no client can be told of: a line each, without its end.
    #[must_use]
    pub fn logging(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.log = Box::new(log);
        self
    }

    /// Another bound on the length of messages, in bytes.
    #[must_use]
    pub fn with_longest_message(mut self, bytes: usize) -> Self {
        self.longest_message = bytes;
        self
    }

    /// Tells of trouble. What a server or a client says must not stand in it as it came.
    pub(super) fn log(&self, message: &str) {
        (self.log)(message);
    }

    /// Where a tool stands with those who review tools. Where nobody does, each is accepted.
    pub(super) fn standing(&self, server: &str, name: &str, tool: &Value) -> Standing {
        self.pins.as_ref().map_or(Standing::Accepted, |pins| pins.standing(server, name, tool))
    }

    /// Tells, of each tool once, that it is not to be used until someone has reviewed it.
    pub(super) fn tell_of_quarantine(&self, server: &str, names: &[String]) {
        let mut told = self.quarantined.lock().unwrap_or_else(PoisonError::into_inner);
        let new = names.iter().filter(|name| told.insert(format!("{server}/{name}")));
        let new: Vec<String> = new.map(|name| format!("`{}`", inert(name))).collect();
        drop(told);
        if !new.is_empty() {
            let (tools, are) = if new.len() == 1 { ("tool", "is") } else { ("tools", "are") };
            self.log(&format!(
                "the server `{server}` has {tools} that nobody has reviewed as they are now, and that {are} not shown: {}; look at them \
                 with `callgate pins review`",
                new.join(", ")
            ));
        }
    }

    /// The session of a client's calls. `is_unknown`: it may have been forgotten, so what it has seen is not known unless the store
    /// knows it.
    pub(super) fn session(&self, who: &Who, is_unknown: bool) -> ConcurrentSession {
        let name = who.session.clone().unwrap_or_else(|| format!("callgate-{:016x}", fastrand::u64(..)));
        let mut session = self.engine.session().named(&name).with_context(who.context.clone());
        if is_unknown {
            session = session.with_unknown_past();
        }
        session.state_mut().set("conversationId", name.into());
        session.concurrent_for(who.requester.clone(), rules_of(self))
    }

    pub(super) fn add_link(&self, link: &Arc<Link>) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }

    /// Tells every client that the tools that it is shown may be others now.
    pub async fn tools_changed(&self) {
        let links: Vec<Arc<Link>> = {
            let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            links.iter().filter_map(Weak::upgrade).collect()
        };
        for link in links {
            link.tell_tools_changed().await;
        }
    }
}

/// The rules for the calls of each server alone, as they are when a call comes.
fn rules_of(gateway: &Gateway) -> impl Fn(&str) -> Option<Arc<Chains>> + Send + Sync + 'static {
    let with_rules = gateway.servers.iter().filter(|spec| spec.rules.is_some()).cloned();
    let with_rules: Vec<Arc<ServerSpec>> = with_rules.collect();
    move |name| with_rules.iter().find(|spec| spec.name == name)?.rules.as_ref().map(Engine::rules)
}
