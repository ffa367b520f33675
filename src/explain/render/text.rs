//! Renders an explanation as text: the outcome and its reason, then every policy by phase.

use super::snippet::{format_location, write_snippet};
use super::terminal_writer::{BOLD, CYAN, DIM, GREEN, RED, TerminalWriter, YELLOW, escape_invisible, pad};
use crate::call::{Phase, Verdict};
use crate::diagnostic::SourceMap;
use crate::explain::condition_phrases::{format_parts, format_value};
use crate::explain::effect_phrases::layer_name;
use crate::explain::{
    ExplainedLet, Explanation, LetState, MatchResult, PolicyStep, ValueChange, WhyNot, WhyNotReason,
};
use crate::safe_text;

/// The maximum width of all columns but the last.
const MAX_COLUMN_WIDTH: usize = 36;

/// Renders the explanation. `sources`: the rules files, if known, for snippets. `all`: also lists the policies for other tools and those
/// that were not evaluated, each on a line of its own. `colour`: with ANSI escapes, which never come from a value.
pub fn text(explanation: &Explanation, sources: Option<&SourceMap>, colour: bool, all: bool) -> String {
    let mut page = TerminalWriter::new(colour);
    write_head(&mut page, explanation, sources);
    let is_listed = |step: &PolicyStep| all || !is_folded(step);
    let width = |of: fn(&PolicyStep) -> &str| {
        let widths =
            explanation.steps.iter().filter(|step| is_listed(step)).map(|step| of(step).chars().count());
        widths.max().unwrap_or(0).min(MAX_COLUMN_WIDTH)
    };
    let columns = (width(|step| &step.policy), width(|step| step.kind));
    let phases = [Some(Phase::Normalise), Some(Phase::Gate), Some(Phase::Execute), Some(Phase::Settle), None];
    for phase in phases {
        let of_phase = || explanation.steps.iter().filter(|step| step.phase == phase);
        let unevaluated = of_phase().filter(|step| step.heard == MatchResult::NotAsked && !all);
        let unevaluated: Vec<&PolicyStep> = unevaluated.collect();
        let steps: Vec<&PolicyStep> = of_phase().filter(|step| is_listed(step)).collect();
        if steps.is_empty() && (unevaluated.is_empty() || phase.is_none()) {
            continue;
        }
        page.line(0, "");
        let name = page.paint(BOLD, phase_name(phase));
        page.line(0, &name);
        for step in steps {
            write_step(&mut page, step, columns);
        }
        write_skipped(&mut page, &unevaluated);
    }
    write_nested_calls(&mut page, explanation);
    write_footer(&mut page, explanation, all);
    page.into_text()
}

/// Renders why a policy had no effect. `sources` and `colour`: as for [`text`].
pub fn why_not(why_not: &WhyNot, sources: Option<&SourceMap>, colour: bool) -> String {
    let mut page = TerminalWriter::new(colour);
    let (mark, style) = match why_not.because {
        WhyNotReason::ItDecided | WhyNotReason::ItActed => ("✓", GREEN),
        WhyNotReason::Stricter | WhyNotReason::Shadow => ("~", YELLOW),
        _ => ("·", DIM),
    };
    let (mark, policy) = (page.paint(style, mark), page.paint(BOLD, &escape_invisible(&why_not.policy)));
    page.line(0, &format!("{mark} {policy}: {}", escape_invisible(&why_not.words)));
    if let Some(at) = &why_not.at {
        page.line(0, "");
        write_snippet(&mut page, 2, at, sources);
    }
    page.into_text()
}

fn write_head(page: &mut TerminalWriter, explanation: &Explanation, sources: Option<&SourceMap>) {
    let (word, mark, style) = outcome_label(explanation);
    let call = &explanation.call;
    let server =
        call.server.as_deref().map(|server| format!(" of {}", escape_invisible(server))).unwrap_or_default();
    let (ending, tool) =
        (page.paint(style, &format!("{mark} {word}")), page.paint(BOLD, &escape_invisible(&call.tool)));
    let id = page.paint(DIM, &escape_invisible(&call.id));
    page.line(0, &format!("{ending}  {tool}{server}  {id}"));
    page.line(2, &escape_invisible(&explanation.why));
    let reason = &explanation.reason;
    let stopped = !matches!(explanation.decision, "run" | "answer");
    if stopped && !reason.message.is_empty() && reason.message != explanation.why {
        let message =
            format!("message: {} [{}]", escape_invisible(&reason.message), escape_invisible(&reason.code));
        page.line(2, &page.paint(DIM, &message));
    }
    if let Some(at) = explanation.decisive().and_then(|step| step.decisive_location().or(step.at.as_ref())) {
        page.line(0, "");
        write_snippet(page, 2, at, sources);
    }
}

/// The outcome or decision of the call, with its mark and style.
fn outcome_label(explanation: &Explanation) -> (String, &'static str, &'static str) {
    let word = match (explanation.outcome, explanation.decision) {
        (Some(outcome), _) => outcome.name().to_owned(),
        (None, "run") => "would run".to_owned(),
        (None, "answer") => "would be answered".to_owned(),
        (None, "suspend") => "would require approval".to_owned(),
        (None, "invalid") => "would be invalid".to_owned(),
        (None, "halt") => "would be halted".to_owned(),
        (None, _) => "would be denied".to_owned(),
    };
    let (mark, style) = match (explanation.decision, word.as_str()) {
        ("run", "failed" | "recovered" | "aborted" | "indeterminate") => ("!", YELLOW),
        ("run" | "answer", _) => ("✓", GREEN),
        ("suspend", _) => ("?", YELLOW),
        ("halt", _) => ("■", RED),
        _ => ("✗", RED),
    };
    (word, mark, style)
}

fn phase_name(phase: Option<Phase>) -> &'static str {
    match phase {
        Some(Phase::Normalise) => "normalise",
        Some(Phase::Gate) => "gate",
        Some(Phase::Execute) => "execute",
        Some(Phase::Settle) => "settle",
        None => "run",
    }
}

/// Whether a step is only counted, unless all are shown.
fn is_folded(step: &PolicyStep) -> bool {
    matches!(step.heard, MatchResult::OtherTool | MatchResult::OtherServer | MatchResult::NotAsked)
}

fn write_step(page: &mut TerminalWriter, step: &PolicyStep, (policy_width, kind_width): (usize, usize)) {
    let (mark, style) = step_mark(step);
    let policy = pad(&escape_invisible(&step.policy), policy_width);
    let kind = page.paint(DIM, &pad(step.kind, kind_width));
    let layer = if step.layer == 0 { String::new() } else { format!(" [{}]", layer_name(step.layer)) };
    let idle = step.verdict.is_none();
    let policy = if step.decisive { page.paint(BOLD, &policy) } else { policy };
    let words = escape_invisible(&step.words);
    let words = if idle { page.paint(DIM, &words) } else { words };
    let at = match step.decisive_location().or(step.at.as_ref()) {
        Some(at) => page.paint(DIM, &format!("  {}", format_location(at))),
        None => String::new(),
    };
    let mark = page.paint(style, mark);
    page.line(2, &format!("{mark} {policy}  {kind}  {words}{layer}{at}"));
    for used in &step.lets {
        write_let(page, used);
    }
    for change in &step.changes {
        write_change(page, change);
    }
}

/// Writes a named value with its definition and its value, or why it has none.
fn write_let(page: &mut TerminalWriter, used: &ExplainedLet) {
    let why = used.why.as_deref().map(escape_invisible).unwrap_or_default();
    let result = match used.state {
        LetState::Value => {
            let value = format_value(&used.value);
            escape_invisible(&format!("{value}{}", format_parts(&used.values)))
        }
        LetState::Absent => format!("absent: {why}"),
        LetState::Open => format!("open: {why}"),
        LetState::Undecided => format!("undecided: {why}"),
    };
    let name = page.paint(BOLD, &escape_invisible(&used.name));
    let definition = escape_invisible(&safe_text::truncate(&used.text));
    let at = match &used.at {
        Some(at) => page.paint(DIM, &format!("  {}", format_location(at))),
        None => String::new(),
    };
    page.line(8, &format!("{name} = {definition}  is {result}{at}"));
}

fn write_change(page: &mut TerminalWriter, change: &ValueChange) {
    let path = escape_invisible(&change.path);
    let (before, after) =
        (escape_invisible(&format_value(&change.before)), escape_invisible(&format_value(&change.after)));
    let line = match change.how {
        "added" => format!("{path}  {}", page.paint(GREEN, &format!("+ {after}"))),
        "removed" => format!("{path}  {}", page.paint(RED, &format!("- {before}"))),
        _ if before == after => format!("{path}  {after}"),
        _ => format!("{path}  {} → {}", page.paint(RED, &before), page.paint(GREEN, &after)),
    };
    page.line(8, &line);
}

fn step_mark(step: &PolicyStep) -> (&'static str, &'static str) {
    match step.verdict {
        None => ("·", DIM),
        Some(_) if step.shadow => ("○", DIM),
        Some(Verdict::Pass) => ("✓", GREEN),
        Some(Verdict::Rewrite | Verdict::Answer) => ("~", CYAN),
        Some(Verdict::Suspend) => ("?", YELLOW),
        Some(Verdict::Deny) => ("✗", RED),
        Some(Verdict::Halt) => ("■", RED),
    }
}

/// Writes the policies that were not evaluated, those with the same reason on one line.
fn write_skipped(page: &mut TerminalWriter, steps: &[&PolicyStep]) {
    let mut reasons: Vec<&str> = steps.iter().map(|step| step.words.as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let names =
            steps.iter().filter(|step| step.words == reason).map(|step| escape_invisible(&step.policy));
        let names: Vec<String> = names.collect();
        let policies = match names.as_slice() {
            [first, second, third, more @ ..] if !more.is_empty() => {
                format!("{first}, {second}, {third} and {} more", more.len())
            }
            names => names.join(", "),
        };
        let line = page.paint(DIM, &format!("· {policies}: {}", escape_invisible(reason)));
        page.line(2, &line);
    }
}

/// Writes the nested calls that a script made for this one.
fn write_nested_calls(page: &mut TerminalWriter, explanation: &Explanation) {
    for again in &explanation.again {
        page.line(0, "");
        let head = format!(
            "called again with {}: {}",
            escape_invisible(&format_value(&again.input)),
            again.decision
        );
        let head = page.paint(BOLD, &head);
        page.line(0, &head);
        page.line(2, &escape_invisible(&again.reason.message));
        for step in &again.steps {
            write_step(page, step, (0, 0));
        }
    }
}

fn write_footer(page: &mut TerminalWriter, explanation: &Explanation, all: bool) {
    let mut notes = Vec::new();
    // A policy of two phases counts once.
    let mut elsewhere: Vec<(u32, &str)> = explanation
        .steps
        .iter()
        .filter(|step| matches!(step.heard, MatchResult::OtherTool | MatchResult::OtherServer))
        .map(|step| (step.layer, step.policy.as_str()))
        .collect();
    elsewhere.sort_unstable();
    elsewhere.dedup();
    let amount = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 policy {one}"),
        count => format!("{count} policies {many}"),
    };
    if !all && !elsewhere.is_empty() {
        let servers = explanation.steps.iter().any(|step| step.heard == MatchResult::OtherServer);
        let or_servers = if servers { " or servers" } else { "" };
        let one = format!("is for other tools{or_servers}");
        notes.push(amount(elsewhere.len(), &one, &one.replacen("is", "are", 1)));
    }
    let of_run =
        explanation.steps.iter().filter(|step| step.phase.is_none() && step.heard == MatchResult::NotAsked);
    let of_run = of_run.count();
    if !all && of_run > 0 {
        notes.push(amount(of_run, "acts on the run", "act on the run"));
    }
    if !explanation.off.is_empty() {
        let names: Vec<String> = explanation.off.iter().map(|id| escape_invisible(id)).collect();
        notes.push(format!("{}: {}", amount(explanation.off.len(), "is off", "are off"), names.join(", ")));
    }
    if notes.is_empty() && explanation.steps.is_empty() {
        notes.push("there are no policies".to_owned());
    }
    if !notes.is_empty() {
        page.line(0, "");
    }
    for line in notes {
        page.line(0, &page.paint(DIM, &line));
    }
}
