//! The names of sessions in the store: those of different callers never meet.

/// How many characters of a caller's digest are part of the names of its sessions.
const CALLER_DIGITS: usize = 32;

/// The name of a caller's session in the store: no two callers share one.
pub(crate) fn stored_name(caller_name: &str, session: &str) -> String {
    let digits = caller_name.get(caller_name.len().saturating_sub(CALLER_DIGITS)..).unwrap_or(caller_name);
    format!("{digits}/{session}")
}

/// The name as the caller knows it, of a name in the store.
pub(crate) fn shown_name(stored: &str) -> &str {
    match stored.split_once('/') {
        Some((digits, name)) if digits.len() == CALLER_DIGITS => name,
        _ => stored,
    }
}
