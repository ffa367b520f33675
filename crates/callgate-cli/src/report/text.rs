//! The summary of logs as text for a terminal.

use std::io::Write as _;

use super::log_summary::{ApprovalCounts, ExampleCall, LogSummary, NameCounts, PolicyUse};
use crate::exit::CommandError;
use crate::output::{
    BOLD, DIM, Output, YELLOW, count_noun, display_width, escape_line, format_time, group_digits, quote_name,
    truncate,
};

/// The number of names in a row of a table.
pub(super) const MAX_NAMES: usize = 3;
/// The number of rows of a table.
const MAX_ROWS: usize = 20;

pub(super) fn write(summary: &LogSummary, output: &mut Output) -> Result<(), CommandError> {
    let (Some(first), Some(last)) = (summary.first, summary.last) else {
        writeln!(output, "no events")?;
        return Ok(());
    };
    let (from, to) = (format_time(&first.to_string()), format_time(&last.to_string()));
    writeln!(output, "{} from {from} to {to}", count_noun(to_usize(summary.calls), "call", "calls"))?;
    for (outcome, count) in summary.outcomes.ordered() {
        if count > 0 {
            writeln!(output, "  {outcome:<13} {:>9}  {}", group(count), share(count, summary.calls))?;
        }
    }
    let shadowed = summary.shadowed();
    write_policies(
        output,
        "Shadow mode: calls that would have been stopped",
        &shadowed,
        summary,
        PolicyUse::would_stop,
    )?;
    write_policies(
        output,
        "Enforced: calls that were stopped",
        &summary.stopping(),
        summary,
        PolicyUse::stopped,
    )?;
    let candidate = summary.candidate.ranked();
    let candidate: Vec<_> = candidate.iter().map(|(label, used)| (label.as_str(), *used)).collect();
    let title = "Candidate rules: calls that they decide otherwise";
    write_policies(output, title, &candidate, summary, |used| used.calls)?;
    if summary.candidate.skipped > 0 {
        let skipped = count_noun(to_usize(summary.candidate.skipped), "call was", "calls were");
        let text = format!("{skipped} not evaluated by the candidate rules, which were too slow");
        writeln!(output, "\n{}", output.paint(YELLOW, &text))?;
    }
    write_approvals(output, &summary.approvals)?;
    write_unused(output, summary)?;
    let others = summary.other_events.ordered();
    if !others.is_empty() {
        write_title(output, "Other events")?;
        for (event, count) in others {
            writeln!(output, "  {:<20} {}", escape_line(event), group(count))?;
        }
    }
    if summary.lost_events > 0 {
        let lost = count_noun(to_usize(summary.lost_events), "event is", "events are");
        writeln!(
            output,
            "\n{}",
            output.paint(YELLOW, &format!("{lost} missing: the log could not be written"))
        )?;
    }
    Ok(())
}

fn write_title(output: &mut Output, title: &str) -> Result<(), CommandError> {
    let title = output.paint(BOLD, title).into_owned();
    writeln!(output, "\n{title}")?;
    Ok(())
}

fn write_policies(
    output: &mut Output,
    title: &str,
    policies: &[(&str, &PolicyUse)],
    summary: &LogSummary,
    count: fn(&PolicyUse) -> u64,
) -> Result<(), CommandError> {
    if policies.is_empty() {
        return Ok(());
    }
    write_title(output, title)?;
    let width =
        policies.iter().map(|(id, _)| display_width(&quote_name(id))).max().unwrap_or_default().min(40);
    for (id, used) in policies.iter().take(MAX_ROWS) {
        let name = quote_name(id);
        let name = truncate(&name, width);
        let pad = " ".repeat(width.saturating_sub(display_width(&name)));
        let calls = count(used);
        writeln!(
            output,
            "  {name}{pad}  {:>7}  {:>6}  {}  by {}",
            group(calls),
            share(calls, summary.calls),
            names(&used.tools),
            names(&used.principals)
        )?;
        for example in &used.examples {
            let line = example_line(example);
            let line = match output.width {
                Some(width) => truncate(&line, width.saturating_sub(6)).into_owned(),
                None => line,
            };
            writeln!(output, "      {}", output.paint(DIM, &line))?;
        }
    }
    write_more(output, policies.len())
}

fn write_more(output: &mut Output, rows: usize) -> Result<(), CommandError> {
    if rows > MAX_ROWS {
        writeln!(output, "  … and {} more; see `--format json`", rows - MAX_ROWS)?;
    }
    Ok(())
}

fn write_approvals(output: &mut Output, approvals: &ApprovalCounts) -> Result<(), CommandError> {
    let ApprovalCounts { requested, approved, denied, expired, .. } = approvals;
    if requested + approved + denied + expired == 0 {
        return Ok(());
    }
    write_title(output, "Approvals")?;
    write!(output, "  {requested} requested, {approved} approved, {denied} denied, {expired} expired")?;
    match approvals.median_wait() {
        Some(wait) => writeln!(output, "; answered after {} in the median", format_seconds(wait))?,
        None => writeln!(output)?,
    }
    Ok(())
}

fn write_unused(output: &mut Output, summary: &LogSummary) -> Result<(), CommandError> {
    let Some(unused) = &summary.unused else { return Ok(()) };
    if unused.is_empty() {
        writeln!(output, "\nEvery policy took part in a call.")?;
        return Ok(());
    }
    write_title(output, "Policies that took part in no call")?;
    for policy in unused.iter().take(MAX_ROWS) {
        let mode = if policy.shadow { ", shadow" } else { "" };
        writeln!(output, "  {} ({}{mode})", quote_name(&policy.id), policy.kind)?;
    }
    write_more(output, unused.len())
}

/// One example as a line: when, what, who, with what.
pub(super) fn example_line(example: &ExampleCall) -> String {
    let by = example.principal.as_deref().map_or_else(String::new, |by| format!(" by {}", quote_name(by)));
    let input = example.input.as_ref().map_or_else(String::new, |input| format!(" {input}"));
    let time = format_time(&example.time.to_string());
    let (tool, id) = (quote_name(&example.tool), quote_name(&example.id));
    escape_line(&format!("{time}  {tool}{input}{by} (call {id})")).into_owned()
}

/// The most frequent names: `pay 12, refund 3`.
fn names(counts: &NameCounts) -> String {
    let ordered = counts.ordered();
    let shown =
        ordered.iter().take(MAX_NAMES).map(|(name, count)| format!("{} {}", quote_name(name), group(*count)));
    let mut shown: Vec<String> = shown.collect();
    if ordered.len() > MAX_NAMES {
        shown.push(format!("{} more", ordered.len() - MAX_NAMES));
    }
    shown.join(", ")
}

/// A share in percent.
pub(super) fn share(count: u64, of: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a share for people, to a tenth of a percent")]
    let percent = if of == 0 { 0.0 } else { count as f64 * 100.0 / of as f64 };
    format!("{percent:.1} %")
}

pub(super) fn group(count: u64) -> String {
    group_digits(to_usize(count))
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Seconds as people say them.
pub(super) fn format_seconds(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}
