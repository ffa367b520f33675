//! The schema of an identity file, as tables.

use callgate::rules_schema::{FieldShape, RecordShape, Shape};

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

const CLAIM: Shape = Shape::String("the name of a claim, or its path such as `realm_access.roles`");

const CONTEXT: FieldShape = FieldShape::optional(
    "context",
    Shape::Any,
    "More context of the caller: a mapping, which policies read as members of `$.context`.",
);

const ACCESS: Shape = Shape::Word(&[
    ("caller", "evaluates and runs its own calls"),
    ("host", "the same for the users that it serves, whose context and task it sets"),
    ("approver", "sees and answers approval requests of its tenant"),
    ("admin", "sees the rules and what they do, and confirms new ones"),
]);

const ROLES: Shape = Shape::OneOrMany(&Shape::String("a role"));

static ACCESS_BY_ROLE: RecordShape = RecordShape {
    name: "access",
    doc: "Which roles give which access to a decision server (`callgate serve`).",
    fields: &[
        FieldShape::optional("caller", ROLES, "Roles of callers. Default: every caller of the issuer."),
        FieldShape::optional("host", ROLES, "Roles of hosts, which set the context and the task of calls."),
        FieldShape::optional("approver", ROLES, "Roles of approvers. Default: none."),
        FieldShape::optional("admin", ROLES, "Roles of administrators. Default: none."),
    ],
};

const PRINCIPAL: FieldShape = FieldShape::required(
    "principal",
    Shape::String("a name"),
    "The caller that uses it: `$.context.principal`.",
);

const CALLER_ROLES: FieldShape = FieldShape::optional(
    "roles",
    Shape::List(&Shape::String("a role")),
    "The roles of the caller: `$.context.roles`.",
);

const CALLER_TENANT: FieldShape =
    FieldShape::optional("tenant", Shape::String("a name"), "The tenant of the caller: `$.context.tenant`.");

const CALLER_ACCESS: FieldShape = FieldShape::optional(
    "access",
    Shape::NonEmptyList(&ACCESS),
    "What the caller may do at a decision server (`callgate serve`). Default: `[caller]`. A gateway serves every caller.",
);

static TOKEN: RecordShape = RecordShape {
    name: "token",
    doc: "A bearer token, given by its digest (`sha256`) or by an environment variable (`env`).",
    fields: &[
        FieldShape::optional(
            "sha256",
            Shape::String("64 hexadecimal digits"),
            "The SHA-256 digest of the token, as `printf %s TOKEN | sha256sum` prints it.",
        ),
        FieldShape::optional(
            "env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the token.",
        ),
        PRINCIPAL,
        CALLER_ROLES,
        CALLER_TENANT,
        CALLER_ACCESS,
        CONTEXT,
    ],
};

static CERTIFICATE: RecordShape = RecordShape {
    name: "certificate",
    doc: "A TLS client certificate, given by its digest (`sha256`) or by a name in it (`dns`, `uri`). Servers with `--tls-client-ca` take them.",
    fields: &[
        FieldShape::optional(
            "sha256",
            Shape::String("64 hexadecimal digits"),
            "The SHA-256 digest of the certificate, as `openssl x509 -noout -fingerprint -sha256` prints it without colons.",
        ),
        FieldShape::optional(
            "dns",
            Shape::String("a DNS name"),
            "A DNS name in its subject alternative names.",
        ),
        FieldShape::optional(
            "uri",
            Shape::String("a URI such as `spiffe://example.com/agent`"),
            "A URI in its subject alternative names.",
        ),
        PRINCIPAL,
        CALLER_ROLES,
        CALLER_TENANT,
        CALLER_ACCESS,
        CONTEXT,
    ],
};

static ISSUER: RecordShape = RecordShape {
    name: "issuer",
    doc: "A trusted issuer of tokens (JWT). Its keys are given by one of `jwks`, `jwks_url`, `pem` and `secret_env`.",
    fields: &[
        FieldShape::required("issuer", Shape::String("a URL or name"), "The `iss` claim of its tokens."),
        FieldShape::required(
            "audience",
            Shape::OneOrMany(&Shape::String("a URL or name")),
            "The audience: the `aud` claim of its tokens must contain one of these.",
        ),
        FieldShape::required(
            "algorithms",
            Shape::OneOrMany(&ALGORITHMS),
            "The allowed signature algorithms of its tokens.",
        ),
        FieldShape::optional(
            "jwks",
            Shape::String("a file"),
            "A file with its public keys, as a JSON Web Key Set.",
        ),
        FieldShape::optional(
            "jwks_url",
            Shape::String("a URL"),
            "The URL of its JSON Web Key Set, as `jwks_uri` in its metadata. Fetched every five minutes, and when a token names a new key.",
        ),
        FieldShape::optional("pem", Shape::String("a file"), "A file with its public key, in PEM."),
        FieldShape::optional(
            "secret_env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the shared secret, for `HS256`, `HS384` and `HS512`.",
        ),
        FieldShape::optional(
            "leeway",
            Shape::String("a duration such as `30s`"),
            "The tolerated clock skew. Default: `30s`.",
        ),
        FieldShape::optional("principal", CLAIM, "The claim with the principal. Default: `sub`."),
        FieldShape::optional(
            "prefix",
            Shape::String("a string such as `staff:`"),
            "A string that is prepended to each principal of this issuer. Required if principals come from several issuers or tokens, so \
             that no two callers have the same name.",
        ),
        FieldShape::optional(
            "roles",
            CLAIM,
            "The claim with the roles: an array of strings, or one string separated by spaces. Without it callers have no roles.",
        ),
        FieldShape::optional("tenant", CLAIM, "The claim with the tenant; tokens without it are rejected."),
        FieldShape::optional(
            "access",
            Shape::Record(&ACCESS_BY_ROLE),
            "Which roles give which access to a decision server (`callgate serve`).",
        ),
        FieldShape::optional(
            "claims",
            Shape::NonEmptyList(&CLAIM),
            "Claims that are copied to `$.context.claims`, for policies.",
        ),
        CONTEXT,
    ],
};

static IDENTITY: RecordShape = RecordShape {
    name: "identity",
    doc: "Who may use a gateway or a decision server over HTTP, and the context that policies see.",
    fields: &[
        FieldShape::optional("callgate", Shape::Number, "The version of the format: 1."),
        FieldShape::optional(
            "tokens",
            Shape::NonEmptyList(&Shape::Record(&TOKEN)),
            "Bearer tokens and their callers.",
        ),
        FieldShape::optional(
            "certificates",
            Shape::NonEmptyList(&Shape::Record(&CERTIFICATE)),
            "TLS client certificates and their callers.",
        ),
        FieldShape::optional(
            "resource",
            Shape::String("a URL such as `https://tools.example.com/mcp`"),
            "The URL that clients use. With it clients find out by `/.well-known/oauth-protected-resource` (RFC 9728) which issuer gives \
             tokens. Every issuer's `audience` must contain it.",
        ),
        FieldShape::optional(
            "jwt",
            Shape::OneOrMany(&Shape::Record(&ISSUER)),
            "Trusted issuers of tokens (JWT).",
        ),
    ],
};

/// The schema of an identity file.
pub fn identity_record() -> &'static RecordShape {
    &IDENTITY
}
