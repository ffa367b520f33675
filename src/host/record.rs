//! What a store keeps for those who come back: records that are exchanged whole, and only by who knows what stands there.

use jiff::Timestamp;

use super::Account;
use crate::json::Value;

/// How much the value of a record may measure, in bytes of JSON. A larger one is not written, nor is one nested so deeply
/// that it could not be read again.
pub const LARGEST_RECORD: usize = 4 << 20;

/// The spaces in which Callgate keeps records.
pub mod space {
    /// Whose the store is.
    pub const OWNER: &str = "owner";
    /// Calls, with what was asked and answered.
    pub const CALLS: &str = "calls";
    /// Remembered approvals.
    pub const GRANTS: &str = "grants";
    /// What sessions have seen.
    pub const SESSIONS: &str = "sessions";
    /// What was used of budgets.
    pub const BUDGETS: &str = "budgets";
    /// Where the numbers of questions about equal calls begin.
    pub const LATEST: &str = "latest";
    /// All but [`OWNER`].
    pub const ALL: [&str; 5] = [CALLS, GRANTS, SESSIONS, BUDGETS, LATEST];
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordKey<'a> {
    /// What kind of record it is.
    pub space: &'a str,
    /// Its name among those of its kind.
    pub key: &'a str,
}

/// A record, as it stands in a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What it says.
    pub value: Value,
    /// Changes with each write. A record that was forgotten and is written anew has none of the versions that it had.
    pub version: u64,
}

/// A record to be written.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Where.
    pub key: RecordKey<'a>,
    /// What it says from now on.
    pub value: &'a Value,
    /// The version of what must stand there for it to be written; nothing, where nothing may stand there.
    pub over: Option<u64>,
    /// From when on the store may forget it; never, where nothing stands here.
    pub forget_at: Option<Timestamp>,
    /// Whose share of the store it is charged to. A record that is there already stays charged to the account that it was first
    /// written for.
    pub account: Account,
    /// What happens if the account's share is used up.
    pub when_full: WhenFull,
}

impl<'a> Write<'a> {
    /// The write of a record where none is, which is never forgotten, and refused if the account's share is used up.
    pub fn new(key: RecordKey<'a>, value: &'a Value, account: Account) -> Self {
        Self { key, value, over: None, forget_at: None, account, when_full: WhenFull::Refuse }
    }
}

/// What happens to a write if the share of its account is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused.
    #[default]
    Refuse,
    /// The caller's own records of the same space give way, those that were written longest ago first.
    EvictOldest,
}

/// A page of the records of one space, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Keys with what they hold.
    pub records: Vec<(String, Record)>,
    /// Whether there are more after the last of them.
    pub more: bool,
}
