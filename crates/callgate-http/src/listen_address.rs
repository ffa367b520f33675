//! The rule for addresses that servers listen on.

use std::net::SocketAddr;

/// Checks that a server may listen on an address: other machines can reach it only if clients are authenticated. `why` and `remedy` say what
/// is open otherwise, and what to configure.
///
/// # Errors
/// They can reach it, and clients are not authenticated.
pub fn check_listen_address(
    address: SocketAddr,
    authenticates: bool,
    why: &str,
    remedy: &str,
) -> Result<(), String> {
    if address.ip().is_loopback() || authenticates {
        return Ok(());
    }
    Err(format!(
        "`{address}` can be reached from other machines, but {why}: {remedy}, or listen on 127.0.0.1"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_reaches_a_server_that_authenticates_nobody() {
        let check = |address: &str, authenticates| {
            check_listen_address(address.parse().unwrap(), authenticates, "it is open", "close it")
        };
        for local in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80"] {
            assert_eq!(check(local, false), Ok(()), "{local}");
        }
        for other in ["0.0.0.0:80", "[::]:80", "192.168.0.1:80", "[::ffff:127.0.0.1]:80"] {
            assert!(check(other, false).unwrap_err().contains("it is open: close it"), "{other}");
            assert_eq!(check(other, true), Ok(()), "{other}");
        }
    }
}
