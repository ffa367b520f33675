//! `callgate approvals list`: pending approval requests, identical ones grouped.

use std::io::Write;

use super::json_output as forms;
use super::{ApprovalsContext, ApprovalsError, show};
use crate::OutputFormat;
use crate::output::{BOLD, DIM, Output, YELLOW, format_time, group_digits, quote_name};
use callgate::approval::InboxItem;
use callgate::card::{Card, CardField, FieldKind, call_digest};
use callgate::json::{self, Value, json};
use callgate::message::RequestPart;
use callgate_server::approval_document;

/// Approval requests with the same content.
struct RequestGroup<'i> {
    items: Vec<&'i InboxItem>,
}

impl RequestGroup<'_> {
    fn first(&self) -> Option<&InboxItem> {
        self.items.first().copied()
    }
}

impl ApprovalsContext<'_> {
    pub(super) fn list(&self, all: bool, output: &mut Output) -> Result<(), ApprovalsError> {
        let items = self.runtime.block_on(self.inbox.list())?;
        let visible = items.iter().filter(|item| all || item.is_pending());
        let groups = group_requests(visible);
        if self.format == OutputFormat::Json {
            let groups: Vec<Value> = groups.iter().filter_map(group_json).collect();
            return forms::write_json(&json!({ "questions": groups }), output);
        }
        if groups.is_empty() {
            writeln!(output, "{}", if all { "no approval requests" } else { "no pending approvals" })?;
        }
        for (index, group) in groups.iter().enumerate() {
            if index > 0 {
                writeln!(output)?;
            }
            self.write_group(group, output)?;
        }
        if !all {
            self.print_answered_calls(&items, output)?;
        }
        Ok(())
    }

    fn write_group(&self, group: &RequestGroup<'_>, output: &mut Output) -> Result<(), ApprovalsError> {
        let Some(first) = group.first() else { return Ok(()) };
        let request = RequestPart::from(&first.request);
        let card = Card::pending(&request);
        let question = output.paint(BOLD, &card.text).into_owned();
        let count = match group.items.len() {
            1 => String::new(),
            count => format!("{} × ", group_digits(count)),
        };
        writeln!(output, "{count}{question}")?;
        let tool = match &first.request.server {
            Some(server) => format!("{} on {}", quote_name(&first.request.tool_name), quote_name(server)),
            None => quote_name(&first.request.tool_name),
        };
        let digest = output.paint(DIM, &format!("digest {}", call_digest(&request))).into_owned();
        writeln!(output, "  {tool}  {digest}")?;
        for field in card.fields.iter().filter(|field| is_about_arguments(field)) {
            writeln!(output, "    {}: {}", field.label, field.value)?;
        }
        for item in &group.items {
            let id = output.paint(YELLOW, &quote_name(&item.request.approval_id)).into_owned();
            let mut about = vec![format!("session {}", quote_name(&item.key.conversation))];
            about.push(show::format_progress(item));
            if item.is_pending()
                && let Some(expires) = &item.request.expires_at
            {
                about.push(format!("until {}", format_time(expires)));
            }
            let about = output.paint(DIM, &about.join(" · ")).into_owned();
            writeln!(output, "  {id}  {about}")?;
        }
        Ok(())
    }
}

fn is_about_arguments(field: &CardField) -> bool {
    field.kind.is_argument() || matches!(field.kind, FieldKind::LeftOut | FieldKind::Note)
}

fn group_requests<'i>(items: impl Iterator<Item = &'i InboxItem>) -> Vec<RequestGroup<'i>> {
    let mut groups: Vec<RequestGroup<'_>> = Vec::new();
    let mut group_indexes = std::collections::HashMap::new();
    for item in items {
        let request = &item.request;
        // The digest covers redacted arguments: calls that only look the same are in separate groups.
        let call = call_digest(&RequestPart::from(request));
        let same = json::digest(&json!([call, request.message, request.policies, request.card]));
        let index = *group_indexes.entry(same).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.items.push(item),
            None => groups.push(RequestGroup { items: vec![item] }),
        }
    }
    groups
}

fn group_json(group: &RequestGroup<'_>) -> Option<Value> {
    let request = &group.first()?.request;
    Some(json!({
        "count": group.items.len(),
        "message": request.message,
        "tool": request.tool_name,
        "server": request.server,
        "input": request.input,
        "digest": call_digest(&RequestPart::from(request)),
        "policies": request.policies,
        "approvals": group.items.iter().map(|item| approval_document(item)).collect::<Vec<_>>(),
    }))
}
