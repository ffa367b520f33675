//! Matchers: the tests that a policy makes on one value.

mod undecided;
mod inside;
mod name;
mod host;
mod domain;

pub use domain::{DomainPattern, address_domains, every_domain_matches};
pub use host::HostPattern;
pub use inside::Directory;
pub use undecided::Undecided;
