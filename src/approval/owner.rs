//! Whose a store is: who comes with other keys than those that its questions are sealed with is told so before anything is
//! asked anew, or answered in vain.

use super::ledger::{Ledger, LedgerError, TRIES};
use super::question::is_sealed;
use crate::host::{RecordKey, Write};
use crate::json::{Value, json};
use crate::seal::{Keys, Purpose};

/// Where it stands.
const OWNER: RecordKey<'static> = RecordKey { space: "owner", key: "keys" };

impl Ledger<'_> {
    /// Whether the store is that of the holders of these keys. One that nobody's keys are noted in becomes theirs, unless it has
    /// questions that are sealed with others.
    pub async fn belongs_to(&self, keys: &Keys) -> Result<bool, LedgerError> {
        let mark: Value = keys.seal(Purpose::Store, &json!([])).into();
        for _ in 0..TRIES {
            let standing = self.get(OWNER).await?;
            let ours = match &standing {
                Some(record) => match record.value.as_str() {
                    Some(seal) => keys.verify(Purpose::Store, &json!([]), seal).is_ok(),
                    None => return Err(LedgerError::Corrupt(OWNER.key.to_owned())),
                },
                None => {
                    let listed = self.list().await?;
                    !listed.iter().any(|known| matches!(known.entry.question(Some(keys)), Some(Err(_))))
                }
            };
            if !ours || standing.as_ref().is_some_and(|record| record.value == mark) {
                return Ok(ours);
            }
            // Once the key that it was noted with is retired, only the new one is known.
            let over = standing.map(|record| record.version);
            if self.write(Write { key: OWNER, value: &mark, over, forget_at: None }).await? {
                return Ok(true);
            }
        }
        Err(LedgerError::Contended(OWNER.key.to_owned()))
    }

    /// Whether anyone's keys are noted in the store, or a question of it is sealed: without keys it can't be told then what is
    /// ours.
    pub async fn is_sealed(&self) -> Result<bool, LedgerError> {
        if self.get(OWNER).await?.is_some() {
            return Ok(true);
        }
        let listed = self.list().await?;
        Ok(listed.iter().filter_map(|known| known.entry.request.as_ref()).any(is_sealed))
    }
}
