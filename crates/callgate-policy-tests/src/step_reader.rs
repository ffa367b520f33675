//! Reads one step of a case: a call, a round, a wait, or an answer to an approval request.

use std::collections::HashMap;

use crate::call_reader::{self, LayeredCall};
use crate::case::{ApprovalReply, CallStep, CaseStep, ReplyAction};
use crate::expectation::Expectation;
use crate::test_file_reader::TestFileReader;
use crate::test_schema::STEP;
use callgate::diagnostic::{CONFLICTING_KEYS, DUPLICATE_ID, Diagnostic, MISSING_KEY, NOTHING_CALLED, Span};
use callgate::json::Map;
use callgate::message::Approver;
use callgate::rules_schema::{did_you_mean, head_span};
use callgate::safe_text::{escape_controls, truncate};
use callgate::source::{MappingEntry, YamlNode};

const CALL_KEYS: &[&str] =
    &["input", "context", "task", "server", "id", "returns", "fails", "answers", "takes", "expect"];
const REPLY_KEYS: &[&str] = &["by", "roles", "reason", "expect"];

/// The key that determines a step's form, of which each step has exactly one, and the keys allowed beside it.
const STEP_FORMS: [(&str, &[&str]); 9] = [
    ("tool", CALL_KEYS),
    ("wait", &[]),
    ("round", &[]),
    ("approve", REPLY_KEYS),
    ("deny", REPLY_KEYS),
    ("edit", &["input", "by", "roles", "reason", "expect"]),
    ("answer", &["output", "by", "roles", "reason", "expect"]),
    ("cancel", REPLY_KEYS),
    ("resume", &["expect"]),
];

fn allowed_keys(form: &str) -> Option<&'static [&'static str]> {
    STEP_FORMS.iter().find(|(name, _)| *name == form).map(|(_, beside)| *beside)
}

/// Whether the step is a wait: it neither makes calls nor resumes the session.
pub(super) fn is_wait(node: &YamlNode) -> bool {
    node.get("wait").is_some()
        && !STEP_FORMS.iter().any(|(form, _)| *form != "wait" && node.get(form).is_some())
}

/// A call of the case, which later steps may refer to.
struct NamedCall {
    id: String,
    tool: String,
    span: Span,
}

/// The reader of a case's steps.
pub(super) struct StepReader<'n> {
    context: &'n Map,
    /// The number of calls so far.
    pub(super) call_count: usize,
    named_calls: Vec<NamedCall>,
    /// Whether a step answers an approval request; the ids of calls must then be unique.
    has_replies: bool,
}

impl<'n> StepReader<'n> {
    pub(super) fn new(context: &'n Map) -> Self {
        Self { context, call_count: 0, named_calls: Vec::new(), has_replies: false }
    }

    pub(super) fn read(&mut self, node: &YamlNode, reader: &mut TestFileReader<'_>) -> Option<CaseStep> {
        let entries = node.entries()?;
        let form = entries.iter().find_map(|entry| Some((entry, allowed_keys(&entry.key)?)));
        let Some((form, beside)) = form else {
            if !STEP_FORMS.iter().any(|(form, _)| STEP.has_misspelling_of(node, form)) {
                reader
                    .report(Diagnostic::new(&MISSING_KEY, head_span(node), "this step has no action").with_help(
                    "add `tool:`, `wait:` or `round:`, or an answer to an approval request, as in `- { approve: refund }`",
                ));
            }
            return None;
        };
        let stray = entries.iter().find(|entry| {
            let is_known = STEP.fields.iter().any(|field| field.name == entry.key);
            is_known && entry.key != form.key && !beside.contains(&entry.key.as_str())
        });
        if let Some(stray) = stray {
            let message = format!("`{}` can't be used beside `{}`", stray.key, form.key);
            reader.report(
                Diagnostic::new(&CONFLICTING_KEYS, stray.key_span, message)
                    .with_label(form.key_span, "the action of this step")
                    .with_help(help_for_stray_key(&form.key, &stray.key)),
            );
            return None;
        }
        match form.key.as_str() {
            "wait" => reader.read_duration(&form.value).map(CaseStep::Wait),
            "tool" => self.read_call(node, reader).map(|call| CaseStep::Calls(vec![call])),
            "round" => {
                let round = form.value.items()?;
                let read: Vec<CallStep> =
                    round.iter().filter_map(|item| self.read_call(item, reader)).collect();
                check_ids(round, &read, reader);
                Some(CaseStep::Calls(read))
            }
            _ => self.read_reply(node, form, reader).map(|reply| CaseStep::Reply(Box::new(reply))),
        }
    }

    fn read_call(&mut self, node: &YamlNode, reader: &mut TestFileReader<'_>) -> Option<CallStep> {
        self.call_count += 1;
        let laid = LayeredCall { base: None, own: node };
        let read = call_reader::read(&laid, node.get("expect"), self.context, self.call_count, reader)?;
        let span = id_span(node);
        self.named_calls.push(NamedCall { id: read.call.id.clone(), tool: read.call.tool.clone(), span });
        Some(read)
    }

    fn read_reply(
        &mut self,
        node: &YamlNode,
        form: &MappingEntry,
        reader: &mut TestFileReader<'_>,
    ) -> Option<ApprovalReply> {
        self.has_replies = true;
        let to = form.value.as_str()?.to_owned();
        self.check_target(&form.value, &to, reader);
        let text = |key| node.get(key).and_then(YamlNode::as_str).map(str::to_owned);
        let by = text("by").map(|by| {
            let roles = node.get("roles").and_then(YamlNode::items).unwrap_or_default();
            roles.iter().filter_map(YamlNode::as_str).fold(Approver::new(by), Approver::with_role)
        });
        if let (None, Some(roles)) = (node.get("by"), find_entry(node, "roles")) {
            reader.report(
                Diagnostic::new(&MISSING_KEY, roles.key_span, "`roles` needs `by`")
                    .with_help("name the approver with `by:`"),
            );
        }
        let mut given = |key: &str, example: &str| {
            let given = node.get(key).map(YamlNode::to_json);
            if given.is_none() && !STEP.has_misspelling_of(node, key) {
                let message = format!("`{key}` is missing beside `{}`", form.key);
                let help = format!("add it, as in `{example}`");
                reader.report(Diagnostic::new(&MISSING_KEY, head_span(node), message).with_help(help));
            }
            given
        };
        let action = match form.key.as_str() {
            "approve" => ReplyAction::Approve,
            "deny" => ReplyAction::Deny,
            "edit" => ReplyAction::Edit(given("input", "input: { amount: 100 }")?),
            "answer" => ReplyAction::Answer(given("output", "output: { refunded: 100 }")?),
            "cancel" => ReplyAction::Cancel,
            _ => ReplyAction::Resume,
        };
        let expect = node.get("expect").map(|node| Expectation::read(node, reader));
        Some(ApprovalReply {
            location: reader.locate(head_span(node)),
            target: to,
            action,
            approver: by,
            reason: text("reason"),
            expect,
        })
    }

    /// Reports an answer whose call does not exist.
    fn check_target(&self, node: &YamlNode, to: &str, reader: &mut TestFileReader<'_>) {
        // A call that could not be read is the problem to fix first.
        if self.named_calls.len() < self.call_count
            || self.named_calls.iter().any(|call| call.id == to || call.tool == to)
        {
            return;
        }
        let names = self.named_calls.iter().flat_map(|call| [call.tool.as_str(), call.id.as_str()]);
        let help = match did_you_mean(to, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write the tool or the id of a call in an earlier step".to_owned(),
        };
        let message = format!("no earlier call of `{}`", truncate(&escape_controls(to)));
        reader.report(Diagnostic::new(&NOTHING_CALLED, node.span, message).with_help(help));
    }

    /// Reports duplicate ids of calls, in cases with answers to approval requests.
    pub(super) fn check_ids(&self, reader: &mut TestFileReader<'_>) {
        for (index, call) in self.named_calls.iter().enumerate() {
            self.check_id(&call.id, call.span, index, reader);
        }
    }

    /// The same for the call under test.
    pub(super) fn check_tested_call(
        &self,
        call: &CallStep,
        node: &YamlNode,
        reader: &mut TestFileReader<'_>,
    ) {
        self.check_id(&call.call.id, id_span(node), self.named_calls.len(), reader);
    }

    fn check_id(&self, id: &str, span: Span, before: usize, reader: &mut TestFileReader<'_>) {
        let earlier = self.named_calls.iter().take(before).find(|call| call.id == id);
        let Some(earlier) = earlier.filter(|_| self.has_replies) else { return };
        let message = format!("duplicate id `{}` in this case", truncate(&escape_controls(id)));
        reader.report(
            Diagnostic::new(&DUPLICATE_ID, span, message)
                .with_label(earlier.span, "first used by this call")
                .with_help("change one of the two ids: answers refer to their call by id"),
        );
    }
}

fn find_entry<'n>(node: &'n YamlNode, key: &str) -> Option<&'n MappingEntry> {
    node.entries()?.iter().find(|entry| entry.key == key)
}

fn help_for_stray_key(form: &str, stray: &str) -> &'static str {
    match (form, stray) {
        ("approve", "input") => "write `edit:` instead of `approve:` to approve with other arguments",
        ("approve", "output") => {
            "write `answer:` instead of `approve:` to give a result in place of the tool's"
        }
        ("answer", "returns") => "write `output:` for the result that the person gives",
        ("approve" | "edit", "returns" | "fails" | "answers" | "takes") => {
            "move it to the step that makes the call"
        }
        (_, stray) if allowed_keys(stray).is_some() => "make it a step of its own",
        ("wait" | "round", _) => "make it a step of its own",
        _ => "leave it out",
    }
}

/// The span of a call's id, or else of the call.
fn id_span(node: &YamlNode) -> Span {
    node.get("id").map_or_else(|| head_span(node), |id| id.span)
}

/// Reports duplicate ids in a round, given or numbered: the answers of tools are found by these ids.
fn check_ids(items: &[YamlNode], calls: &[CallStep], reader: &mut TestFileReader<'_>) {
    // A call that could not be read is the problem to fix first.
    if items.len() != calls.len() {
        return;
    }
    let mut first: HashMap<&str, &YamlNode> = HashMap::new();
    for (item, call) in items.iter().zip(calls) {
        let id = call.call.id.as_str();
        let Some(earlier) = first.insert(id, item) else { continue };
        let message = format!("duplicate id `{}` in this round", truncate(&escape_controls(id)));
        reader.report(
            Diagnostic::new(&DUPLICATE_ID, id_span(item), message)
                .with_label(id_span(earlier), "first used by this call")
                .with_help("change one of the two ids"),
        );
    }
}
