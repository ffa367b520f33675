//! Hosts, URLs, mail domains and directories: string → canonical form, and the patterns that tests compare it with. A string that
//! programs interpret differently is [`Undecided`].

mod directory_index;
mod host_index;
mod host_name;
mod mail_domain;
mod path_containment;
mod undecided;
mod url_form;
mod url_host;

pub(crate) use directory_index::DirectoryIndex;
pub(crate) use host_index::HostIndex;
pub(crate) use host_name::HostName;
pub use mail_domain::{DomainPattern, every_domain_matches, parse_address_domains};
pub use path_containment::Directory;
pub use undecided::Undecided;
pub(crate) use url_form::UrlForm;
pub(crate) use url_host::parse_url_host;
pub use url_host::{HostPattern, url_host};
