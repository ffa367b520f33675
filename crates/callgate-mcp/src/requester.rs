//! Identifies the requester whose approvals a connection can use: context and transport → a name in the store.
//!
//! A requester with a principal is that principal, with its tenant and the issuer that vouches for it, on every transport. Without a
//! principal it is the whole context, the transport and the session's name: all clients that share these are one requester.

use callgate::json::{self, Value, json};

/// Length of the readable part of a name.
const LABEL_LENGTH: usize = 24;

/// What distinguishes clients without a principal.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClientSource<'a> {
    /// The single client on stdin, in the session that the operator named.
    Stdio { session: Option<&'a str> },
    /// A client over HTTP, in the caller's session that its requests name.
    Http { session: Option<&'a str> },
}

/// Returns the name of the requester.
pub(super) fn name(context: &Value, unnamed: ClientSource<'_>) -> String {
    let member = |name: &str| context.get(name).filter(|value| !value.is_null());
    let (label, identity) = match member("principal") {
        Some(principal) => {
            let identity = json!(["principal", member("issuer"), member("tenant"), principal]);
            (principal.as_str().unwrap_or("principal"), identity)
        }
        None => match unnamed {
            ClientSource::Stdio { session } => {
                (session.unwrap_or("stdio"), json!(["stdio", context, session]))
            }
            ClientSource::Http { session } => (session.unwrap_or("http"), json!(["http", context, session])),
        },
    };
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '@');
    let label: String = label.chars().filter(is_plain).take(LABEL_LENGTH).collect();
    let digest: String = json::digest(&identity).to_string().chars().take(32).collect();
    format!("{label}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ClientSource<'_> = ClientSource::Stdio { session: None };

    #[test]
    fn a_principal_is_the_same_requester_on_every_transport() {
        let ana = json!({ "principal": "ana", "tenant": "acme", "roles": ["reader"] });
        let same = json!({ "tenant": "acme", "principal": "ana", "roles": ["writer"] });
        let http = ClientSource::Http { session: Some("s") };
        assert_eq!(name(&ana, PLAIN), name(&same, http));
        assert!(name(&ana, PLAIN).starts_with("ana-"));
    }

    #[test]
    fn different_clients_are_different_requesters() {
        let named = ClientSource::Stdio { session: Some("s") };
        let http = ClientSource::Http { session: None };
        let http_named = ClientSource::Http { session: Some("s") };
        let context = |text: &str| -> Value { json::parse(text).unwrap() };
        let all = [
            name(&Value::Null, PLAIN),
            name(&Value::Null, named),
            name(&Value::Null, http),
            name(&Value::Null, http_named),
            name(&context(r#"{"user":"ana"}"#), PLAIN),
            name(&context(r#"{"user":"bob"}"#), PLAIN),
            name(&context(r#"{"tenant":"a"}"#), PLAIN),
            name(&context(r#"{"tenant":"b"}"#), PLAIN),
            name(&context(r#"{"principal":"ana"}"#), PLAIN),
            name(&context(r#"{"principal":"Ana"}"#), PLAIN),
            name(&context(r#"{"principal":"ana","tenant":"a"}"#), PLAIN),
            name(&context(r#"{"principal":"ana","tenant":"b"}"#), PLAIN),
            name(&context(r#"{"principal":"ana","issuer":"https://one"}"#), http),
            name(&context(r#"{"principal":"ana","issuer":"https://two"}"#), http),
            name(&context(r#"{"principal":{"id":1}}"#), PLAIN),
            name(&context(r#"{"principal":{"id":2}}"#), PLAIN),
            name(&context(r#"{"principal":["ana"]}"#), PLAIN),
        ];
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
    }
}
