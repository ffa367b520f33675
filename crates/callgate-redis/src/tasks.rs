//! The tasks of an open store: it renews the lease of its slots, removes what has expired, and listens for slots that other hosts release.

use std::sync::Weak;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;

use super::connection::subscribe;
use super::server::Server;

/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(4);
/// How long until a lost connection is made again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Renews the lease of a store, and removes what has expired, until the store is dropped.
pub(crate) async fn maintain(store: Weak<Server>) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let Some(server) = store.upgrade() else { return };
        // The next renewal tries again; until then the lease lasts.
        let _ = server.maintain(Timestamp::now()).await;
    }
}

/// Wakes those who wait for a slot whenever one is released anywhere, until the store is dropped.
pub(crate) async fn listen(store: Weak<Server>) {
    loop {
        let Some(server) = store.upgrade() else { return };
        let (settings, channel) = (server.settings.clone(), server.channel());
        drop(server);
        if let Ok(messages) = subscribe(&settings, &channel).await {
            let mut messages = messages.into_on_message();
            loop {
                // What was released before the first message was not heard.
                let Some(server) = store.upgrade() else { return };
                server.slots_freed.notify_waiters();
                drop(server);
                if messages.next().await.is_none() {
                    break;
                }
            }
        }
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}
