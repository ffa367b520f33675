//! The approval requests that are pending: requested by this process, and neither resumed nor expired.

use std::collections::HashMap;

use callgate::call::ApprovalRequest;
use jiff::Timestamp;

/// The number of requests whose age is known. Further ones are not counted as pending.
const MAX_REQUESTS: usize = 10_000;

/// When each pending request was made, and when it expires, by conversation and id.
#[derive(Debug, Default)]
pub(crate) struct PendingApprovals {
    requests: HashMap<(String, String), PendingRequest>,
}

#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    requested_at: Timestamp,
    expires_at: Option<Timestamp>,
}

impl PendingApprovals {
    /// Adds a request.
    pub(crate) fn add(&mut self, conversation: &str, request: &ApprovalRequest, requested_at: Timestamp) {
        if self.requests.len() >= MAX_REQUESTS {
            self.remove_expired(requested_at);
        }
        if self.requests.len() < MAX_REQUESTS {
            let expires_at = request.expires_at.as_ref().and_then(|text| text.parse().ok());
            let key = (conversation.to_owned(), request.approval_id.clone());
            self.requests.insert(key, PendingRequest { requested_at, expires_at });
        }
    }

    /// Removes a request that was decided.
    pub(crate) fn remove(&mut self, conversation: &str, approval_id: &str) {
        self.requests.remove(&(conversation.to_owned(), approval_id.to_owned()));
    }

    /// Removes the requests that have expired.
    pub(crate) fn remove_expired(&mut self, now: Timestamp) {
        self.requests.retain(|_, request| request.expires_at.is_none_or(|expires_at| now < expires_at));
    }

    /// The number of pending requests.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The age of the oldest pending request, in seconds; 0 if there is none.
    pub(crate) fn oldest_age(&self, now: Timestamp) -> f64 {
        let oldest = self.requests.values().map(|request| request.requested_at).min();
        oldest.map_or(0.0, |oldest| now.duration_since(oldest).as_secs_f64().max(0.0))
    }
}
