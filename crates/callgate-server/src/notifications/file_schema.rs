//! The schema of notification files.

use callgate::rules_schema::{FieldShape, RecordShape, Shape};

static CHANNEL: RecordShape = RecordShape {
    name: "channel",
    doc: "Where messages are sent. Its URL is given by `url`, or by an environment variable (`url_env`) if it is a secret.",
    fields: &[
        FieldShape::required(
            "type",
            Shape::Word(&[
                ("webhook", "signed JSON, by the Standard Webhooks specification"),
                ("slack", "a Slack incoming webhook"),
                ("teams", "a Microsoft Teams webhook (Workflows)"),
                ("ntfy", "a topic of ntfy"),
                ("email", "an e-mail to each approver, over SMTP"),
            ]),
            "The format of the messages.",
        ),
        FieldShape::optional(
            "url",
            Shape::String("a URL"),
            "The URL that messages are sent to. For `email`, the mail server: `smtp://HOST:587` (STARTTLS) or `smtps://HOST:465`.",
        ),
        FieldShape::optional(
            "url_env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the URL.",
        ),
        FieldShape::optional(
            "secret_env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the secret that signs messages, for `webhook`: 24 bytes or more, or `whsec_` and base64.",
        ),
        FieldShape::optional(
            "signing_secret_env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the signing secret of the Slack app, for buttons that answer. Needs `arguments: true` and \
             `approvers`.",
        ),
        FieldShape::optional(
            "approvers",
            Shape::Map(&Shape::Record(&APPROVER)),
            "Who may answer in Slack, by the ids of Slack users; for `email`, who gets messages, by their addresses.",
        ),
        FieldShape::optional(
            "from",
            Shape::String("an e-mail address"),
            "For `email`: the address that messages are sent from.",
        ),
        FieldShape::optional(
            "user",
            Shape::String("a name"),
            "For `email`: the user of the mail server. Needs `password_env`.",
        ),
        FieldShape::optional(
            "password_env",
            Shape::String("the name of an environment variable"),
            "For `email`: the environment variable with the user's password.",
        ),
        FieldShape::optional(
            "ca_file",
            Shape::String("a path, relative to this file"),
            "For `email`: certificates in PEM of authorities that sign the mail server's certificate, beside those of the system.",
        ),
        FieldShape::optional(
            "events",
            Shape::NonEmptyList(&Shape::Word(&[
                ("approval_requested", "a call needs an approval"),
                ("approval_answered", "a request was approved, denied or cancelled, or has expired"),
            ])),
            "What messages are sent about. Default: `[approval_requested]`.",
        ),
        FieldShape::optional(
            "arguments",
            Shape::Bool,
            "Whether messages have the arguments of the call, as policies redact them. Default: false.",
        ),
        FieldShape::optional("templates", Shape::Record(&TEMPLATES), "The texts of messages."),
    ],
};

static APPROVER: RecordShape = RecordShape {
    name: "approver",
    doc: "An approver who is known to a chat product, or has an e-mail address.",
    fields: &[
        FieldShape::required("principal", Shape::String("a name"), "Who it is, as `approvers:` of policies."),
        FieldShape::optional("roles", Shape::NonEmptyList(&Shape::String("a role")), "The roles."),
        FieldShape::optional(
            "tenant",
            Shape::String("a tenant"),
            "The tenant whose requests they answer. Default: all.",
        ),
    ],
};

static TEMPLATES: RecordShape = RecordShape {
    name: "templates",
    doc: "The texts of messages. What is absent has its default.",
    fields: &[
        FieldShape::optional(
            "approval_requested",
            Shape::Record(&TEXTS),
            "Values: `tool`, `server`, `session`, `message`, `policies`, `expires_at`.",
        ),
        FieldShape::optional(
            "approval_answered",
            Shape::Record(&TEXTS),
            "Values: `tool`, `session`, `answer`, `approvers`, `comment`.",
        ),
    ],
};

static TEXTS: RecordShape = RecordShape {
    name: "texts",
    doc: "The texts of one kind of messages, as templates: `Approve {{ tool }}?`. They change neither links nor buttons nor the arguments.",
    fields: &[
        FieldShape::optional("title", Shape::String("a template"), "The title, in one line."),
        FieldShape::optional("text", Shape::String("a template"), "The text below the title."),
        FieldShape::optional("footer", Shape::String("a template"), "The last lines. Default: none."),
    ],
};

pub(super) static NOTIFICATIONS: RecordShape = RecordShape {
    name: "notifications",
    doc: "Where messages about approvals are sent.",
    fields: &[
        FieldShape::optional("callgate", Shape::Integer(1, 1), "The version of the format."),
        FieldShape::optional(
            "page",
            Shape::String("a URL such as `https://approvals.example.com`"),
            "The URL of the approvals page, to which messages link: scheme, host and port.",
        ),
        FieldShape::required(
            "channels",
            Shape::NonEmptyList(&Shape::Record(&CHANNEL)),
            "Where messages are sent.",
        ),
    ],
};

/// The schema of a notification file.
pub fn notification_record() -> &'static RecordShape {
    &NOTIFICATIONS
}
