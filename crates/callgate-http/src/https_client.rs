//! The client for outgoing HTTP requests: TLS by `ring`, no redirects, no proxy for this machine.

use std::net::IpAddr;
use std::sync::Once;

use reqwest::{Client, ClientBuilder, Url, redirect};

/// Makes `ring` the cryptography of TLS in this process, unless an embedding program has installed its own.
pub fn install_cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A client for requests to the host of a URL. It follows no redirects, as another host would receive the headers of the request.
pub fn https_client(url: &Url) -> ClientBuilder {
    install_cryptography();
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .user_agent(concat!("callgate/", env!("CARGO_PKG_VERSION")));
    if is_this_machine(url) { client.no_proxy() } else { client }
}

/// Whether a URL names this machine.
pub fn is_this_machine(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    })
}

/// Parses a URL whose answers are trusted, or to which secrets are sent.
///
/// # Errors
/// It does not begin with `https://` and is not of this machine, or contains a password.
pub fn parse_secret_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("this is not a URL: {error}"))?;
    if !(url.scheme() == "https" || url.scheme() == "http" && is_this_machine(&url)) {
        return Err("the URL must begin with `https://`, except on this machine".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL must not contain a password".to_owned());
    }
    Ok(url)
}

/// An error with its causes, without the URL, which may contain a secret.
pub fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}
