//! Remembers what the conversations of callers have seen, beyond their connections and whatever version of the protocol they speak.
//!
//! A caller that invents names evicts only conversations of its own, and one that was evicted is *unknown* when it comes back, never
//! empty: policies that restrict by labels or facts match then.

use std::collections::{HashMap, HashSet};

use crate::host::Account;
use crate::session::ConcurrentSession;
use crate::state::heaviest;

/// Conversations of one caller that are remembered, unless another quota is set.
pub const MOST_CONVERSATIONS: usize = 4096;
/// Conversations of all callers that are remembered.
const MOST: usize = 65_536;

/// A conversation of a caller. The same name said by another caller is another conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Conversation {
    /// The caller's name among all callers.
    pub(super) caller: String,
    /// The name that the caller's requests say, if they say one.
    pub(super) name: Option<String>,
}

/// The conversations that are remembered.
pub(super) struct Conversations {
    known: HashMap<Conversation, Remembered>,
    callers: HashMap<String, OfCaller>,
    most_of_one: usize,
    most: usize,
    /// Counts uses.
    clock: u64,
    /// A caller was forgotten of whom conversations were evicted.
    forgot_callers: bool,
}

struct Remembered {
    session: ConcurrentSession,
    last_use: u64,
}

struct OfCaller {
    account: Account,
    conversations: usize,
    /// Conversations of the caller were evicted, so one that is not known may be one of them.
    has_evicted: bool,
}

/// How a conversation begins that is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// It is new: nothing has been seen.
    New,
    /// It may have been evicted: what it has seen is unknown.
    MayBeEvicted,
}

impl Conversations {
    /// Remembers at most `most_of_one` conversations of one caller.
    pub(super) fn new(most_of_one: usize) -> Self {
        Self::with_quotas(most_of_one, MOST)
    }

    fn with_quotas(most_of_one: usize, most: usize) -> Self {
        let (known, callers) = (HashMap::new(), HashMap::new());
        Self { known, callers, most_of_one, most, clock: 0, forgot_callers: false }
    }

    /// The session of a conversation; `begin` makes it where it is not remembered.
    pub(super) fn session(
        &mut self,
        conversation: &Conversation,
        account: Account,
        begin: impl FnOnce(Beginning) -> ConcurrentSession,
    ) -> ConcurrentSession {
        self.clock += 1;
        if let Some(remembered) = self.known.get_mut(conversation) {
            remembered.last_use = self.clock;
            return remembered.session.clone();
        }
        let beginning = match self.callers.get(&conversation.caller) {
            Some(caller) if caller.has_evicted => Beginning::MayBeEvicted,
            None if self.forgot_callers => Beginning::MayBeEvicted,
            _ => Beginning::New,
        };
        let session = begin(beginning);
        let remembered = Remembered { session: session.clone(), last_use: self.clock };
        self.known.insert(conversation.clone(), remembered);
        let new = OfCaller { account, conversations: 0, has_evicted: false };
        let caller = self.callers.entry(conversation.caller.clone()).or_insert(new);
        caller.conversations += 1;
        if caller.conversations > self.most_of_one {
            self.evict(|of| of == conversation.caller);
        } else if self.known.len() > self.most {
            let held = self.callers.values().map(|caller| (caller.account, caller.conversations));
            let heaviest = heaviest(held);
            let names = self.callers.iter().filter(|(_, caller)| heaviest.contains(&caller.account));
            let names: HashSet<String> = names.map(|(name, _)| name.clone()).collect();
            self.evict(|of| names.contains(of));
        }
        self.bound_callers();
        session
    }

    /// Evicts the conversation that was used least recently, of these callers.
    fn evict(&mut self, is_of: impl Fn(&str) -> bool) {
        let candidates = self.known.iter().filter(|(conversation, _)| is_of(&conversation.caller));
        let oldest = candidates.min_by_key(|(_, remembered)| remembered.last_use);
        let Some(oldest) = oldest.map(|(conversation, _)| conversation.clone()) else { return };
        self.known.remove(&oldest);
        if let Some(caller) = self.callers.get_mut(&oldest.caller) {
            caller.conversations = caller.conversations.saturating_sub(1);
            caller.has_evicted = true;
        }
    }

    /// Callers without conversations are kept only to know that some were evicted. Of too many, that is remembered of all.
    fn bound_callers(&mut self) {
        if self.callers.len() > self.most.saturating_mul(2) {
            self.forgot_callers |= self.callers.values().any(|caller| caller.conversations == 0);
            self.callers.retain(|_, caller| caller.conversations > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::json::json;

    fn conversation(caller: &str, name: usize) -> Conversation {
        Conversation { caller: caller.to_owned(), name: Some(name.to_string()) }
    }

    /// Opens a conversation of a tenant's caller (`tenant/caller`); says how it began, unless it was remembered.
    fn open(conversations: &mut Conversations, caller: &str, name: usize) -> Option<Beginning> {
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
    fn a_caller_that_invents_names_evicts_only_its_own() {
        let mut conversations = Conversations::with_quotas(8, 1000);
        assert_eq!(open(&mut conversations, "honest", 0), Some(Beginning::New));
        for name in 0..50 {
            open(&mut conversations, "hostile", name);
        }
        assert_eq!(open(&mut conversations, "honest", 0), None, "remembered");
        assert_eq!(open(&mut conversations, "honest", 1), Some(Beginning::New));
        assert_eq!(open(&mut conversations, "hostile", 0), Some(Beginning::MayBeEvicted));
        assert_eq!(conversations.known.len(), 10);
    }

    #[test]
    fn of_all_together_the_heaviest_caller_gives_way() {
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
    fn a_tenant_with_many_callers_evicts_only_its_own() {
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
    fn callers_that_are_forgotten_make_every_new_one_unknown() {
        let mut conversations = Conversations::with_quotas(1, 4);
        for caller in 0..40 {
            open(&mut conversations, &caller.to_string(), 0);
        }
        assert!(conversations.callers.len() <= 8 && conversations.known.len() <= 4);
        assert_eq!(open(&mut conversations, "0", 0), Some(Beginning::MayBeEvicted));
    }
}
