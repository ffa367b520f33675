//! The tasks of an open store: it renews the lease of its slots, removes what has expired, and listens for slots that other hosts release
//! and for what they announce.

use std::sync::Weak;
use std::time::Duration;

use callgate::host::Announcement;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use redis::Msg;

use super::primary::subscribe;
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

/// Wakes those who wait for a slot whenever one is released anywhere, and passes announcements on, until the store is dropped.
pub(crate) async fn listen(store: Weak<Server>) {
    loop {
        let Some(server) = store.upgrade() else { return };
        let (slots, approvals) = (server.slot_channel(), server.approval_channel());
        let settings = server.settings.clone();
        drop(server);
        if let Ok(messages) = subscribe(&settings, &[&slots, &approvals]).await {
            let mut messages = messages.into_on_message();
            let mut heard = None;
            loop {
                let Some(server) = store.upgrade() else { return };
                server.hear(heard.as_ref());
                drop(server);
                heard = messages.next().await;
                if heard.is_none() {
                    break;
                }
            }
        }
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}

impl Server {
    /// Takes a message of a channel. `None`: what was published before the first message was not heard.
    fn hear(&self, message: Option<&Msg>) {
        let approval = message.filter(|message| message.get_channel_name() == self.approval_channel());
        if let Some(approval) = approval {
            let key = approval.get_payload::<String>();
            let announcement = key.map_or(Announcement::Missed, |key| Announcement::Approval(key.into()));
            return self.announcer.announce(announcement);
        }
        if message.is_none() {
            self.announcer.announce(Announcement::Missed);
        }
        self.slots_freed.notify_waiters();
    }
}
