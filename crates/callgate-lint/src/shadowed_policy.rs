//! Lint: policies that a stricter policy always overrides.

use crate::example_call::ExampleCall;
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use crate::subsumption_index::SubsumptionIndex;
use callgate::call::Phase;
use callgate::diagnostic::{Diagnostics, SHADOWED_POLICY};
use callgate::middleware::{CountedCalls, PolicyKind};

pub(super) static LINT: Lint = Lint { code: &SHADOWED_POLICY, needs: RequiredInput::Nothing, check };

/// Maximum number of policy evaluations for confirming example calls. Each example evaluates every policy of its tool.
const MAX_EVALUATIONS: usize = 200_000;

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let mut evaluations = 0;
    let refusing = SubsumptionIndex::new(checked, |written| {
        written.has_kind(&["deny", "halt"]) && !written.has_script()
    });
    for narrow in checked.enforced_policies().filter(|written| can_be_overridden(written)) {
        let wide = refusing.covering(narrow).into_iter().find(|wide| overrides(wide, narrow));
        let Some(wide) = wide else { continue };
        // Report only what the engine confirms.
        let Some(example) = ExampleCall::for_policy(checked, narrow) else { continue };
        evaluations += checked.policies_matching_tool(&example.call.tool).count();
        if evaluations > MAX_EVALUATIONS {
            break;
        }
        if !example.is_refused_by(checked, wide.id()) {
            continue;
        }
        let verb = if wide.has_kind(&["halt"]) { "halts" } else { "denies" };
        let message =
            format!("`{}` decides no call: `{}` {verb} all calls that it matches", narrow.id(), wide.id());
        let help = format!(
            "for example, {} is refused by `{}`; remove one of the two, or exclude these calls from `{}`",
            example.to_json_string(),
            wide.id(),
            wide.id()
        );
        found.push(
            narrow
                .diagnostic(&SHADOWED_POLICY, narrow.id_span(), message)
                .with_label(wide.id_span(), format!("this policy {verb} them"))
                .with_help(help),
        );
    }
}

/// Whether a policy has no effect on calls that another policy refuses.
fn can_be_overridden(written: &PolicySource<'_>) -> bool {
    match &written.policy.kind {
        PolicyKind::RateLimit(limit) => limit.counted == CountedCalls::Executions,
        PolicyKind::Fact(_) => false,
        kind => kind.is_active_in(Phase::Gate) || kind.is_active_in(Phase::Execute),
    }
}

/// Whether `wide` decides calls that both match. The first of equally strict policies provides the reason.
fn overrides(wide: &PolicySource<'_>, narrow: &PolicySource<'_>) -> bool {
    let earlier = wide.index < narrow.index;
    match (&wide.policy.kind, &narrow.policy.kind) {
        (PolicyKind::Deny(_), PolicyKind::Halt(_)) => false,
        (PolicyKind::Deny(_), PolicyKind::Deny(_) | PolicyKind::Require(_))
        | (PolicyKind::Halt(_), PolicyKind::Halt(_)) => {
            earlier
                && wide.policy.behaviour_digest != narrow.policy.behaviour_digest
                && !crate::duplicate_policy::are_duplicates(wide, narrow)
        }
        _ => true,
    }
}
