//! Grants of the ledger: remembered approvals, by name.

use super::{Ledger, MAX_TRIES};
use crate::approval::grant::Grant;
use crate::approval::ledger_error::LedgerError;
use crate::host::{ConditionalWrite, Record, RecordKey, space};
use crate::json;

impl Ledger<'_> {
    /// The grant of this name, if there is one.
    pub async fn grant(&self, name: &str) -> Result<Option<Grant>, LedgerError> {
        let found = self.read_record(RecordKey { space: space::GRANTS, key: name }).await?;
        found.map(|record| parse_grant(name, record)).transpose()
    }

    /// Stores a grant, in place of one with the same name.
    pub async fn save_grant(&self, name: &str, grant: &Grant) -> Result<(), LedgerError> {
        let value = json::to_value(grant).map_err(|_| LedgerError::Corrupt(name.to_owned()))?;
        for _ in 0..MAX_TRIES {
            let key = RecordKey { space: space::GRANTS, key: name };
            let expected_version = self.read_record(key).await?.map(|record| record.version);
            let write = ConditionalWrite::new(key, &value, self.account);
            if self
                .write(ConditionalWrite { expected_version, forget_at: Some(grant.until), ..write })
                .await?
            {
                return Ok(());
            }
        }
        Err(LedgerError::Contended(name.to_owned()))
    }

    /// Revokes a grant.
    ///
    /// # Errors
    /// [`LedgerError::NotFound`] if there is none; the store fails.
    pub async fn revoke_grant(&self, name: &str) -> Result<Grant, LedgerError> {
        let mut grant = self.grant(name).await?.ok_or_else(|| LedgerError::NotFound(name.to_owned()))?;
        grant.revoked = true;
        self.save_grant(name, &grant).await?;
        Ok(grant)
    }

    /// All grants with their names.
    pub async fn grants(&self) -> Result<Vec<(String, Grant)>, LedgerError> {
        let all = self.read_all(space::GRANTS).await?;
        all.into_iter().map(|(name, record)| Ok((name.clone(), parse_grant(&name, record)?))).collect()
    }
}

fn parse_grant(name: &str, record: Record) -> Result<Grant, LedgerError> {
    json::from_value(record.value).map_err(|_| LedgerError::Corrupt(name.to_owned()))
}
