//! The tasks of an open store: it renews the lease of its slots, and listens for slots that other hosts release.

use std::sync::Weak;
use std::time::Duration;

use super::database::Database;
use super::schema::slot_channel;

/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(4);
/// How long until a lost connection is made again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Renews the lease of a store until the store is dropped. A store that has lost its lease gets another one for its further slots.
pub(crate) async fn keep_lease(store: Weak<Database>) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let Some(store) = store.upgrade() else { return };
        // The next renewal tries again; until then the lease lasts.
        let _ = store.maintain_slots().await;
    }
}

/// Wakes those who wait for a slot whenever one is released anywhere, until the store is dropped.
pub(crate) async fn listen(store: Weak<Database>) {
    loop {
        let Some(shared) = store.upgrade() else { return };
        let settings = shared.settings.clone();
        // The schema's name has letters, digits and `_` only.
        let statement = format!("LISTEN {}", slot_channel(&settings.schema));
        drop(shared);
        let waiting = Weak::clone(&store);
        let wake = move || {
            if let Some(store) = waiting.upgrade() {
                store.slots_freed.notify_waiters();
            }
        };
        let ended = settings.listen(&statement, wake).await;
        drop(ended);
        tokio::time::sleep(RECONNECT_DELAY).await;
        // What was released in the meantime was not heard.
        if let Some(store) = store.upgrade() {
            store.slots_freed.notify_waiters();
        }
    }
}
