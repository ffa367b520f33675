//! What an identity file may hold, as tables.

use crate::authoring::{Field, Record, Shape};

pub(super) const ALGORITHMS: Shape = Shape::Word(&[
    ("RS256", "RSA with SHA-256"),
    ("RS384", "RSA with SHA-384"),
    ("RS512", "RSA with SHA-512"),
    ("PS256", "RSA-PSS with SHA-256"),
    ("PS384", "RSA-PSS with SHA-384"),
    ("PS512", "RSA-PSS with SHA-512"),
    ("ES256", "ECDSA on P-256"),
    ("ES384", "ECDSA on P-384"),
    ("EdDSA", "Ed25519"),
    ("HS256", "a shared secret with SHA-256"),
    ("HS384", "a shared secret with SHA-384"),
    ("HS512", "a shared secret with SHA-512"),
]);

const CLAIM: Shape = Shape::Text("the name of a claim, or the way to it such as `realm_access.roles`");

const CONTEXT: Field = Field::optional(
    "context",
    Shape::Any,
    "What else is known of whoever calls: a mapping, which policies read below `$.context`.",
);

static TOKEN: Record = Record {
    name: "token",
    doc: "A token that was given out. Either its digest is said, or the environment variable that holds it.",
    fields: &[
        Field::optional(
            "sha256",
            Shape::Text("64 hexadecimal digits"),
            "The SHA-256 digest of the token, as `printf %s TOKEN | sha256sum` prints it.",
        ),
        Field::optional(
            "env",
            Shape::Text("the name of an environment variable"),
            "The environment variable that holds the token.",
        ),
        Field::required("principal", Shape::Text("a name"), "Who calls with it: `$.context.principal`."),
        Field::optional(
            "roles",
            Shape::Items(&Shape::Text("a role")),
            "The roles of whoever calls: `$.context.roles`.",
        ),
        Field::optional("tenant", Shape::Text("a name"), "For whom whoever calls works: `$.context.tenant`."),
        CONTEXT,
    ],
};

static ISSUER: Record = Record {
    name: "issuer",
    doc: "One whose tokens (JWT) are believed. The keys are said by one of `jwks`, `pem` and `secret_env`.",
    fields: &[
        Field::required("issuer", Shape::Text("a URL or name"), "What its tokens say in `iss`."),
        Field::required(
            "audience",
            Shape::OneOrMany(&Shape::Text("a URL or name")),
            "What its tokens must be for: one of these stands in `aud`.",
        ),
        Field::required(
            "algorithms",
            Shape::OneOrMany(&ALGORITHMS),
            "What its tokens may be signed by. No other is accepted.",
        ),
        Field::optional("jwks", Shape::Text("a file"), "A file with its public keys, as a JSON Web Key Set."),
        Field::optional("pem", Shape::Text("a file"), "A file with its public key, in PEM."),
        Field::optional(
            "secret_env",
            Shape::Text("the name of an environment variable"),
            "The environment variable that holds the shared secret, for `HS256` and its like.",
        ),
        Field::optional(
            "leeway",
            Shape::Text("a span of time such as `30s`"),
            "How far clocks may be apart. Without it: `30s`.",
        ),
        Field::optional("principal", CLAIM, "The claim that says who calls. Without it: `sub`."),
        Field::optional(
            "prefix",
            Shape::Text("a text such as `staff:`"),
            "Stands before each principal of this issuer. Needed where principals come from several issuers or tokens, so that no two \
             callers have one name.",
        ),
        Field::optional(
            "roles",
            CLAIM,
            "The claim that says the roles: a list of texts, or words in one text. Without it nobody has any.",
        ),
        Field::optional("tenant", CLAIM, "The claim that says the tenant; a token without it is refused."),
        Field::optional(
            "claims",
            Shape::List(&CLAIM),
            "Claims that policies are to see, below `$.context.claims`.",
        ),
        CONTEXT,
    ],
};

static IDENTITY: Record = Record {
    name: "identity",
    doc: "Who may use a gateway over HTTP, and who they are to policies.",
    fields: &[
        Field::optional("callgate", Shape::Number, "The version of the format: 1."),
        Field::optional("tokens", Shape::List(&Shape::Record(&TOKEN)), "Tokens that were given out."),
        Field::optional(
            "jwt",
            Shape::OneOrMany(&Shape::Record(&ISSUER)),
            "Those whose tokens (JWT) are believed.",
        ),
    ],
};

/// The shape of an identity file.
pub fn identity_record() -> &'static Record {
    &IDENTITY
}
