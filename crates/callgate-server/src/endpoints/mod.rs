//! The endpoints of the API, one file for each kind.

mod approvals;
mod authzen;
mod calls;
mod histories;
mod rules;

use crate::endpoint::Endpoint;

/// All endpoints.
pub(crate) fn all() -> impl Iterator<Item = &'static Endpoint> {
    [calls::ENDPOINTS, histories::ENDPOINTS, approvals::ENDPOINTS, rules::ENDPOINTS, authzen::ENDPOINTS]
        .into_iter()
        .flatten()
}
