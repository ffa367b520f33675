//! Waiting for limits with `on_exceed: wait`: limits with too little left → how long a call waits for them.

use std::time::Duration;

use jiff::Timestamp;

use super::limit_claim::LimitClaim;
use crate::middleware::OnExceed;

/// How to wait for limits.
pub(super) enum Pause {
    /// For this long.
    For(Duration),
    /// Until a slot is released, at most for this long.
    ForSlot(Duration),
}

/// How to wait until all that refused may have enough. `None` if one of them does not wait, or not so long.
pub(super) fn pause(
    claims: &[LimitClaim<'_>],
    used_up: &[(usize, Option<Duration>)],
    began: Timestamp,
    now: Timestamp,
) -> Option<Pause> {
    // If the clock was set back, it is unknown how long this has waited.
    let waited = Duration::try_from(now.duration_since(began)).ok()?;
    let mut left = Duration::MAX;
    let mut longest = None;
    for (index, retry_after) in used_up {
        let claim = claims.get(*index)?;
        let OnExceed::Wait(max_wait) = claim.limit.on_exceed else { return None };
        left = left.min(max_wait.saturating_sub(waited));
        if retry_after.is_none() && !claim.is_slot() {
            return None;
        }
        longest = longest.max(*retry_after);
    }
    match longest {
        _ if left.is_zero() => None,
        Some(longest) if longest > left => None,
        Some(longest) => Some(Pause::For(longest)),
        None => Some(Pause::ForSlot(left)),
    }
}
