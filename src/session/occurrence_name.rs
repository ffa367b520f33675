//! The names of calls in the ledger: given before a call runs, and released when it has ended without an entry there.

use super::Session;
use crate::call::{Outcome, ToolCall};

/// The name of a call in the ledger.
pub(super) struct OccurrenceName {
    /// The id, with a number if earlier calls have it.
    pub(super) occurrence: String,
    /// The ledger has an entry of the call, whatever its outcome is.
    pub(super) is_always_recorded: bool,
}

impl Session {
    /// Names a call for the ledger, unlike any other call of the session.
    pub(super) fn name_occurrence(&mut self, call: &ToolCall) -> OccurrenceName {
        let tools = self.tools.as_deref().unwrap_or(&self.shared.tools).set();
        let is_once = tools.get(call).is_some_and(|tool| tool.descriptor.once);
        OccurrenceName {
            occurrence: self.state.unique_call_id(&call.id),
            is_always_recorded: self.is_recorded || is_once,
        }
    }

    /// Releases the name of a call that is not always recorded, so that a session does not grow with each call. A pending call keeps its
    /// name, for the ledger has an entry of it. Of several calls, release the one that was named last first.
    pub(super) fn release_name(&mut self, call_id: &str, occurrence: &str, outcome: &Outcome) {
        if outcome.approval.is_none() {
            self.state.release_call_id(call_id, occurrence);
        }
    }
}
