//! The records of a replay: the usage of budgets is stored; calls and their approval requests are not, because the recording has them.

use jiff::Timestamp;

use super::MemoryStore;
use crate::host::{
    Account, ConditionalWrite, Record, RecordKey, RecordPage, RecordStore, StoreFuture, space,
};

/// Stores the usage of budgets, and nothing else.
#[derive(Debug, Default)]
pub struct BudgetRecords(MemoryStore);

impl RecordStore for BudgetRecords {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        self.0.record(key)
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        match write.key.space {
            space::CALLS | space::GRANTS | space::SESSIONS | space::LATEST => Box::pin(async { Ok(true) }),
            _ => self.0.write_record(now, write),
        }
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        self.0.records(space, after, limit)
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        self.0.has_lost_records(account)
    }
}
