//! `callgate approvals grants` and `revoke`: remembered approvals that apply to later calls.

use std::io::Write;

use jiff::Timestamp;

use super::json_output as forms;
use super::{ApprovalsContext, ApprovalsError};
use crate::approval::Grant;
use crate::cli::OutputFormat;
use crate::cli::output::{DIM, Output, YELLOW, format_time, one_line};
use crate::host::{Clock, SystemClock};
use crate::json::json;

/// Number of characters shown of a grant's id; it is a digest, and a prefix identifies it.
const SHOWN: usize = 12;

impl ApprovalsContext<'_> {
    pub(super) fn grants(&self, all: bool, output: &mut Output) -> Result<(), ApprovalsError> {
        let now = SystemClock.now();
        let mut grants = self.runtime.block_on(self.inbox.grants())?;
        grants.retain(|(_, grant)| all || grant.stands(now));
        grants.sort_by_key(|(_, grant)| grant.from);
        if self.format == OutputFormat::Json {
            let grants: Vec<_> =
                grants.iter().map(|(name, grant)| forms::grant(name, grant, state(grant, now))).collect();
            return forms::write(&json!({ "grants": grants }), output);
        }
        if grants.is_empty() {
            writeln!(output, "no remembered approvals")?;
        }
        for (name, grant) in &grants {
            let mut about = vec![one_line(&grant.tool).into_owned()];
            about.extend(grant.policy.as_deref().map(|policy| one_line(policy).into_owned()));
            about.push(format!("given with {}", one_line(&grant.approval_id)));
            if !grant.by.is_empty() {
                about.push(format!("by {}", one_line(&grant.by.join(", "))));
            }
            about.push(match state(grant, now) {
                "stands" => format!("until {}", format_time(&grant.until.to_string())),
                other => other.to_owned(),
            });
            let name = output.paint(YELLOW, short(name)).into_owned();
            let about = output.paint(DIM, &about.join(" · ")).into_owned();
            writeln!(output, "{name}  {about}")?;
        }
        Ok(())
    }

    pub(super) fn revoke(&self, id: &str, output: &mut Output) -> Result<(), ApprovalsError> {
        let (name, grant) = self.runtime.block_on(self.inbox.revoke(id))?;
        if self.format == OutputFormat::Json {
            return forms::write(&forms::grant(&name, &grant, "revoked"), output);
        }
        let tool = one_line(&grant.tool);
        Ok(writeln!(output, "revoked: calls of {tool} that {} allowed require approval again", short(&name))?)
    }
}

fn short(name: &str) -> &str {
    name.get(..SHOWN).unwrap_or(name)
}

fn state(grant: &Grant, now: Timestamp) -> &'static str {
    match grant {
        _ if grant.revoked => "revoked",
        _ if grant.stands(now) => "stands",
        _ => "lapsed",
    }
}
