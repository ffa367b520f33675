//! Keeps the sessions of callers' conversations beyond their connections, independent of the protocol version.
//!
//! A caller that invents names evicts only its own conversations, and an evicted one is *unknown* when it resumes, never empty: policies
//! that restrict by labels or facts match then.

use std::collections::{HashMap, HashSet};

use callgate::host::Account;
use callgate::session::ConcurrentSession;
use callgate::state::capacity::heaviest_accounts;

/// The default maximum number of conversations of one caller.
pub const DEFAULT_MAX_CONVERSATIONS: usize = 4096;
/// The maximum number of conversations of all callers.
const MAX_CONVERSATIONS: usize = 65_536;

/// Identifies a conversation by caller and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConversationKey {
    /// The caller's unique name.
    pub caller: String,
    /// The name that the caller's requests give, if any.
    pub name: Option<String>,
}

/// The conversations in memory.
pub struct Conversations {
    known: HashMap<ConversationKey, StoredConversation>,
    callers: HashMap<String, CallerConversations>,
    max_per_caller: usize,
    max_total: usize,
    /// Counts uses, for the eviction of the least recently used one.
    clock: u64,
    /// A caller with evicted conversations was removed.
    has_removed_callers: bool,
}

struct StoredConversation {
    session: ConcurrentSession,
    last_use: u64,
}

struct CallerConversations {
    account: Account,
    conversations: usize,
    /// Conversations of the caller were evicted, so one that is not found may be one of them.
    has_evicted: bool,
}

/// What is known about a conversation that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationStart {
    /// It is new: its session is empty.
    New,
    /// It may have been evicted: its labels and facts are unknown.
    MayBeEvicted,
}

impl Conversations {
    /// Keeps at most `max_per_caller` conversations of one caller.
    pub fn new(max_per_caller: usize) -> Self {
        Self::with_quotas(max_per_caller, MAX_CONVERSATIONS)
    }

    fn with_quotas(max_per_caller: usize, max_total: usize) -> Self {
        let (known, callers) = (HashMap::new(), HashMap::new());
        Self { known, callers, max_per_caller, max_total, clock: 0, has_removed_callers: false }
    }

    /// The session of a conversation; `begin` creates it if it is not in memory.
    pub fn session(
        &mut self,
        conversation: &ConversationKey,
        account: Account,
        begin: impl FnOnce(ConversationStart) -> ConcurrentSession,
    ) -> ConcurrentSession {
        self.clock += 1;
        if let Some(stored) = self.known.get_mut(conversation) {
            stored.last_use = self.clock;
            return stored.session.clone();
        }
        let beginning = match self.callers.get(&conversation.caller) {
            Some(caller) if caller.has_evicted => ConversationStart::MayBeEvicted,
            None if self.has_removed_callers => ConversationStart::MayBeEvicted,
            _ => ConversationStart::New,
        };
        let session = begin(beginning);
        let stored = StoredConversation { session: session.clone(), last_use: self.clock };
        self.known.insert(conversation.clone(), stored);
        let new = CallerConversations { account, conversations: 0, has_evicted: false };
        let caller = self.callers.entry(conversation.caller.clone()).or_insert(new);
        caller.conversations += 1;
        if caller.conversations > self.max_per_caller {
            self.evict(|of| of == conversation.caller);
        } else if self.known.len() > self.max_total {
            let held = self.callers.values().map(|caller| (caller.account, caller.conversations));
            let heaviest = heaviest_accounts(held);
            let names = self.callers.iter().filter(|(_, caller)| heaviest.contains(&caller.account));
            let names: HashSet<String> = names.map(|(name, _)| name.clone()).collect();
            self.evict(|of| names.contains(of));
        }
        self.bound_callers();
        session
    }

    /// Evicts the least recently used conversation of these callers.
    fn evict(&mut self, is_of: impl Fn(&str) -> bool) {
        let candidates = self.known.iter().filter(|(conversation, _)| is_of(&conversation.caller));
        let oldest = candidates.min_by_key(|(_, stored)| stored.last_use);
        let Some(oldest) = oldest.map(|(conversation, _)| conversation.clone()) else { return };
        self.known.remove(&oldest);
        if let Some(caller) = self.callers.get_mut(&oldest.caller) {
            caller.conversations = caller.conversations.saturating_sub(1);
            caller.has_evicted = true;
        }
    }

    /// Bounds the callers without conversations, which are kept only because some were evicted. Beyond the bound, every new caller counts
    /// as one with evicted conversations.
    fn bound_callers(&mut self) {
        if self.callers.len() > self.max_total.saturating_mul(2) {
            self.has_removed_callers |= self.callers.values().any(|caller| caller.conversations == 0);
            self.callers.retain(|_, caller| caller.conversations > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::engine::Engine;
    use callgate::json::json;

    fn conversation(caller: &str, name: usize) -> ConversationKey {
        ConversationKey { caller: caller.to_owned(), name: Some(name.to_string()) }
    }

    /// Opens a conversation of a tenant's caller (`tenant/caller`). Returns `None` if it was in memory.
    fn open(conversations: &mut Conversations, caller: &str, name: usize) -> Option<ConversationStart> {
        let mut begun = None;
        let tenant = caller.split('/').next();
        let account = Account::from_context(&json!({ "tenant": tenant, "principal": caller }));
        conversations.session(&conversation(caller, name), account, |beginning| {
            begun = Some(beginning);
            Engine::from_text("policies: []").unwrap().session().concurrent()
        });
        begun
    }

    #[test]
    fn a_caller_that_invents_names_evicts_only_its_own_conversations() {
        let mut conversations = Conversations::with_quotas(8, 1000);
        assert_eq!(open(&mut conversations, "honest", 0), Some(ConversationStart::New));
        for name in 0..50 {
            open(&mut conversations, "hostile", name);
        }
        assert_eq!(open(&mut conversations, "honest", 0), None, "remembered");
        assert_eq!(open(&mut conversations, "honest", 1), Some(ConversationStart::New));
        assert_eq!(open(&mut conversations, "hostile", 0), Some(ConversationStart::MayBeEvicted));
        assert_eq!(conversations.known.len(), 10);
    }

    #[test]
    fn evicts_conversations_of_the_heaviest_caller() {
        let mut conversations = Conversations::with_quotas(100, 20);
        for name in 0..5 {
            open(&mut conversations, "honest", name);
        }
        for name in 0..200 {
            open(&mut conversations, "hostile", name);
        }
        for name in 0..5 {
            assert_eq!(open(&mut conversations, "honest", name), None, "{name}");
        }
        assert_eq!(conversations.known.len(), 20);
    }

    #[test]
    fn a_tenant_with_many_callers_evicts_only_its_own_conversations() {
        let mut conversations = Conversations::with_quotas(100, 20);
        for name in 0..3 {
            open(&mut conversations, "honest/ann", name);
        }
        for caller in 0..200 {
            open(&mut conversations, &format!("hostile/{caller}"), 0);
        }
        for name in 0..3 {
            assert_eq!(open(&mut conversations, "honest/ann", name), None, "{name}");
        }
    }

    #[test]
    fn new_conversations_are_unknown_after_callers_were_removed() {
        let mut conversations = Conversations::with_quotas(1, 4);
        for caller in 0..40 {
            open(&mut conversations, &caller.to_string(), 0);
        }
        assert!(conversations.callers.len() <= 8 && conversations.known.len() <= 4);
        assert_eq!(open(&mut conversations, "0", 0), Some(ConversationStart::MayBeEvicted));
    }
}
