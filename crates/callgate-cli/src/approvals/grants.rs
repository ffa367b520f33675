//! `callgate approvals grants` and `revoke`: remembered approvals that apply to later calls.

use std::io::Write;

use jiff::Timestamp;

use super::json_output as forms;
use super::{ApprovalsContext, ApprovalsError};
use crate::OutputFormat;
use crate::output::{DIM, Output, YELLOW, escape_line, format_time};
use callgate::approval::Grant;
use callgate::host::{Clock, SystemClock};
use callgate::json::json;
use callgate_server::grant_document;

/// Number of characters shown of a grant's id; it is a digest, and a prefix identifies it.
const ID_LENGTH: usize = 12;

impl ApprovalsContext<'_> {
    pub(super) fn grants(&self, all: bool, output: &mut Output) -> Result<(), ApprovalsError> {
        let now = SystemClock.now();
        let mut grants = self.runtime.block_on(self.inbox.grants())?;
        grants.retain(|(_, grant)| all || grant.is_active(now));
        grants.sort_by_key(|(_, grant)| grant.from);
        if self.format == OutputFormat::Json {
            let grants: Vec<_> =
                grants.iter().map(|(name, grant)| grant_document(name, grant, now)).collect();
            return forms::write_json(&json!({ "grants": grants }), output);
        }
        if grants.is_empty() {
            writeln!(output, "no remembered approvals")?;
        }
        for (name, grant) in &grants {
            let mut about = vec![escape_line(&grant.tool).into_owned()];
            about.extend(grant.policy.as_deref().map(|policy| escape_line(policy).into_owned()));
            about.push(format!("given with {}", escape_line(&grant.approval_id)));
            if !grant.by.is_empty() {
                about.push(format!("by {}", escape_line(&grant.by.join(", "))));
            }
            about.push(match grant_state(grant, now) {
                "stands" => format!("until {}", format_time(&grant.until.to_string())),
                other => other.to_owned(),
            });
            let name = output.paint(YELLOW, short_id(name)).into_owned();
            let about = output.paint(DIM, &about.join(" · ")).into_owned();
            writeln!(output, "{name}  {about}")?;
        }
        Ok(())
    }

    pub(super) fn revoke(&self, id: &str, output: &mut Output) -> Result<(), ApprovalsError> {
        let (name, grant) = self.runtime.block_on(self.inbox.revoke(id))?;
        if self.format == OutputFormat::Json {
            return forms::write_json(&grant_document(&name, &grant, SystemClock.now()), output);
        }
        let tool = escape_line(&grant.tool);
        Ok(writeln!(
            output,
            "revoked: calls of {tool} that {} allowed require approval again",
            short_id(&name)
        )?)
    }
}

fn short_id(name: &str) -> &str {
    name.get(..ID_LENGTH).unwrap_or(name)
}

fn grant_state(grant: &Grant, now: Timestamp) -> &'static str {
    match grant {
        _ if grant.revoked => "revoked",
        _ if grant.is_active(now) => "stands",
        _ => "lapsed",
    }
}
