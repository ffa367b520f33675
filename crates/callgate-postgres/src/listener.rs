//! Notifications of released slots, by `LISTEN` on a connection of its own.

use std::sync::Weak;
use std::time::Duration;

use super::store::Shared;

/// How long until a lost connection is made again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// The channel of a schema.
pub(crate) fn channel(schema: &str) -> String {
    format!("callgate_{schema}")
}

/// Wakes those who wait for a slot whenever one is released anywhere, until the store is dropped.
pub(crate) async fn listen(store: Weak<Shared>) {
    loop {
        let Some(shared) = store.upgrade() else { return };
        let settings = shared.settings.clone();
        // The schema's name has letters, digits and `_` only.
        let statement = format!("LISTEN {}", channel(&settings.schema));
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
