//! The endpoints of the API, one file for each kind.

pub(crate) mod approvals;
mod authzen;
mod calls;
mod histories;
mod rules;
mod tools;

use crate::endpoint::Endpoint;

/// All endpoints.
pub(crate) fn all() -> impl Iterator<Item = &'static Endpoint> {
    let kinds = [
        calls::ENDPOINTS,
        tools::ENDPOINTS,
        histories::ENDPOINTS,
        approvals::ENDPOINTS,
        rules::ENDPOINTS,
        authzen::ENDPOINTS,
    ];
    kinds.into_iter().flatten()
}
