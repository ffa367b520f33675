//! Copies the records of a sealed store into another one: all of them are read and verified before the first is written.

use jiff::Timestamp;

use super::SealedStore;
use super::envelope::Envelope;
use crate::host::{Account, ConditionalWrite, RecordKey, RecordStore as _, StoreError, space};

/// The number of records that are read at once.
const PAGE_SIZE: usize = 256;

/// What a copy has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedRecords {
    /// Records that were written.
    pub copied: u64,
    /// Records that the target had already, with the same value.
    pub unchanged: u64,
    /// Records that have expired, and were left out.
    pub expired: u64,
}

/// Why records can't be copied. The source is unchanged; a copy that ended in the middle can be repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A record can't be read. Nothing was written.
    #[error("the source: {0}")]
    Source(StoreError),
    /// The target has a record with the same key and another value. It is not replaced.
    #[error("the target has another record `{key}` of `{space}`")]
    Conflict {
        /// The space of the record.
        space: &'static str,
        /// The key of the record.
        key: String,
    },
    /// A record can't be written.
    #[error("the target: {0}")]
    Target(StoreError),
}

impl SealedStore {
    /// Copies all records that have not expired into another store, which must not be in use: calls, approvals, remembered approvals,
    /// sessions and budgets. Limits and cached results are not copied. Tokens of pending approvals stay valid if both stores have the same
    /// keys.
    ///
    /// # Errors
    /// A record of this store is invalid, or the target has another value for it: then nothing was written. Or the target fails.
    pub async fn copy_records(&self, target: &Self, now: Timestamp) -> Result<CopiedRecords, CopyError> {
        let copy = RecordCopy { source: self, target, now };
        copy.run(CopyPass::Check).await?;
        copy.run(CopyPass::Write).await
    }
}

/// A copy from one store into another.
struct RecordCopy<'s> {
    source: &'s SealedStore,
    target: &'s SealedStore,
    now: Timestamp,
}

/// What a pass over the records does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CopyPass {
    /// Reads and verifies all records, and compares them with those of the target.
    Check,
    /// Writes them.
    Write,
}

impl RecordCopy<'_> {
    async fn run(&self, pass: CopyPass) -> Result<CopiedRecords, CopyError> {
        let source = self.source;
        let store = source.identity().await.map_err(CopyError::Source)?;
        let mut counts = CopiedRecords::default();
        for space in space::ALL {
            let mut after: Option<String> = None;
            loop {
                let page = source.inner.records(space, after.as_deref(), PAGE_SIZE).await;
                let page = page.map_err(CopyError::Source)?;
                after = page.records.last().map(|(key, _)| key.clone());
                for (key, _) in &page.records {
                    let found = source.verified_record(store, RecordKey { space, key }).await;
                    let (Some(found), _) = found.map_err(CopyError::Source)? else { continue };
                    self.copy_one(space, key, &found.envelope, pass).await?.count(&mut counts);
                }
                if !page.more || after.is_none() {
                    break;
                }
            }
        }
        Ok(counts)
    }

    /// Writes one record into the target, unless it is there already.
    async fn copy_one(
        &self,
        space: &'static str,
        name: &str,
        envelope: &Envelope,
        pass: CopyPass,
    ) -> Result<RecordResult, CopyError> {
        let Envelope { value, forget_at, .. } = envelope;
        if forget_at.is_some_and(|at| at <= self.now) {
            return Ok(RecordResult::Expired);
        }
        let key = RecordKey { space, key: name };
        let known = self.target.record(key).await.map_err(CopyError::Target)?;
        let is_written = match (&known, pass) {
            (None, CopyPass::Check) => true,
            (None, CopyPass::Write) => {
                let new = ConditionalWrite::new(key, value, Account::NOBODY);
                let write = ConditionalWrite { forget_at: *forget_at, ..new };
                self.target.write_record(self.now, write).await.map_err(CopyError::Target)?
            }
            (Some(known), _) if known.value == *value => return Ok(RecordResult::Unchanged),
            (Some(_), _) => false,
        };
        match is_written {
            true => Ok(RecordResult::Copied),
            false => Err(CopyError::Conflict { space, key: name.to_owned() }),
        }
    }
}

/// The result of copying one record.
enum RecordResult {
    Copied,
    Unchanged,
    Expired,
}

impl RecordResult {
    fn count(&self, counts: &mut CopiedRecords) {
        let count = match self {
            Self::Copied => &mut counts.copied,
            Self::Unchanged => &mut counts.unchanged,
            Self::Expired => &mut counts.expired,
        };
        *count += 1;
    }
}
