//! The bodies of requests, as they are parsed and as the OpenAPI document describes them.

use callgate::call::{Task, ToolCall};
use callgate::json::{Map, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::problem::Problem;

/// The JSON schema of a session's name.
fn session_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1F\x7F-\x9F]*$" })
}

/// The JSON schema of a task.
fn task_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [
        { "type": ["string", "null"] },
        { "type": "array", "items": { "anyOf": [
            { "type": "string" },
            { "type": "object", "required": ["text"], "additionalProperties": false,
              "properties": { "text": { "type": "string" }, "at": { "type": ["string", "null"], "format": "date-time" } } },
        ] } },
    ] })
}

/// The most calls of one request.
pub(crate) const MAX_CALLS: usize = 256;

/// One tool call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallBody {
    /// The id of the call, which the model or the host chose. A call of the same id, tool and arguments in the same session is the same
    /// call: it runs once, and is answered with its recorded outcome afterwards. Without an id each request is a new call.
    pub(crate) id: Option<String>,
    /// The name of the tool.
    pub(crate) tool: String,
    /// The MCP server that has the tool.
    pub(crate) server: Option<String>,
    /// The arguments as the model wrote them: an object, unless the model made a mistake. Default: no arguments.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<serde_json::Value>", extend("default" = serde_json::json!({})))]
    pub(crate) input: Option<Value>,
}

/// Calls to decide or to run: one `call`, or the `calls` of one round.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = serde_json::json!([
    { "required": ["call"], "properties": { "call": { "type": "object" }, "calls": { "type": "null" } } },
    { "required": ["calls"], "properties": {
        "call": { "type": "null" }, "calls": { "type": "array", "minItems": 1, "maxItems": MAX_CALLS } } },
])))]
pub(crate) struct CallsBody {
    /// One call.
    pub(crate) call: Option<CallBody>,
    /// The calls of one round, which the model requested together: all are decided before any of them runs.
    pub(crate) calls: Option<Vec<CallBody>>,
    /// The session, which is one agent run: its labels, facts and limits are those of its earlier calls. Without a session the calls
    /// have no history.
    #[serde(default)]
    #[schemars(schema_with = "session_schema")]
    pub(crate) session: Option<String>,
    /// What the host vouches for: principal, roles, tenant, anything that policies read as `$.context`. For callers with `host` access.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub(crate) context: Option<Map>,
    /// What the user asked for, which policies read as `$.task`: a string, or a list of messages. For callers with `host` access.
    #[serde(default)]
    #[schemars(schema_with = "task_schema")]
    pub(crate) task: Option<Value>,
}

/// The result of a tool that the host ran: `output` or `error`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = serde_json::json!([
    { "required": ["output"], "properties": { "error": { "type": "null" } } },
    { "required": ["error"], "properties": { "error": { "type": "object" } }, "not": { "required": ["output"] } },
])))]
pub(crate) struct ReportBody {
    /// The result of the tool, any JSON value.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) output: Option<Value>,
    /// The error of the tool.
    pub(crate) error: Option<ToolErrorBody>,
    /// The call is not complete: the output asks for more input, or says where the result will be. It is never cached.
    #[serde(default)]
    pub(crate) interim: bool,
}

/// The error of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolErrorBody {
    /// The message for the model.
    pub(crate) message: String,
    /// A kind that policies can match, such as `timeout`.
    pub(crate) kind: Option<String>,
}

/// A history to run or to resume.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryBody {
    /// The messages, in the dialect that the path names.
    #[schemars(with = "serde_json::Value")]
    pub(crate) messages: Value,
    /// The session that the history belongs to.
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[^\x00-\x1F\x7F-\x9F]*$"))]
    pub(crate) session: String,
    /// What the host vouches for. For callers with `host` access.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub(crate) context: Option<Map>,
    /// What the user asked for. For callers with `host` access.
    #[serde(default)]
    #[schemars(schema_with = "task_schema")]
    pub(crate) task: Option<Value>,
}

/// An answer to an approval request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = serde_json::json!([
    { "properties": { "input": { "type": "null" } }, "not": { "required": ["output"] } },
    { "properties": { "decision": { "const": "approve" } }, "not": { "required": ["output"] } },
    { "properties": { "decision": { "const": "approve" }, "input": { "type": "null" } } },
])))]
pub(crate) struct AnswerBody {
    /// `approve` the call, `deny` it, or `cancel` the run: neither this call nor later ones of the session run.
    pub(crate) decision: AnswerDecision,
    /// The digest of what the approver was shown, as the request has it. An answer to anything else is refused.
    pub(crate) digest: String,
    /// The reason, which the agent sees.
    pub(crate) reason: Option<String>,
    /// All shown arguments with the approver's changes, where the policy allows edits. Only with `approve`.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) input: Option<Value>,
    /// A result in place of the tool. Only with `approve`.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) output: Option<Value>,
}

/// Answers to several approval requests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswersBody {
    /// The answers. Each is recorded or refused on its own.
    #[schemars(length(min = 1, max = 100))]
    pub(crate) answers: Vec<NamedAnswer>,
}

/// An answer to one of several approval requests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedAnswer {
    /// The `key` of the request.
    pub(crate) key: String,
    /// `approve` the call, `deny` it, or `cancel` the run.
    pub(crate) decision: AnswerDecision,
    /// The digest of what the approver was shown, as the request has it.
    pub(crate) digest: String,
    /// The reason, which the agent sees.
    pub(crate) reason: Option<String>,
}

/// The decision of an approver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AnswerDecision {
    /// The call may run.
    Approve,
    /// The call must not run.
    Deny,
    /// Neither this call nor later ones of the session run.
    Cancel,
}

/// The rules to confirm.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmBody {
    /// The revision of the pending rules that was reviewed.
    pub(crate) revision: String,
}

/// The token of a person who opens the approvals page.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInBody {
    /// A bearer token of the identity file or of a trusted issuer, or the token that the server printed when it started.
    pub(crate) token: String,
}

/// The link of a message, which a person has opened.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkBody {
    /// The token of the link.
    pub(crate) link: String,
}

/// The answer of a person who has opened the link of a message and pressed the button.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkAnswerBody {
    /// The token of the link.
    pub(crate) link: String,
    /// The reason, which the agent sees.
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// Reads a member that may be null: null is a value, absence is not.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl CallsBody {
    /// The calls, and whether they are given as a round.
    ///
    /// # Errors
    /// There are none or too many, or both members are given.
    pub(crate) fn take_calls(&mut self) -> Result<(Vec<ToolCall>, bool), Problem> {
        let (calls, is_round) = match (self.call.take(), self.calls.take()) {
            (Some(call), None) => (vec![call], false),
            (None, Some(calls)) if calls.is_empty() => return Err(Problem::invalid("`calls` is empty")),
            (None, Some(calls)) => (calls, true),
            (Some(_), Some(_)) => return Err(Problem::invalid("only one of `call` and `calls` is allowed")),
            (None, None) => {
                return Err(Problem::invalid("`call` is missing: an object with `tool` and `input`"));
            }
        };
        if calls.len() > MAX_CALLS {
            return Err(Problem::invalid(format!(
                "`calls` has more than {MAX_CALLS} calls; send several requests"
            )));
        }
        Ok((calls.into_iter().map(CallBody::into_call).collect(), is_round))
    }

    /// What the user asked for, if the request says so.
    ///
    /// # Errors
    /// It has another form.
    pub(crate) fn task(&self) -> Result<Option<Task>, Problem> {
        parse_task(self.task.as_ref())
    }
}

/// Reads the task of a request.
///
/// # Errors
/// It has another form.
pub(crate) fn parse_task(task: Option<&Value>) -> Result<Option<Task>, Problem> {
    let parsed = task.map(Task::from_json).transpose();
    parsed.map_err(|wanted| Problem::invalid(format!("`task` must be {wanted}")))
}

impl CallBody {
    fn into_call(self) -> ToolCall {
        let Self { id, tool, server, input } = self;
        let input = input.unwrap_or_else(|| Value::Object(Map::new()));
        ToolCall { server, ..ToolCall::new(id.unwrap_or_default(), tool, input) }
    }
}
