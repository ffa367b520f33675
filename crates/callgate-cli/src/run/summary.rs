//! Summary of a run: calls by outcome, effects by policy, and pending approvals.

use std::collections::BTreeMap;
use std::io::Write;

use super::outcome_row::{REPLAYED_LABEL, format_duration, is_call, is_replayed, mark_and_style};
use crate::exit::CommandError;
use crate::output::{
    BOLD, CYAN, DIM, Output, count_noun, display_width, escape_line, format_time, group_digits,
    quote_shell_word, truncate, wrap,
};
use callgate::call::{Outcome, OutcomeKind, Verdict, reason_code};

/// Maximum number of pending approvals listed; further ones are counted.
const MAX_LISTED_APPROVALS: usize = 20;

/// Stands for a policy id where the default decision denies unmatched calls; no policy has this id by chance.
const UNMATCHED: &str = "defaults.unmatched";
/// Indentation of an approval's message.
const INDENT: &str = "    ";

/// Counts outcomes.
#[derive(Default)]
pub(super) struct RunSummary {
    calls: usize,
    dry: usize,
    microseconds: u64,
    kinds: BTreeMap<OutcomeKind, usize>,
    policies: BTreeMap<String, PolicyCounts>,
    approvals: Vec<ApprovalSummary>,
    more_approvals: usize,
    first_session: Option<Option<String>>,
    several_sessions: bool,
    /// Calls that earlier runs completed.
    replayed: BTreeMap<OutcomeKind, usize>,
    /// The state store with the pending approvals.
    state: Option<String>,
}

/// Counts of the effects of one policy.
#[derive(Default)]
struct PolicyCounts {
    kinds: BTreeMap<OutcomeKind, usize>,
    /// Calls that the policy would have stopped, in shadow mode.
    would_stop: usize,
}

/// A pending approval.
struct ApprovalSummary {
    /// The unescaped id of the approval.
    id: String,
    approval: String,
    session: Option<String>,
    text: String,
    policies: String,
    expires: Option<String>,
}

impl RunSummary {
    /// Creates a summary. `state` is the state store with pending approvals, if there is one.
    pub(super) fn new(state: Option<String>) -> Self {
        Self { state, ..Self::default() }
    }

    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.calls += 1;
        if is_call(outcome) {
            let first = self.first_session.get_or_insert_with(|| outcome.session.clone());
            self.several_sessions |= *first != outcome.session;
        }
        if is_replayed(outcome) {
            *self.replayed.entry(outcome.outcome).or_default() += 1;
            return;
        }
        self.dry += usize::from(outcome.dry);
        self.microseconds = self.microseconds.saturating_add(outcome.duration_us);
        *self.kinds.entry(outcome.outcome).or_default() += 1;
        self.count_policies(outcome);
        if let Some(approval) = &outcome.approval {
            if self.approvals.len() == MAX_LISTED_APPROVALS {
                self.more_approvals += 1;
                return;
            }
            self.approvals.push(ApprovalSummary {
                id: approval.approval_id.clone(),
                approval: escape_line(&approval.approval_id).into_owned(),
                session: outcome.session.as_deref().map(|name| escape_line(name).into_owned()),
                text: escape_line(approval.message.as_deref().unwrap_or(&outcome.reason.message))
                    .into_owned(),
                policies: approval.policies.join(", "),
                expires: approval.expires_at.as_deref().map(format_time),
            });
        }
    }

    fn count_policies(&mut self, outcome: &Outcome) {
        let approval_policies = outcome.approval.iter().flat_map(|approval| &approval.policies);
        let stopping = outcome.reason.policy.iter().filter(|_| {
            outcome.approval.is_none()
                && !matches!(outcome.outcome, OutcomeKind::Executed | OutcomeKind::Cached)
        });
        let by_default = outcome.reason.policy.is_none()
            && outcome.reason.code == reason_code::UNMATCHED
            && outcome.outcome != OutcomeKind::Executed;
        let unmatched = by_default.then_some(UNMATCHED).into_iter();
        for policy in approval_policies.chain(stopping).map(String::as_str).chain(unmatched) {
            *self.policy_counts(policy).kinds.entry(outcome.outcome).or_default() += 1;
        }
        for trace in &outcome.policies {
            let stops = matches!(trace.verdict, Verdict::Deny | Verdict::Halt | Verdict::Suspend);
            if trace.shadow && stops {
                self.policy_counts(&trace.id).would_stop += 1;
            }
        }
    }

    fn policy_counts(&mut self, id: &str) -> &mut PolicyCounts {
        self.policies.entry(id.to_owned()).or_default()
    }

    /// Whether the outcomes so far are of more than one session.
    pub(super) fn has_several_sessions(&self) -> bool {
        self.several_sessions
    }

    /// Writes the summary. `sessions` is the number of sessions.
    pub(super) fn write(&self, sessions: usize, output: &mut Output) -> Result<(), CommandError> {
        if self.calls == 0 {
            return Ok(writeln!(output, "no calls")?);
        }
        let total = format!(
            "{} in {}, {} in total",
            count_noun(self.calls, "call", "calls"),
            count_noun(sessions, "session", "sessions"),
            format_duration(self.microseconds)
        );
        let total = output.paint(BOLD, &total).into_owned();
        writeln!(output, "\n{total}")?;
        for (kind, count) in &self.kinds {
            let (mark, style) = mark_and_style(*kind);
            let word = format!("{mark} {:13}", kind.name());
            let word = output.paint(style, &word).into_owned();
            let dry = match kind {
                OutcomeKind::Executed if self.dry > 0 => {
                    format!("  {} dry: no recorded result to replay", group_digits(self.dry))
                }
                _ => String::new(),
            };
            let dry = output.paint(DIM, &dry).into_owned();
            writeln!(output, "  {word} {:>7}{dry}", group_digits(*count))?;
        }
        if !self.replayed.is_empty() {
            let kinds = self.replayed.iter().map(|(kind, count)| format!("{} {kind}", group_digits(*count)));
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            let kinds = output.paint(DIM, &kinds).into_owned();
            let count: usize = self.replayed.values().sum();
            writeln!(output, "  {REPLAYED_LABEL:15} {:>7}  {kinds}", group_digits(count))?;
        }
        self.write_policies(output)?;
        self.write_approvals(output)
    }

    fn write_policies(&self, output: &mut Output) -> Result<(), CommandError> {
        if self.policies.is_empty() {
            return Ok(());
        }
        let title = output.paint(BOLD, "By policy").into_owned();
        writeln!(output, "\n{title}")?;
        let longest = self.policies.keys().map(|id| display_width(id)).max().unwrap_or(0);
        for (id, counts) in &self.policies {
            let mut words: Vec<String> = counts
                .kinds
                .iter()
                .map(|(kind, count)| {
                    let text = format!("{} {}", group_digits(*count), kind.name());
                    output.paint(mark_and_style(*kind).1, &text).into_owned()
                })
                .collect();
            if counts.would_stop > 0 {
                words.push(format!("{} would be stopped (shadow)", group_digits(counts.would_stop)));
            }
            let padding = " ".repeat(longest.saturating_sub(display_width(id)));
            let id = output.paint(CYAN, id).into_owned();
            writeln!(output, "  {id}{padding}  {}", words.join(", "))?;
        }
        Ok(())
    }

    fn write_answer_hint(&self, output: &mut Output) -> Result<(), CommandError> {
        let Some(state) = self.state.as_ref().filter(|state| !state.starts_with("memory:")) else {
            return Ok(());
        };
        let id = match self.approvals.as_slice() {
            [question] => quote_shell_word(&question.id),
            _ => "ID".to_owned(),
        };
        let state = quote_shell_word(state);
        let answer = format!("callgate approvals approve {id} --state {state} --as NAME");
        let answer = output.paint(BOLD, &answer).into_owned();
        writeln!(output, "\nAnswer:  {answer}")?;
        Ok(writeln!(output, "then run the same calls again with --resume.")?)
    }

    fn write_approvals(&self, output: &mut Output) -> Result<(), CommandError> {
        if self.approvals.is_empty() {
            return Ok(());
        }
        let title = output.paint(BOLD, "Pending approvals").into_owned();
        writeln!(output, "\n{title}")?;
        for question in &self.approvals {
            let approval =
                output.paint(mark_and_style(OutcomeKind::Suspended).1, &question.approval).into_owned();
            let mut about: Vec<String> = Vec::new();
            about.extend(question.session.as_ref().map(|name| format!("session {name}")));
            about.extend((!question.policies.is_empty()).then(|| question.policies.clone()));
            about.extend(question.expires.as_ref().map(|time| format!("until {time}")));
            let width = output.width.map_or(usize::MAX, |width| width - INDENT.len());
            let room = width.saturating_sub(display_width(&question.approval));
            let about = output.paint(DIM, &truncate(&about.join(" · "), room)).into_owned();
            writeln!(output, "  {approval}  {about}")?;
            for line in wrap(&question.text, width) {
                writeln!(output, "{INDENT}{line}")?;
            }
        }
        if self.more_approvals > 0 {
            writeln!(output, "  and {} more", group_digits(self.more_approvals))?;
        }
        self.write_answer_hint(output)
    }
}
