//! Mutations of durations.

use super::DURATION;
use super::mutant_collector::MutantCollector;
use callgate::durations;
use callgate::source::YamlNode;

/// Halves and doubles a duration.
pub(super) fn scale_duration(node: &YamlNode, case: &str, collector: &mut MutantCollector<'_>) {
    let Some(time) = node.as_str().and_then(durations::parse) else { return };
    for other in [time / 2, time.saturating_mul(2)] {
        let other = durations::format(other).replace(' ', "");
        collector.replace(DURATION, node.span, other, case.to_owned());
    }
}
