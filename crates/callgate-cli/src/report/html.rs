//! The summary of logs as one page: no scripts, nothing loaded, everything from logs escaped.

use std::io::Write as _;

use super::log_summary::{LogSummary, PolicyUse};
use super::plot;
use super::text::{example_line, format_seconds, group, names, share};
use crate::exit::CommandError;
use crate::output::{Output, escape_line, format_time};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60646c;--line:#d9dbe0;--page:#fff;--ok:#2e7d4f;--ok2:#8cc4a2;--ask:#c98a0c;--stop:#c2382d;--fail:#7a4bb5}\
@media(prefers-color-scheme:dark){:root{--ink:#edeef0;--soft:#b0b4ba;--line:#3a3d44;--page:#15171a;--ok:#4fae78;--ok2:#2f6b49;--ask:#e0aa3e;--stop:#e5665b;--fail:#a884d8}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}p,td{overflow-wrap:anywhere}.soft,text{color:var(--soft);fill:var(--soft);font-size:.85rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}code,li{font:.85rem/1.5 ui-monospace,monospace}ul{margin:.25rem 0;padding-left:1rem}\
svg{width:100%;height:auto}svg.bar{width:7.5rem;height:.625rem}.ok{fill:var(--ok)}.ok2{fill:var(--ok2)}.ask{fill:var(--ask)}.stop{fill:var(--stop)}.fail{fill:var(--fail)}";

pub(super) fn write(summary: &LogSummary, output: &mut Output) -> Result<(), CommandError> {
    writeln!(
        output,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Callgate report</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Callgate report</h1>"
    )?;
    let time =
        |time: Option<jiff::Timestamp>| time.map_or_else(String::new, |time| format_time(&time.to_string()));
    writeln!(
        output,
        "<p>{} calls from {} to {}.</p>",
        group(summary.calls),
        time(summary.first),
        time(summary.last)
    )?;
    write_outcomes(summary, output)?;
    let shadowed = summary.shadowed();
    write_policies(
        output,
        "Shadow mode: calls that would have been stopped",
        (&shadowed, PolicyUse::would_stop),
        summary,
    )?;
    write_policies(
        output,
        "Enforced: calls that were stopped",
        (&summary.stopping(), PolicyUse::stopped),
        summary,
    )?;
    let candidate = summary.candidate.ranked();
    let candidate: Vec<_> = candidate.iter().map(|(label, used)| (label.as_str(), *used)).collect();
    let title = "Candidate rules: calls that they decide otherwise";
    write_policies(output, title, (&candidate, |used| used.calls), summary)?;
    let approvals = &summary.approvals;
    if approvals.requested > 0 {
        let wait = approvals.median_wait();
        let wait = wait.map_or_else(String::new, |wait| {
            format!("; answered after {} in the median", format_seconds(wait))
        });
        writeln!(
            output,
            "<h2>Approvals</h2>\n<p>{} requested, {} approved, {} denied, {} expired{wait}.</p>",
            approvals.requested, approvals.approved, approvals.denied, approvals.expired
        )?;
    }
    if let Some(unused) = summary.unused.as_ref().filter(|unused| !unused.is_empty()) {
        writeln!(output, "<h2>Policies that took part in no call</h2>\n<ul>")?;
        for policy in unused {
            let mode = if policy.shadow { ", shadow" } else { "" };
            writeln!(output, "<li>{} ({}{mode})</li>", escape(&policy.id), policy.kind)?;
        }
        writeln!(output, "</ul>")?;
    }
    if summary.lost_events > 0 {
        writeln!(
            output,
            "<p><strong>{} events are missing: the log could not be written.</strong></p>",
            summary.lost_events
        )?;
    }
    writeln!(output, "</body>\n</html>")?;
    Ok(())
}

fn write_outcomes(summary: &LogSummary, output: &mut Output) -> Result<(), CommandError> {
    writeln!(output, "<figure style=\"margin:0\">{}</figure>", plot::calls_over_time(summary))?;
    writeln!(
        output,
        "<table><thead><tr><th>Outcome<th class=\"n\">Calls<th class=\"n\">Share<th></tr></thead><tbody>"
    )?;
    for (outcome, count) in summary.outcomes.ordered().into_iter().filter(|(_, count)| *count > 0) {
        let class = match outcome {
            "executed" => "ok",
            "cached" | "answered" => "ok2",
            "suspended" => "ask",
            "failed" | "recovered" | "indeterminate" => "fail",
            _ => "stop",
        };
        let bar = plot::bar(count, summary.calls, class);
        let share = share(count, summary.calls);
        writeln!(
            output,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{share}<td>{bar}</tr>",
            escape(outcome),
            group(count)
        )?;
    }
    writeln!(output, "</tbody></table>")?;
    Ok(())
}

/// Policies, and how many calls each is listed for.
type RankedPolicies<'p> = (&'p [(&'p str, &'p PolicyUse)], fn(&PolicyUse) -> u64);

fn write_policies(
    output: &mut Output,
    title: &str,
    (policies, count): RankedPolicies<'_>,
    summary: &LogSummary,
) -> Result<(), CommandError> {
    if policies.is_empty() {
        return Ok(());
    }
    writeln!(
        output,
        "<h2>{title}</h2>\n<table><thead><tr><th>Policy<th class=\"n\">Calls<th class=\"n\">Share<th>Tools<th>By</tr></thead><tbody>"
    )?;
    for (id, used) in policies {
        let calls = count(used);
        writeln!(
            output,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td>{}<td>{}</tr>",
            escape(id),
            group(calls),
            share(calls, summary.calls),
            escape(&names(&used.tools)),
            escape(&names(&used.principals))
        )?;
        if !used.examples.is_empty() {
            write!(output, "<tr><td colspan=\"5\"><ul>")?;
            for example in &used.examples {
                write!(output, "<li>{}</li>", escape(&example_line(example)))?;
            }
            writeln!(output, "</ul></tr>")?;
        }
    }
    writeln!(output, "</tbody></table>")?;
    Ok(())
}

/// Text from a log, as text of the page.
fn escape(text: &str) -> String {
    let line = escape_line(text);
    let mut escaped = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
