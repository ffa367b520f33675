//! Lint: rate limits whose key the agent controls, so that it can bypass them.

use crate::condition_source::member_path;
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use crate::subsumption_index::SubsumptionIndex;
use callgate::diagnostic::{Diagnostics, KEY_CHOSEN_BY_CLIENT};
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &KEY_CHOSEN_BY_CLIENT, needs: RequiredInput::Nothing, check };

/// Paths to values that come with a call and not from the host. Facts and labels are set by Callgate.
const CLIENT_CONTROLLED_PATHS: [&str; 7] = [
    "$.input",
    "$.id",
    "$.session.requestId",
    "$.session.streamId",
    "$.session.conversationId",
    "$.session.iteration",
    "$.session.chunkIndex",
];

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let bounded = SubsumptionIndex::new(checked, |written| {
        written.has_kind(&["rate_limit"]) && client_controlled_key(written).is_none()
    });
    for written in checked.enforced_policies().filter(|written| written.has_kind(&["rate_limit"])) {
        let Some(key) = client_controlled_key(written) else { continue };
        // A limit per order, for example, is fine in addition to one for all orders.
        if !bounded.covering(written).is_empty() {
            continue;
        }
        let path = key.as_str().unwrap_or_default();
        let message = format!("the caller controls `{path}`, and bypasses the limit with a new value");
        found.push(
            written
                .diagnostic(&KEY_CHOSEN_BY_CLIENT, key.span, message)
                .with_help("use a key that the host sets, as in `key: $.context.principal`, or add a second `rate_limit` with such a key"),
        );
    }
}

/// Returns the path in a limit's key that the agent controls.
fn client_controlled_key<'a>(written: &PolicySource<'a>) -> Option<&'a YamlNode> {
    let key = written.kind.value.get("key")?;
    let mut paths = key.items().unwrap_or(std::slice::from_ref(key)).iter();
    paths.find(|node| {
        node.as_str().is_some_and(|text| {
            let path = member_path(text).unwrap_or_else(|| text.to_owned());
            CLIENT_CONTROLLED_PATHS.iter().any(|chosen| {
                path.strip_prefix(chosen).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
        })
    })
}
