//! The summary of logs as one page: no scripts, nothing loaded, everything from logs escaped.

use std::io::Write as _;

use super::log_summary::{LogSummary, NameCounts, PolicyUse, UnusedPolicy};
use super::page_style::style;
use super::plot;
use super::text::{MAX_NAMES, example_line, format_seconds, group, share};
use crate::exit::CommandError;
use crate::output::{Output, escape_line, format_time};
use callgate::safe_text::escape_html;

/// The most rows of a table.
const MAX_ROWS: usize = 100;
/// The most unused policies that are named.
const MAX_UNUSED: usize = 2_000;

pub(super) fn write(summary: &LogSummary, output: &mut Output) -> Result<(), CommandError> {
    writeln!(
        output,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Callgate report</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <style>{}</style>\n</head>\n<body>\n<header>\n<h1>Callgate report</h1>",
        style()
    )?;
    let (Some(first), Some(last)) = (summary.first, summary.last) else {
        writeln!(output, "<p>The logs contain no events of this period.</p>\n</header>\n</body>\n</html>")?;
        return Ok(());
    };
    let time = |time: jiff::Timestamp| format_time(&time.to_string());
    writeln!(output, "<p class=\"soft\">{} to {}</p>\n</header>\n<main>", time(first), time(last))?;
    if summary.lost_events > 0 {
        writeln!(
            output,
            "<p class=\"warn\"><strong>{} events are missing:</strong> the log could not be written.</p>",
            group(summary.lost_events)
        )?;
    }
    write_facts(summary, output)?;
    write_outcomes(summary, output)?;
    let (shadowed, stopping) = (summary.shadowed(), summary.stopping());
    RankedPolicies {
        title: "Shadow mode: calls that would have been stopped",
        class: "ask",
        policies: &shadowed,
        count: PolicyUse::would_stop,
    }
    .write(summary, "No policy in shadow mode would have stopped a call.", output)?;
    RankedPolicies {
        title: "Enforced: calls that were stopped",
        class: "stop",
        policies: &stopping,
        count: PolicyUse::stopped,
    }
    .write(summary, "No enforced policy stopped a call.", output)?;
    let candidate = summary.candidate.ranked();
    let candidate: Vec<_> = candidate.iter().map(|(label, used)| (label.as_str(), *used)).collect();
    if !candidate.is_empty() {
        RankedPolicies {
            title: "Candidate rules: calls that they decide otherwise",
            class: "ask",
            policies: &candidate,
            count: |used| used.calls,
        }
        .write(summary, "", output)?;
    }
    write_approvals(summary, output)?;
    if let Some(unused) = &summary.unused {
        write_unused(unused, output)?;
    }
    let others = summary.other_events.ordered();
    if !others.is_empty() {
        writeln!(output, "<h2>Other events</h2>\n<table><tbody>")?;
        for (event, count) in others {
            writeln!(output, "<tr><td>{}<td class=\"n\">{}</tr>", escape(event), group(count))?;
        }
        writeln!(output, "</tbody></table>")?;
    }
    writeln!(output, "</main>\n</body>\n</html>")?;
    Ok(())
}

/// The most important numbers.
fn write_facts(summary: &LogSummary, output: &mut Output) -> Result<(), CommandError> {
    let sum = |outcomes: &[&str]| outcomes.iter().map(|outcome| summary.outcomes.get(outcome)).sum::<u64>();
    let would_stop: u64 = summary.would_stop_calls;
    writeln!(output, "<dl class=\"facts\">")?;
    for (name, value) in [
        ("Calls", group(summary.calls)),
        ("Stopped", group(sum(&["denied", "invalid", "halted"]))),
        ("Pending approval", group(sum(&["suspended"]))),
        ("Would be stopped (shadow)", group(would_stop)),
    ] {
        writeln!(output, "<div><dt>{name}</dt><dd>{value}</dd></div>")?;
    }
    writeln!(output, "</dl>")?;
    Ok(())
}

fn write_outcomes(summary: &LogSummary, output: &mut Output) -> Result<(), CommandError> {
    if summary.calls == 0 {
        writeln!(output, "<p>The logs contain no calls of this period.</p>")?;
        return Ok(());
    }
    writeln!(output, "{}", plot::calls_over_time(summary))?;
    writeln!(
        output,
        "<h2>Outcomes</h2>\n<table><thead><tr><th>Outcome<th class=\"n\">Calls<th class=\"n\">Share<th class=\"share\"></tr></thead><tbody>"
    )?;
    for (outcome, count) in summary.outcomes.ordered().into_iter().filter(|(_, count)| *count > 0) {
        writeln!(
            output,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"share\">{}</tr>",
            escape(outcome),
            group(count),
            share(count, summary.calls),
            plot::bar(count, summary.calls, plot::class_of(outcome))
        )?;
    }
    writeln!(output, "</tbody></table>")?;
    Ok(())
}

fn write_approvals(summary: &LogSummary, output: &mut Output) -> Result<(), CommandError> {
    let approvals = &summary.approvals;
    if approvals.requested + approvals.approved + approvals.denied + approvals.expired == 0 {
        return Ok(());
    }
    let wait = approvals.median_wait();
    let wait = wait
        .map_or_else(String::new, |wait| format!("; answered after {} in the median", format_seconds(wait)));
    writeln!(
        output,
        "<h2>Approvals</h2>\n<p>{} requested, {} approved, {} denied, {} expired{wait}.</p>",
        group(approvals.requested),
        group(approvals.approved),
        group(approvals.denied),
        group(approvals.expired)
    )?;
    Ok(())
}

fn write_unused(unused: &[UnusedPolicy], output: &mut Output) -> Result<(), CommandError> {
    writeln!(output, "<h2>Policies that took part in no call</h2>")?;
    if unused.is_empty() {
        writeln!(output, "<p>Every policy took part in a call.</p>")?;
        return Ok(());
    }
    let count = group(unused.len() as u64);
    let noun = if unused.len() == 1 { "policy" } else { "policies" };
    let open = if unused.len() <= MAX_ROWS { " open" } else { "" };
    writeln!(output, "<details{open}><summary>{count} {noun}</summary>\n<ul class=\"columns\">")?;
    for policy in unused.iter().take(MAX_UNUSED) {
        let mode = if policy.shadow { ", shadow" } else { "" };
        writeln!(
            output,
            "<li>{} <span class=\"soft\">{}{mode}</span></li>",
            escape(&policy.id),
            policy.kind
        )?;
    }
    writeln!(output, "</ul>{}</details>", more(unused.len(), MAX_UNUSED))?;
    Ok(())
}

/// Policies, and how many calls each is listed for.
struct RankedPolicies<'p> {
    title: &'static str,
    /// The class of the colour of their bars.
    class: &'static str,
    policies: &'p [(&'p str, &'p PolicyUse)],
    count: fn(&PolicyUse) -> u64,
}

impl RankedPolicies<'_> {
    fn write(&self, summary: &LogSummary, empty: &str, output: &mut Output) -> Result<(), CommandError> {
        writeln!(output, "<h2>{}</h2>", self.title)?;
        if self.policies.is_empty() {
            writeln!(output, "<p class=\"soft\">{empty}</p>")?;
            return Ok(());
        }
        writeln!(
            output,
            "<table><thead><tr><th>Policy<th class=\"n\">Calls<th class=\"n\">Share<th class=\"share\"></tr></thead><tbody>"
        )?;
        let most = self.policies.iter().map(|(_, used)| (self.count)(used)).max().unwrap_or_default();
        for (id, used) in self.policies.iter().take(MAX_ROWS) {
            let calls = (self.count)(used);
            write!(
                output,
                "<tr><td><span class=\"name\">{}</span> <span class=\"soft\">{}</span><span class=\"by\">{} — by {}</span>",
                escape(id),
                escape(&used.kind),
                name_list(&used.tools),
                name_list(&used.principals)
            )?;
            write_examples(used, output)?;
            writeln!(
                output,
                "<td class=\"n\">{}<td class=\"n\">{}<td class=\"share\">{}</tr>",
                group(calls),
                share(calls, summary.calls),
                plot::bar(calls, most, self.class)
            )?;
        }
        writeln!(output, "</tbody></table>{}", more(self.policies.len(), MAX_ROWS))?;
        Ok(())
    }
}

fn write_examples(used: &PolicyUse, output: &mut Output) -> Result<(), CommandError> {
    if used.examples.is_empty() {
        return Ok(());
    }
    write!(output, "<details><summary>examples</summary><ul>")?;
    for example in &used.examples {
        write!(output, "<li>{}</li>", escape(&example_line(example)))?;
    }
    write!(output, "</ul></details>")?;
    Ok(())
}

/// The most frequent names, each in its own writing direction: `pay 12, refund 3, 2 more`.
fn name_list(counts: &NameCounts) -> String {
    let ordered = counts.ordered();
    let shown =
        ordered.iter().take(MAX_NAMES).map(|(name, count)| format!("{} {}", escape(name), group(*count)));
    let mut shown: Vec<String> = shown.collect();
    if ordered.len() > MAX_NAMES {
        shown.push(format!("{} more", ordered.len() - MAX_NAMES));
    }
    shown.join(", ")
}

/// How many rows a list leaves out.
fn more(rows: usize, shown: usize) -> String {
    match rows.saturating_sub(shown) {
        0 => String::new(),
        left => {
            format!("<p class=\"soft\">and {} more; see <code>--format json</code></p>", group(left as u64))
        }
    }
}

/// Text from a log, as text of the page. Its writing direction stays its own.
fn escape(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape_html(&escape_line(text)))
}
