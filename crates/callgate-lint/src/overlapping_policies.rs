//! Lint: overlapping policies of one kind, of which only one has an effect, or whose effects multiply.

use crate::duplicate_policy::are_duplicates;
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use crate::subsumption_index::SubsumptionIndex;
use callgate::diagnostic::{Diagnostics, OVERLAPPING_POLICIES};
use callgate::middleware::PolicyKind;
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &OVERLAPPING_POLICIES, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for kind in ["respond", "cache", "retry", "timeout"] {
        let covering = SubsumptionIndex::new(checked, |written| written.has_kind(&[kind]));
        for narrow in checked.enforced_policies().filter(|written| written.has_kind(&[kind])) {
            let overlapping = covering
                .covering(narrow)
                .into_iter()
                .find_map(|wide| Some((wide, describe_overlap(wide, narrow)?)));
            let Some((wide, (message, help))) = overlapping else { continue };
            found.push(
                narrow
                    .diagnostic(&OVERLAPPING_POLICIES, narrow.kind.key_span, message)
                    .with_label(
                        wide.kind.key_span,
                        format!("`{}` applies to all of these calls, too", wide.id()),
                    )
                    .with_help(help),
            );
        }
    }
}

/// Returns the message and the help for two overlapping policies of one kind. Returns `None` if the overlap is harmless.
fn describe_overlap(wide: &PolicySource<'_>, narrow: &PolicySource<'_>) -> Option<(String, String)> {
    if are_duplicates(wide, narrow) {
        return None;
    }
    let (outer, inner) = if wide.index < narrow.index { (wide, narrow) } else { (narrow, wide) };
    let (wide_id, narrow_id) = (wide.id(), narrow.id());
    Some(match (&wide.policy.kind, &narrow.policy.kind) {
        (PolicyKind::Respond(_), PolicyKind::Respond(_)) if wide.index < narrow.index => (
            format!("`{narrow_id}` answers no call: `{wide_id}` answers them first"),
            format!("give `{narrow_id}` a higher `priority`, or remove it"),
        ),
        (PolicyKind::Cache(_), PolicyKind::Cache(_)) => (
            format!(
                "calls of `{narrow_id}` are cached twice: first by `{}`, and on a miss by `{}`",
                outer.id(),
                inner.id()
            ),
            format!(
                "results can be as old as both `ttl`s together; exclude the tools of `{narrow_id}` from `{wide_id}`"
            ),
        ),
        (PolicyKind::Retry(_), PolicyKind::Retry(_)) => {
            let attempts = |written: &PolicySource<'_>| {
                written
                    .kind
                    .value
                    .get("attempts")
                    .and_then(YamlNode::as_number)
                    .and_then(callgate::json::Number::as_u64)
            };
            let product = attempts(wide)?.saturating_mul(attempts(narrow)?);
            (
                format!(
                    "attempts multiply: with `{wide_id}` and `{narrow_id}` a tool is called up to {product} times"
                ),
                format!("exclude the tools of `{narrow_id}` from `{wide_id}`"),
            )
        }
        (PolicyKind::Timeout(all), PolicyKind::Timeout(these)) if all.after < these.after => (
            format!("`{narrow_id}` has no effect: `{wide_id}` cancels these calls after {}", all.source),
            format!(
                "exclude the tools of `{narrow_id}` from `{wide_id}`; the shortest of several timeouts applies"
            ),
        ),
        _ => return None,
    })
}
