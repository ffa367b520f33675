//! `auth:` of a server → [`UpstreamAuth`].

use callgate::diagnostic::{CONFLICTING_KEYS, UNKNOWN_VALUE};
use callgate::rules_schema::{FieldShape, RecordShape, Shape};
use callgate::source::YamlNode;
use callgate_http::{TokenExchangeSettings, parse_secret_url};

use super::ConfigReader;
use crate::upstream_auth::UpstreamAuth;

pub(super) const AUTH: Shape = Shape::Record(&RECORD);

const TEXT: Shape = Shape::String("a string");
const TEXTS: Shape = Shape::OneOrMany(&TEXT);

static RECORD: RecordShape = RecordShape {
    name: "auth",
    doc: "How requests to an HTTP server are authorized by the caller's own token: `pass_through` or `token_exchange`. It needs `--auth`.",
    fields: &[
        FieldShape::optional(
            "pass_through",
            Shape::Record(&PASS_THROUGH),
            "The caller's token is sent to the server if it is for it, and never otherwise.",
        ),
        FieldShape::optional(
            "token_exchange",
            Shape::Record(&TOKEN_EXCHANGE),
            "An authorization server exchanges the caller's token for one of the same caller for the server (RFC 8693).",
        ),
    ],
};

static PASS_THROUGH: RecordShape = RecordShape {
    name: "pass-through",
    doc: "Passes the caller's own token.",
    fields: &[FieldShape::required(
        "audience",
        TEXT,
        "The audience of the server, which the `aud` of the token must contain.",
    )],
};

static TOKEN_EXCHANGE: RecordShape = RecordShape {
    name: "token-exchange",
    doc: "Exchanges the caller's token (RFC 8693). `audience` or `resource` names the server.",
    fields: &[
        FieldShape::required(
            "endpoint",
            Shape::String("a URL such as `https://login.example.com/token`"),
            "The token endpoint of the authorization server.",
        ),
        FieldShape::required("client_id", TEXT, "The client id of the gateway."),
        FieldShape::required(
            "client_secret",
            TEXT,
            "The secret of the client. `${NAME}` inserts a variable of the gateway's environment.",
        ),
        FieldShape::optional("audience", TEXTS, "The names of the server at the authorization server."),
        FieldShape::optional("resource", TEXTS, "The URLs of the server (RFC 8707)."),
        FieldShape::optional("scope", TEXTS, "The scopes of the token."),
    ],
};

impl ConfigReader<'_> {
    /// Reads `auth:` of a server with this URL.
    pub(super) fn auth(&mut self, node: &YamlNode, url: &str) -> Option<UpstreamAuth> {
        // Nobody on the way may read the token.
        if let Err(why) = parse_secret_url(url) {
            let help = "use `https://`, or remove `auth`";
            let message = format!("tokens can't be sent to this server: {why}");
            self.report(&UNKNOWN_VALUE, node.span, message, help);
        }
        match (node.get("pass_through"), node.get("token_exchange")) {
            (Some(settings), None) => {
                let audience = settings.get("audience").and_then(YamlNode::as_str)?.to_owned();
                Some(UpstreamAuth::PassThrough { audience })
            }
            (None, Some(settings)) => self.token_exchange(settings).map(UpstreamAuth::TokenExchange),
            _ => {
                let help = "write `pass_through: { audience: … }` or `token_exchange: { … }`";
                self.report(&CONFLICTING_KEYS, node.span, "`auth` has exactly one of two keys", help);
                None
            }
        }
    }

    fn token_exchange(&mut self, node: &YamlNode) -> Option<TokenExchangeSettings> {
        let text = |key: &str| node.get(key).and_then(YamlNode::as_str);
        let texts = |key: &str| -> Vec<String> {
            let Some(node) = node.get(key) else { return Vec::new() };
            let items = node.items().unwrap_or(std::slice::from_ref(node));
            items.iter().filter_map(YamlNode::as_str).map(str::to_owned).collect()
        };
        let endpoint = text("endpoint")?.to_owned();
        if let (Err(why), Some(node)) = (parse_secret_url(&endpoint), node.get("endpoint")) {
            self.report(
                &UNKNOWN_VALUE,
                node.span,
                why,
                "write for example `https://login.example.com/token`",
            );
        }
        let (audience, resource) = (texts("audience"), texts("resource"));
        if audience.is_empty() && resource.is_empty() {
            let message = "the token would be for any server";
            let help = "name the server by `audience` or `resource`";
            self.report(&CONFLICTING_KEYS, node.span, message, help);
        }
        let secret = node.get("client_secret")?;
        Some(TokenExchangeSettings {
            endpoint,
            client_id: text("client_id")?.to_owned(),
            client_secret: self.interpolate(secret, secret.as_str()?),
            audience,
            resource,
            scope: Some(texts("scope").join(" ")).filter(|scope| !scope.is_empty()),
        })
    }
}
