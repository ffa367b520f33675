//! Announcements of approval requests, between hosts with the same store.

use std::sync::Arc;
use std::time::Duration;

use callgate::host::{Announcement, Announcements, StateStore};
use callgate::seal::Keys;
use callgate::state::SealedStore;

/// Checks that a host hears what another one announces, and what it announces itself, also through a seal.
pub fn check_all(open: impl Fn() -> Arc<dyn StateStore>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        let [teller, other] = [(); 2].map(|()| SealedStore::new(open(), keys.clone()));
        for listener in [&teller, &other] {
            check(&teller, listener).await;
        }
    });
}

async fn check(teller: &dyn StateStore, listener: &dyn StateStore) {
    let mut heard = listener.announcements();
    // It may not be connected yet.
    let first = r#"["first","c1"]"#;
    loop {
        teller.announce_approval(first);
        let next = tokio::time::timeout(Duration::from_millis(500), heard.next()).await;
        if next.is_ok_and(|next| next == Announcement::Approval(first.into())) {
            break;
        }
    }
    let mut announced = vec![first];
    let long = "long".repeat(10_000);
    for key in [r#"["a 'session'; --","c2"]"#, "", "?", r#"["ü\u0000\n","c3"]"#, &long] {
        teller.announce_approval(key);
        let found = next_after(&mut heard, &announced).await;
        // A store may say no more than that something changed.
        assert!([Announcement::Approval(key.into()), Announcement::Missed].contains(&found), "{found:?}");
        teller.announce_approval(first);
        announced.push(key);
    }
}

/// The next announcement of another key than these. A store that connects announces first that something changed, and then may announce an earlier key.
async fn next_after(heard: &mut Announcements, announced: &[&str]) -> Announcement {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(60), heard.next()).await;
        match next.unwrap_or_else(|_| panic!("nothing is heard after {announced:?}")) {
            Announcement::Approval(found) if announced.contains(&&*found) => {}
            other => return other,
        }
    }
}
