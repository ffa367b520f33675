//! The metrics with their labels, in one registry.

use std::hash::Hash;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Seconds: from 50 µs, less than most decisions need, to half a second.
const DECISION_BUCKETS: [f64; 10] = [0.00005, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5];
/// Seconds: from 5 ms to five minutes.
const CALL_BUCKETS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0];

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CallLabels {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ToolLabels {
    pub(crate) server: String,
    pub(crate) tool: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabels {
    pub(crate) policy: String,
    pub(crate) code: String,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct VerdictLabels {
    pub(crate) policy: String,
    pub(crate) verdict: &'static str,
    pub(crate) mode: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LimitLabels {
    pub(crate) policy: String,
    pub(crate) mode: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct PolicyLabels {
    pub(crate) policy: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DecisionLabels {
    pub(crate) decision: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CodeLabels {
    pub(crate) code: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct HookLabels {
    pub(crate) hook: String,
    pub(crate) point: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct BundleLabels {
    pub(crate) bundle: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReloadLabels {
    pub(crate) bundle: String,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RevisionLabels {
    pub(crate) bundle: String,
    pub(crate) revision: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DifferenceLabels {
    pub(crate) difference: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CandidateLabels {
    pub(crate) policy: String,
    pub(crate) code: String,
    pub(crate) difference: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ServerLabels {
    pub(crate) server: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct PublishedLabels {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CheckLabels {
    pub(crate) result: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// All metrics.
#[derive(Debug)]
pub(crate) struct MetricFamilies {
    pub(crate) calls: Family<CallLabels, Counter>,
    pub(crate) reasons: Family<ReasonLabels, Counter>,
    pub(crate) verdicts: Family<VerdictLabels, Counter>,
    pub(crate) decision_duration: Histogram,
    pub(crate) call_duration: Family<ToolLabels, Histogram, fn() -> Histogram>,
    pub(crate) approvals_requested: Counter,
    pub(crate) approvals_decided: Family<DecisionLabels, Counter>,
    pub(crate) approvals_pending: Gauge,
    pub(crate) approvals_oldest_age: Seconds,
    pub(crate) limit_refusals: Family<LimitLabels, Counter>,
    pub(crate) cache_hits: Family<PolicyLabels, Counter>,
    pub(crate) store_failures: Family<CodeLabels, Counter>,
    pub(crate) hook_failures: Family<HookLabels, Counter>,
    pub(crate) reloads: Family<ReloadLabels, Counter>,
    pub(crate) reload_accepted: Family<BundleLabels, Gauge>,
    pub(crate) rules_pending: Family<BundleLabels, Gauge>,
    pub(crate) rules_loaded_at: Family<BundleLabels, Seconds>,
    pub(crate) rules_info: Family<RevisionLabels, Gauge>,
    pub(crate) published_version: Family<PublishedLabels, Gauge>,
    pub(crate) published_newest: Family<PublishedLabels, Gauge>,
    pub(crate) published_checked_at: Family<PublishedLabels, Seconds>,
    pub(crate) published_checks: Family<CheckLabels, Counter>,
    pub(crate) published_rejected: Family<PublishedLabels, Counter>,
    pub(crate) candidate_calls: Family<DifferenceLabels, Counter>,
    pub(crate) candidate_differences: Family<CandidateLabels, Counter>,
    pub(crate) candidate_skipped: Counter,
    pub(crate) upstream_up: Family<ServerLabels, Gauge>,
    pub(crate) log_events_lost: Counter,
}

impl Default for MetricFamilies {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            reasons: Family::default(),
            verdicts: Family::default(),
            decision_duration: Histogram::new(DECISION_BUCKETS),
            call_duration: Family::new_with_constructor(|| Histogram::new(CALL_BUCKETS)),
            approvals_requested: Counter::default(),
            approvals_decided: Family::default(),
            approvals_pending: Gauge::default(),
            approvals_oldest_age: Seconds::default(),
            limit_refusals: Family::default(),
            cache_hits: Family::default(),
            store_failures: Family::default(),
            hook_failures: Family::default(),
            reloads: Family::default(),
            reload_accepted: Family::default(),
            rules_pending: Family::default(),
            rules_loaded_at: Family::default(),
            rules_info: Family::default(),
            published_version: Family::default(),
            published_newest: Family::default(),
            published_checked_at: Family::default(),
            published_checks: Family::default(),
            published_rejected: Family::default(),
            candidate_calls: Family::default(),
            candidate_differences: Family::default(),
            candidate_skipped: Counter::default(),
            upstream_up: Family::default(),
            log_events_lost: Counter::default(),
        }
    }
}

impl MetricFamilies {
    /// Every metric once, with empty labels.
    pub(crate) fn with_every_series() -> Self {
        let families = Self::default();
        add_empty(&families.calls);
        add_empty(&families.reasons);
        add_empty(&families.verdicts);
        add_empty(&families.call_duration);
        add_empty(&families.approvals_decided);
        add_empty(&families.limit_refusals);
        add_empty(&families.cache_hits);
        add_empty(&families.store_failures);
        add_empty(&families.hook_failures);
        add_empty(&families.reloads);
        add_empty(&families.reload_accepted);
        add_empty(&families.rules_pending);
        add_empty(&families.rules_loaded_at);
        add_empty(&families.rules_info);
        add_empty(&families.published_version);
        add_empty(&families.published_newest);
        add_empty(&families.published_checked_at);
        add_empty(&families.published_checks);
        add_empty(&families.published_rejected);
        add_empty(&families.candidate_calls);
        add_empty(&families.candidate_differences);
        add_empty(&families.upstream_up);
        families
    }

    /// A registry of all metrics, and the build's version.
    pub(crate) fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("callgate");
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of Callgate", build);
        registry.register(
            "calls",
            "Calls by outcome. A call that requires approval counts as suspended, and again when it ends",
            self.calls.clone(),
        );
        registry.register(
            "calls_by_reason",
            "Calls by the policy and the code that gave their outcome",
            self.reasons.clone(),
        );
        registry.register(
            "policy_verdicts",
            "Policies that took part in calls, by verdict. In shadow mode: the verdict that they would have had",
            self.verdicts.clone(),
        );
        registry.register(
            "decision_duration_seconds",
            "Time from the arrival of a call to its decision, hooks and stores included",
            self.decision_duration.clone(),
        );
        registry.register(
            "call_duration_seconds",
            "Time from the arrival of a call that reached its tool to its outcome",
            self.call_duration.clone(),
        );
        self.register_approvals(&mut registry);
        registry.register(
            "limit_refusals",
            "Calls for which a limit had too little left",
            self.limit_refusals.clone(),
        );
        registry.register("cache_hits", "Calls that a cache answered", self.cache_hits.clone());
        registry.register(
            "store_failures",
            "Failed operations of the state store",
            self.store_failures.clone(),
        );
        registry.register("hook_failures", "Failures of hooks of the host", self.hook_failures.clone());
        self.register_rules(&mut registry);
        self.register_published(&mut registry);
        self.register_candidate(&mut registry);
        registry.register(
            "upstream_up",
            "Whether the MCP server answers: 0 for 30 seconds after a failure, unless it has answered since",
            self.upstream_up.clone(),
        );
        registry.register(
            "log_events_lost",
            "Events that are missing in a decision log",
            self.log_events_lost.clone(),
        );
        registry
    }

    fn register_approvals(&self, registry: &mut Registry) {
        registry.register("approvals_requested", "Approval requests", self.approvals_requested.clone());
        registry.register(
            "approvals_decided",
            "Approval requests that were decided, by the reason code of the decision",
            self.approvals_decided.clone(),
        );
        registry.register(
            "approvals_pending",
            "Approval requests of this process that are neither resumed nor expired",
            self.approvals_pending.clone(),
        );
        registry.register(
            "approvals_oldest_pending_age_seconds",
            "Age of the oldest pending approval request; 0 without any",
            self.approvals_oldest_age.clone(),
        );
    }

    fn register_candidate(&self, registry: &mut Registry) {
        registry.register(
            "candidate_calls",
            "Calls that candidate rules evaluated, by how their decision differs; none if it does not",
            self.candidate_calls.clone(),
        );
        registry.register(
            "candidate_differences",
            "Calls that candidate rules decide otherwise, by the policy and the code of their decision",
            self.candidate_differences.clone(),
        );
        registry.register(
            "candidate_skipped_calls",
            "Calls that candidate rules did not evaluate, because they are slower than the calls",
            self.candidate_skipped.clone(),
        );
    }

    fn register_published(&self, registry: &mut Registry) {
        registry.register(
            "bundle_version",
            "The version of the published bundle whose rules are in effect",
            self.published_version.clone(),
        );
        registry.register(
            "bundle_newest_version",
            "The newest version of the published bundle that this instance has accepted",
            self.published_newest.clone(),
        );
        registry.register(
            "bundle_checked_timestamp_seconds",
            "When the publisher of the bundle last answered",
            self.published_checked_at.clone(),
        );
        registry.register(
            "bundle_checks",
            "Checks for a newer version of the published bundle, by result",
            self.published_checks.clone(),
        );
        registry.register(
            "bundle_rejected",
            "Published bundles that were refused, or whose rules were rejected",
            self.published_rejected.clone(),
        );
    }

    fn register_rules(&self, registry: &mut Registry) {
        registry.register("rules_reloads", "Reloads of the rules by result", self.reloads.clone());
        registry.register(
            "rules_reload_accepted",
            "Whether the newest rules are in effect: 0 while they are rejected or pending",
            self.reload_accepted.clone(),
        );
        registry.register(
            "rules_pending",
            "Whether new rules are pending confirmation",
            self.rules_pending.clone(),
        );
        registry.register(
            "rules_loaded_timestamp_seconds",
            "When the active rules took effect",
            self.rules_loaded_at.clone(),
        );
        registry.register("rules_info", "The digest of the active rules", self.rules_info.clone());
    }
}

/// Adds a series with empty labels.
fn add_empty<S, M, C>(family: &Family<S, M, C>)
where
    S: Clone + Default + Eq + Hash,
    C: MetricConstructor<M>,
{
    drop(family.get_or_create(&S::default()));
}
