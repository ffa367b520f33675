//! Metrics of engines: events → counters, gauges and histograms → the text that Prometheus reads.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate::{
    CallDecided, CallIdentity, CandidateDecided, CandidateDifference, EngineEvent, EngineEventKind, Observer,
    Outcome, OutcomeKind, RulesEvent,
};
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::bounded_labels::{BoundedNames, ToolNames};
use crate::metric_families::{
    BundleLabels, CallLabels, CandidateLabels, CheckLabels, CodeLabels, DecisionLabels, DifferenceLabels,
    HookLabels, LimitLabels, MetricFamilies, PolicyLabels, PublishedLabels, ReasonLabels, ReloadLabels,
    RevisionLabels, ServerLabels, ToolLabels, VerdictLabels,
};
use crate::pending_approvals::PendingApprovals;

/// The media type of the text: OpenMetrics.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The name of candidate rules among the bundles.
const CANDIDATE: &str = "candidate";
/// The number of policies, and of reason codes, with a label of their own.
const MAX_NAMES: usize = 1_000;

/// The metrics of an engine. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    /// The rules whose changes are reported.
    bundle: Arc<str>,
    shared: Arc<Shared>,
}

/// The versions of a published bundle that an instance has, and how its checks for newer ones went.
#[derive(Clone, Debug, Default)]
pub struct PublishedVersions {
    /// The name of the bundle, which comes from its publisher.
    pub bundle: String,
    /// The version whose rules are in effect.
    pub active: u64,
    /// The newest accepted version.
    pub newest: u64,
    /// When the publisher last answered.
    pub checked_at: Option<Timestamp>,
    /// The number of checks that succeeded.
    pub checks: u64,
    /// The number of checks that failed.
    pub failed_checks: u64,
    /// The number of bundles that were refused or rejected.
    pub rejected: u64,
}

type LostEvents = Box<dyn Fn() -> u64 + Send + Sync>;

struct Shared {
    families: MetricFamilies,
    registry: Registry,
    tools: ToolNames,
    policies: BoundedNames,
    codes: BoundedNames,
    hooks: BoundedNames,
    pending: Mutex<PendingApprovals>,
    /// The revision in `rules_info`, by bundle.
    revisions: Mutex<HashMap<Arc<str>, String>>,
    lost_events: Mutex<Vec<LostEvents>>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").field("bundle", &self.bundle).finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics without any event.
    pub fn new() -> Self {
        let families = MetricFamilies::default();
        let shared = Shared {
            registry: families.registry(),
            families,
            tools: ToolNames::default(),
            policies: BoundedNames::new(MAX_NAMES),
            codes: BoundedNames::new(MAX_NAMES),
            hooks: BoundedNames::new(MAX_NAMES),
            pending: Mutex::default(),
            revisions: Mutex::default(),
            lost_events: Mutex::default(),
        };
        Self { bundle: "main".into(), shared: Arc::new(shared) }
    }

    /// The same metrics, for an engine with other rules: changes of its rules are reported with this name as `bundle`. The name must
    /// come from the configuration.
    #[must_use]
    pub fn for_bundle(&self, name: &str) -> Self {
        Self { bundle: name.into(), shared: Arc::clone(&self.shared) }
    }

    /// Gives tools of a server labels of their own; the server is empty for tools without one. Other tools get one when they first
    /// return a result. Each server has 200 labels; calls of further tools, and those of tools that a model invents, are counted as
    /// `other`.
    pub fn add_tools<'n>(&self, server: &str, names: impl IntoIterator<Item = &'n str>) {
        self.shared.tools.admit(server, names);
    }

    /// Sets which MCP servers there are, and whether each answers.
    pub fn set_upstreams_up(&self, servers: &[(String, bool)]) {
        let family = &self.shared.families.upstream_up;
        family.clear();
        for (server, is_up) in servers {
            family.get_or_create(&ServerLabels { server: server.clone() }).set((*is_up).into());
        }
    }

    /// Sets which version of a published bundle this instance has, and how its checks for newer ones went.
    pub fn set_published_rules(&self, versions: &PublishedVersions) {
        let families = &self.shared.families;
        let labels = PublishedLabels { name: versions.bundle.clone() };
        let gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        families.published_version.get_or_create(&labels).set(gauge(versions.active));
        families.published_newest.get_or_create(&labels).set(gauge(versions.newest));
        let checked_at = versions.checked_at.map_or(0.0, |time| time.as_duration().as_secs_f64());
        families.published_checked_at.get_or_create(&labels).set(checked_at);
        for (result, count) in [("succeeded", versions.checks), ("failed", versions.failed_checks)] {
            let counter = families.published_checks.get_or_create(&CheckLabels { result });
            counter.inner().store(count, Ordering::Relaxed);
        }
        families
            .published_rejected
            .get_or_create(&labels)
            .inner()
            .store(versions.rejected, Ordering::Relaxed);
    }

    /// Adds a source of `callgate_log_events_lost_total`: the number of events that a log has lost so far.
    pub fn add_lost_events(&self, count: impl Fn() -> u64 + Send + Sync + 'static) {
        lock(&self.shared.lost_events).push(Box::new(count));
    }

    /// The metrics as text, for a response with [`CONTENT_TYPE`].
    pub fn render(&self, now: Timestamp) -> String {
        let Shared { families, registry, pending, lost_events, .. } = &*self.shared;
        {
            let mut pending = lock(pending);
            pending.remove_expired(now);
            families.approvals_pending.set(i64::try_from(pending.len()).unwrap_or(i64::MAX));
            families.approvals_oldest_age.set(pending.oldest_age(now));
        }
        let lost = lock(lost_events).iter().map(|count| count()).sum();
        families.log_events_lost.inner().store(lost, Ordering::Relaxed);
        encode_text(registry)
    }

    /// A text with every metric once, with empty labels, to check dashboards and alert rules against.
    pub fn example_text() -> String {
        encode_text(&MetricFamilies::with_every_series().registry())
    }

    fn count_decision(&self, decided: &CallDecided<'_>) {
        self.shared.families.decision_duration.observe(decided.duration.as_secs_f64());
    }

    fn count_call(&self, call: Option<CallIdentity<'_>>, outcome: &Outcome) {
        let Shared { families, tools, policies, codes, .. } = &*self.shared;
        let (server, tool) = call.map_or(("", ""), |call| (call.server.unwrap_or_default(), call.tool));
        // It exists: it returned a result.
        if outcome.outcome == OutcomeKind::Executed && !outcome.dry && !tools.has(server, tool) {
            tools.admit(server, [tool]);
        }
        let (server, tool) = tools.labels(server, tool);
        if has_reached_tool(outcome.outcome) {
            let labels = ToolLabels { server: server.clone(), tool: tool.clone() };
            let seconds = std::time::Duration::from_micros(outcome.duration_us).as_secs_f64();
            families.call_duration.get_or_create(&labels).observe(seconds);
        }
        let kind = outcome.outcome.name();
        families.calls.get_or_create(&CallLabels { server, tool, outcome: kind }).inc();
        let reason = ReasonLabels {
            policy: outcome.reason.policy.as_ref().map_or_else(String::new, |policy| policies.label(policy)),
            code: codes.label(&outcome.reason.code),
            outcome: kind,
        };
        families.reasons.get_or_create(&reason).inc();
        for policy in &outcome.policies {
            let labels = VerdictLabels {
                policy: policies.label(&policy.id),
                verdict: policy.verdict.name(),
                mode: mode_name(policy.shadow),
            };
            families.verdicts.get_or_create(&labels).inc();
        }
    }

    fn count_candidate(&self, decided: &CandidateDecided<'_>) {
        let Shared { families, policies, codes, .. } = &*self.shared;
        let difference = decided.difference.name();
        families.candidate_calls.get_or_create(&DifferenceLabels { difference }).inc();
        if decided.difference != CandidateDifference::None {
            let policy = decided.candidate.policy.map_or_else(String::new, |policy| policies.label(policy));
            let labels = CandidateLabels { policy, code: codes.label(decided.candidate.code), difference };
            families.candidate_differences.get_or_create(&labels).inc();
        }
    }

    fn count_rules(&self, event: &EngineEvent<'_>, change: &RulesEvent<'_>) {
        let families = &self.shared.families;
        let bundle = || BundleLabels { bundle: (*self.bundle).to_owned() };
        let (result, is_accepted, is_pending) = match change {
            RulesEvent::Loaded => (None, true, false),
            RulesEvent::Applied { confirmed: true, .. } => (Some("confirmed"), true, false),
            RulesEvent::Applied { .. } => (Some("applied"), true, false),
            RulesEvent::Rejected { .. } => (Some("rejected"), false, false),
            RulesEvent::Pending { .. } => (Some("pending"), false, true),
            RulesEvent::Reverted => (Some("reverted"), true, false),
            _ => return,
        };
        if let Some(result) = result {
            let labels = ReloadLabels { bundle: (*self.bundle).to_owned(), result };
            families.reloads.get_or_create(&labels).inc();
        }
        families.reload_accepted.get_or_create(&bundle()).set(is_accepted.into());
        families.rules_pending.get_or_create(&bundle()).set(is_pending.into());
        if matches!(change, RulesEvent::Loaded | RulesEvent::Applied { .. }) {
            let seconds = event.time.as_duration().as_secs_f64();
            families.rules_loaded_at.get_or_create(&bundle()).set(seconds);
            self.set_revision(event.revision);
        }
    }

    /// Replaces the revision of the bundle, so that there is one series for each bundle.
    fn set_revision(&self, revision: &str) {
        let info = &self.shared.families.rules_info;
        let labels = |revision: String| RevisionLabels { bundle: (*self.bundle).to_owned(), revision };
        let mut revisions = lock(&self.shared.revisions);
        if let Some(before) = revisions.insert(Arc::clone(&self.bundle), revision.to_owned()) {
            info.remove(&labels(before));
        }
        info.get_or_create(&labels(revision.to_owned())).set(1);
    }
}

impl Observer for Metrics {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let Shared { families, policies, codes, hooks, pending, .. } = &*self.shared;
        let conversation = event.run.map_or("", |run| run.conversation);
        match &event.kind {
            EngineEventKind::CallDecided(decided) => self.count_decision(decided),
            EngineEventKind::CallCompleted(span) => self.count_call(event.call, span.outcome),
            EngineEventKind::ApprovalRequested(request) => {
                families.approvals_requested.inc();
                lock(pending).add(conversation, request, event.time);
            }
            EngineEventKind::ApprovalDecided(decision) => {
                let labels = DecisionLabels { decision: codes.label(&decision.code) };
                families.approvals_decided.get_or_create(&labels).inc();
                lock(pending).remove(conversation, &decision.approval_id);
            }
            EngineEventKind::LimitRefused(refused) => {
                let labels =
                    LimitLabels { policy: policies.label(refused.policy), mode: mode_name(refused.shadow) };
                families.limit_refusals.get_or_create(&labels).inc();
            }
            EngineEventKind::CacheHit(hit) => {
                let labels = PolicyLabels { policy: policies.label(hit.policy) };
                families.cache_hits.get_or_create(&labels).inc();
            }
            EngineEventKind::RunShadow(shadow) => {
                let policy = policies.label(&shadow.id);
                let labels = VerdictLabels { policy, verdict: shadow.verdict.name(), mode: mode_name(true) };
                families.verdicts.get_or_create(&labels).inc();
            }
            EngineEventKind::StoreFailed(error) => {
                families.store_failures.get_or_create(&CodeLabels { code: error.code() }).inc();
            }
            EngineEventKind::HookFailed(failure) => {
                let labels = HookLabels { hook: hooks.label(failure.hook), point: failure.point };
                families.hook_failures.get_or_create(&labels).inc();
            }
            EngineEventKind::Rules(change) => self.count_rules(event, change),
            EngineEventKind::CandidateRules(change) => {
                self.for_bundle(CANDIDATE).count_rules(event, change);
            }
            EngineEventKind::CandidateDecided(decided) => self.count_candidate(decided),
            EngineEventKind::CandidateSkipped(calls) => {
                families.candidate_skipped.inc_by(*calls);
            }
            _ => {}
        }
    }
}

fn encode_text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, registry);
    text
}

/// Whether a call with this outcome reached its tool, and the tool came back.
fn has_reached_tool(kind: OutcomeKind) -> bool {
    matches!(kind, OutcomeKind::Executed | OutcomeKind::Failed | OutcomeKind::Recovered)
}

fn mode_name(is_shadow: bool) -> &'static str {
    if is_shadow { "shadow" } else { "enforce" }
}

/// Ignores poisoning: every update is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
