//! The names of calls in a store ↔ the keys of their records.

use crate::json::{self, json};

/// The name of a call in a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerKey {
    /// The conversation, or its substitute.
    pub conversation: String,
    /// The call's id; later occurrences of the same id have a number.
    pub occurrence_id: String,
}

impl LedgerKey {
    /// The key of the call of an approval request, by the name of its session in the store and the id of the request.
    pub fn of_approval(conversation: &str, approval_id: &str) -> Self {
        let occurrence_id = approval_id.strip_prefix("approval_").unwrap_or(approval_id).to_owned();
        Self { conversation: conversation.to_owned(), occurrence_id }
    }

    /// The key of its record in [`space::CALLS`](crate::host::space::CALLS).
    pub(crate) fn record_key(&self) -> String {
        json::canonical_text(&json!([self.conversation, self.occurrence_id]))
    }

    /// The name of a record in [`space::CALLS`](crate::host::space::CALLS).
    #[doc(hidden)]
    pub fn from_record_key(key: &str) -> Option<Self> {
        let value = json::parse(key).ok()?;
        let text = |index: usize| value.get(index).and_then(json::Value::as_str).map(str::to_owned);
        Some(Self { conversation: text(0)?, occurrence_id: text(1)? })
    }
}
