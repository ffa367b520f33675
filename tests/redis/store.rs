//! What every store guarantees, and what a shared one does in trouble.

use std::sync::Arc;

use super::server::RedisServer;
use crate::store_contract;

#[test]
fn keeps_the_contract_of_stores() {
    let server = Arc::new(RedisServer::start());
    store_contract::check_all(&move || server.new_store());
}

#[test]
fn shares_its_capacity_fairly() {
    let server = Arc::new(RedisServer::start());
    store_contract::tenants::check_all(&move |capacity| server.new_store_with(capacity));
}
