//! The tasks of an open store: it renews the lease of its slots, writes which cached results were used, and listens for slots that other
//! hosts release and for what they announce.

use std::sync::Weak;
use std::time::Duration;

use callgate::host::Announcement;

use super::database::Database;
use super::error::PostgresError;
use super::schema::channel_name;
use super::statement;

/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(4);
/// How long until a lost connection is made again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The longest payload that the server takes, in bytes.
const MAX_PAYLOAD: usize = 7_999;
/// The payload for an approval request whose key does not fit.
const UNNAMED_APPROVAL: &str = "?";

/// Renews the lease of a store, and writes which cached results were used, until the store is dropped. A store that has lost its lease gets
/// another one for its further slots.
pub(crate) async fn maintain(store: Weak<Database>) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let Some(store) = store.upgrade() else { return };
        // The next renewal tries again; until then the lease lasts.
        let _ = store.maintain_slots().await;
        let _ = store.write_cache_uses().await;
    }
}

/// Wakes those who wait for a slot whenever one is released anywhere, and passes announcements on, until the store is dropped.
pub(crate) async fn listen(store: Weak<Database>) {
    loop {
        let Some(shared) = store.upgrade() else { return };
        let settings = shared.settings.clone();
        // The schema's name has letters, digits and `_` only.
        let statement = format!("LISTEN {}", channel_name(&settings.schema));
        drop(shared);
        let listening = Weak::clone(&store);
        let hear = move |payload: Option<&str>| {
            if let Some(store) = listening.upgrade() {
                store.hear(payload);
            }
        };
        let ended = settings.listen(&statement, hear).await;
        drop(ended);
        tokio::time::sleep(RECONNECT_DELAY).await;
        if let Some(store) = store.upgrade() {
            store.hear(None);
        }
    }
}

impl Database {
    /// Takes the payload of a notification: empty if slots were released, otherwise the key of an approval request. `None`: notifications
    /// were not heard.
    fn hear(&self, payload: Option<&str>) {
        match payload {
            None => self.announcer.announce(Announcement::Missed),
            Some("") => {}
            Some(UNNAMED_APPROVAL) => return self.announcer.announce(Announcement::Missed),
            Some(key) => return self.announcer.announce(Announcement::Approval(key.into())),
        }
        self.slots_freed.notify_waiters();
    }

    /// Notifies the channel of a changed approval request.
    pub(crate) async fn announce_approval(&self, key: &str) -> Result<(), PostgresError> {
        let fits = (1..=MAX_PAYLOAD).contains(&key.len());
        let payload = if fits { key } else { UNNAMED_APPROVAL };
        let database = self.pool.get().await?;
        let channel = channel_name(&self.settings.schema);
        statement::query(&database, "SELECT pg_notify($1, $2)", &[&channel, &payload]).await?;
        Ok(())
    }
}
