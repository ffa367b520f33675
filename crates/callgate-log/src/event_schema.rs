//! The members of every event: the source of their JSON Schema.

use callgate::json::{Map, Value, json};

use crate::event_line::FORMAT_VERSION;

/// An event and its members beside those of every event.
pub(crate) struct EventShape {
    pub(crate) name: &'static str,
    /// When it happens.
    when: &'static str,
    /// It belongs to a call.
    is_of_call: bool,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const fn of_call(
    name: &'static str,
    when: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> EventShape {
    EventShape { name, when, is_of_call: true, required, optional }
}

const fn other(
    name: &'static str,
    when: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> EventShape {
    EventShape { name, when, is_of_call: false, required, optional }
}

/// Every event.
pub(crate) const EVENTS: &[EventShape] = &[
    of_call(
        "call_decided",
        "A call was decided, its limits included.",
        &["effect", "reason"],
        &["policies", "input", "input_digest"],
    ),
    of_call(
        "call_started",
        "A call is about to reach its tool, with the arguments of its decision.",
        &[],
        &[],
    ),
    of_call(
        "call_completed",
        "A call has its outcome; one with a pending approval has `suspended` now and another one later.",
        &["outcome", "reason", "duration_us"],
        &[
            "policies",
            "approved_by",
            "replayed",
            "dry",
            "audit",
            "attempts",
            "retry_after_ms",
            "context",
            "task",
            "input",
            "input_digest",
            "recorded",
            "output_digest",
        ],
    ),
    of_call(
        "approval_requested",
        "Approval was requested for a call.",
        &["approval_id"],
        &["asking_policies", "expires_at", "message", "input", "input_digest"],
    ),
    of_call(
        "approval_answered",
        "A request was approved, denied or cancelled.",
        &["approval_id", "approved", "code"],
        &["by", "comment"],
    ),
    of_call(
        "approval_expired",
        "A request has expired.",
        &["approval_id", "approved", "code"],
        &["by", "comment"],
    ),
    of_call(
        "limit_refused",
        "A limit had too little left for a call.",
        &["policy", "cost"],
        &["retry_after_ms", "shadow"],
    ),
    of_call("cache_hit", "A cache answered a call.", &["policy", "age_ms"], &[]),
    other(
        "run_shadow",
        "A policy in shadow mode would have changed or stopped the run.",
        &["policy", "kind", "verdict"],
        &["reason"],
    ),
    other("hook_failed", "A hook of the host failed.", &["hook", "point", "message"], &[]),
    other("store_failed", "An operation of the state store failed.", &["code", "message"], &[]),
    other("rules_loaded", "An engine starts with its rules.", &[], &[]),
    other("rules_reloaded", "New rules took effect.", &["from"], &[]),
    other("rules_confirmed", "New rules that were pending took effect.", &["from"], &[]),
    other("rules_rejected", "The reload of new rules was rejected.", &["message"], &["rejected_revision"]),
    other(
        "rules_pending",
        "New rules may allow more, and are pending confirmation.",
        &["pending_revision"],
        &["relaxations"],
    ),
    other("rules_reverted", "The rejected or pending rules are gone.", &[], &[]),
    of_call(
        "candidate_differs",
        "Candidate rules decide a completed call otherwise.",
        &["difference", "candidate_revision", "active", "candidate"],
        &["policies"],
    ),
    other(
        "candidate_skipped",
        "Calls that the candidate rules did not evaluate, because they are slower than the calls.",
        &["count"],
        &[],
    ),
    other("candidate_loaded", "Candidate rules are loaded. `revision` is theirs.", &[], &[]),
    other("candidate_reloaded", "New candidate rules are loaded. `revision` is theirs.", &["from"], &[]),
    other(
        "candidate_rejected",
        "The reload of candidate rules was rejected.",
        &["message"],
        &["rejected_revision"],
    ),
    other("candidate_reverted", "The rejected candidate rules are gone.", &[], &[]),
    other(
        "answer_recorded",
        "An approver's answer was recorded.",
        &["id", "tool", "approval_id", "decision", "via", "complete"],
        &["approver"],
    ),
    other(
        "notification_sent",
        "A message about an approval request was sent.",
        &["id", "tool", "approval_id", "about", "message_id", "channel", "channel_number", "attempts"],
        &["recipient"],
    ),
    other(
        "notification_failed",
        "A message about an approval request could not be sent.",
        &[
            "id",
            "tool",
            "approval_id",
            "about",
            "message_id",
            "channel",
            "channel_number",
            "attempts",
            "message",
        ],
        &["recipient"],
    ),
    other(
        "log_opened",
        "A process begins to write the log.",
        &["callgate", "process"],
        &["incomplete_line_before"],
    ),
    other("events_lost", "Events were lost before this line.", &["count"], &[]),
];

/// The JSON Schema of a line. Lines may have further members.
pub fn event_schema() -> Value {
    let one_of: Vec<Value> = EVENTS.iter().map(shape_schema).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Callgate event",
        "description": "One line of a decision log.",
        "oneOf": one_of,
    })
}

fn shape_schema(shape: &EventShape) -> Value {
    let mut properties = Map::new();
    properties.insert("version", json!({ "type": "integer", "minimum": 1, "maximum": FORMAT_VERSION }));
    properties.insert("event", json!({ "const": shape.name }));
    let (of_all, of_call) = (["time"], ["revision", "run", "session", "id", "tool"]);
    let always = of_all.iter().chain(if shape.is_of_call { of_call.iter() } else { [].iter() });
    let required: Vec<&str> = always.chain(shape.required).copied().collect();
    let origin = ["revision", "run", "session", "iteration"];
    let caller = ["server", "principal", "tenant", "issuer", "round_position"];
    let optional = origin.iter().chain(if shape.is_of_call { caller.iter() } else { [].iter() });
    for name in required.iter().chain(optional).chain(shape.optional) {
        properties.insert((*name).to_owned(), member_schema(name));
    }
    let required: Vec<&str> = ["version", "event"].into_iter().chain(required).collect();
    json!({ "type": "object", "description": shape.when, "properties": properties, "required": required })
}

fn member_schema(name: &str) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let count = |description: &str| json!({ "type": "integer", "minimum": 0, "description": description });
    let flag = |description: &str| json!({ "type": "boolean", "description": description });
    let texts = |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
    match name {
        "time" => json!({ "type": "string", "format": "date-time", "description": "When it happened." }),
        "revision" => text("The digest of the rules."),
        "run" => text("The id of the run."),
        "session" => text("The session's name, or its name in the state store."),
        "iteration" => count("The number of earlier model calls in the run."),
        "id" => text("The id of the call."),
        "tool" => text("The tool."),
        "server" => text("The MCP server of the tool."),
        "principal" => json!({ "description": "Who made the call, as the host says." }),
        "tenant" => json!({ "description": "The tenant of the principal." }),
        "issuer" => json!({ "description": "Who vouches for the principal." }),
        "round_position" => json!({
            "type": "object",
            "description": "The place of the call among those that were decided together.",
            "properties": { "index": { "type": "integer" }, "size": { "type": "integer" } },
            "required": ["index", "size"],
        }),
        "decision" => json!({ "enum": ["approve", "deny", "cancel"], "description": "The answer." }),
        "approver" => text("Who answered; absent if the answer is anonymous."),
        "via" => text("Where it was answered: `page`, `api`, `slack`, `link` or `email`."),
        "complete" => flag("Whether the request needs no more answers."),
        "about" => text("What the message is about."),
        "message_id" => text("The id of the message, the same for every attempt."),
        "channel" => text("The format of the channel."),
        "channel_number" => count("The number of the channel in the notification file, from 1."),
        "recipient" => text("The approver to whom the message was sent."),
        "effect" => json!({
            "enum": ["run", "answer", "suspend", "invalid", "deny", "halt"],
            "description": "What the decision does with the call.",
        }),
        "outcome" => {
            let names = callgate::OutcomeKind::ALL.map(callgate::OutcomeKind::name);
            json!({ "enum": names, "description": "How the call ended." })
        }
        "reason" => json!({
            "type": "object",
            "description": "Why. `message` only in logs with content.",
            "properties": {
                "policy": { "type": "string" }, "code": { "type": "string" }, "message": { "type": "string" },
            },
            "required": ["code"],
        }),
        "policies" => json!({
            "type": "array",
            "description": "The policies that took part, in order, those in shadow mode included.",
            "items": {
                "type": "object",
                "properties": {
                    "id": { "type": "string" },
                    "kind": { "type": "string" },
                    "phase": { "enum": ["normalise", "gate", "execute", "settle"] },
                    "verdict": { "enum": ["pass", "rewrite", "answer", "suspend", "deny", "halt"] },
                    "shadow": { "type": "boolean" },
                    "undecided": { "type": "boolean" },
                },
                "required": ["id", "kind", "phase", "verdict"],
            },
        }),
        "input" => json!({ "description": "The final arguments, redacted; in logs with content." }),
        "input_digest" => text("The keyed digest of the final arguments; in logs without content."),
        "output_digest" => text("The keyed digest of the result; in logs without content."),
        "recorded" => json!({
            "type": "object",
            "description": "What the tool returned, redacted; in logs with content.",
            "properties": { "output": {}, "error": { "type": "string" } },
        }),
        "context" => {
            json!({ "type": "object", "description": "The context of the call; in logs with content." })
        }
        "task" => json!({ "type": "array", "description": "What the user asked for; in logs with content." }),
        "difference" => json!({
            "enum": ["looser", "different", "stricter", "arguments", "result"],
            "description": "How the candidate treats the call: less strictly, otherwise, more strictly, with other arguments, or with another result.",
        }),
        "candidate_revision" => text("The digest of the candidate rules."),
        "active" | "candidate" => json!({
            "type": "object",
            "description": if name == "active" { "What was decided." } else { "What the candidate decides." },
            "properties": {
                "effect": { "enum": ["run", "answer", "suspend", "invalid", "deny", "halt"] },
                "policy": { "type": "string" }, "code": { "type": "string" },
            },
            "required": ["effect", "code"],
        }),
        "approved_by" => json!({ "type": "object", "description": "The approval that let the call run." }),
        "audit" => json!({ "type": "array", "description": "What `audit` policies recorded." }),
        "replayed" => flag("The call had completed before, and nothing was run."),
        "dry" => flag("A dry run without a tool."),
        "attempts" => count(
            "How often the tool was called, if more than once, or how often sending the message was tried.",
        ),
        "retry_after_ms" => count("After how many milliseconds there may be enough."),
        "duration_us" => count("Time in Callgate and in the tool, in microseconds."),
        "approval_id" => text("The id of the request."),
        "asking_policies" => texts("The policies that require approval."),
        "expires_at" => text("When the request expires."),
        "approved" => flag("Whether the call may run, as far as approval is required."),
        "code" => text("The reason code."),
        "by" => texts("The approvers, as far as they were verified."),
        "comment" => text("The approvers' comment."),
        "policy" => text("The policy."),
        "kind" => text("The policy's kind."),
        "verdict" => text("What the policy would have done."),
        "cost" => {
            json!({ "type": "number", "minimum": 0, "description": "The amount that the call needed." })
        }
        "shadow" => flag("The limit is in shadow mode, so that the call was not refused for it."),
        "age_ms" => count("How long ago the result was stored."),
        "hook" => text("The hook."),
        "point" => text("The method of the hook."),
        "from" => text("The digest of the rules before."),
        "rejected_revision" => text("The digest of the rejected rules."),
        "pending_revision" => text("The digest of the pending rules."),
        "relaxations" => texts("What the pending rules may allow."),
        "callgate" => text("The version of Callgate."),
        "process" => count("The id of the process."),
        "incomplete_line_before" => flag("The line before is incomplete: a process crashed while it wrote."),
        "count" => count("How many."),
        _ => text("For people."),
    }
}
