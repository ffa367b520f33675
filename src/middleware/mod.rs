//! Policy kinds, one file each. Every kind has a [`KindDefinition`] with its schema and reader, and a type with its compiled settings.

mod allow;
mod approval;
mod around;
mod audit;
mod budget;
mod cache;
mod concurrency;
mod deny;
mod error_patterns;
mod fact;
mod stream_filter;
mod halt;
mod key_values;
mod label;
mod limit;
mod model;
mod policy_script;
mod rate_limit;
mod recover;
mod refusal;
mod require;
mod redact;
mod respond;
mod retry;
mod cache_scope;
mod stream_shadow;
mod stream;
mod timeout;
mod transform;
mod undecided;
mod validate;

pub use allow::Allow;
pub use approval::{Approval, CardTemplates, EditableArguments, GrantSettings};
pub use around::Around;
pub use audit::Audit;
pub use budget::{Budget, BudgetAmounts, BudgetScope, OnBudgetExceeded};
pub use cache::Cache;
pub use cache_scope::CacheScope;
pub use deny::Deny;
pub use error_patterns::ErrorPatterns;
pub use fact::{ExtractedFact, Fact, FactChange, FactTime};
pub use halt::Halt;
pub use label::Label;
pub use limit::{CallCost, CountedCalls, Limit, LimitCharge, LimitRule, OnExceed};
pub use model::Model;
pub use recover::Recover;
pub use redact::Redact;
pub use refusal::Refusal;
pub use require::{Missing, Require, describe_missing};
pub use respond::Respond;
pub use retry::Retry;
pub use stream::{DropUnit, Stream};
pub use stream_filter::{MAX_DELAYED_CHUNKS, MAX_STREAM_TEXTS, StreamFilter, WITHHELD};
pub use stream_shadow::StreamShadow;
pub use timeout::Timeout;
pub use transform::{Transform, TransformStep, apply as apply_steps};
pub use undecided::{Application, OnUndecided};
pub use validate::Validate;

use crate::call::Phase;
use crate::rules_schema::{Polarity, PolicyReader, Shape};
use crate::source::YamlNode;

/// A compiled policy kind with its settings.
#[derive(Debug)]
pub enum PolicyKind {
    /// `deny`
    Deny(Box<Deny>),
    /// `require`
    Require(Box<Require>),
    /// `allow`
    Allow(Allow),
    /// `halt`
    Halt(Halt),
    /// `validate`
    Validate(Validate),
    /// `rate_limit`
    RateLimit(Box<Limit>),
    /// `concurrency`
    Concurrency(Box<Limit>),
    /// `approval`
    Approval(Box<Approval>),
    /// `cache`
    Cache(Box<Cache>),
    /// `around`
    Around(Box<Around>),
    /// `retry`
    Retry(Box<Retry>),
    /// `timeout`
    Timeout(Timeout),
    /// `transform`
    Transform(Box<Transform>),
    /// `redact`
    Redact(Box<Redact>),
    /// `respond`
    Respond(Respond),
    /// `recover`
    Recover(Box<Recover>),
    /// `label`
    Label(Label),
    /// `fact`
    Fact(Box<Fact>),
    /// `audit`
    Audit(Audit),
    /// `model`
    Model(Box<Model>),
    /// `budget`
    Budget(Box<Budget>),
    /// `stream`
    Stream(Box<Stream>),
}

/// Definition of a kind: its key, its schema, and how the rest of the policy is read.
#[derive(Debug)]
pub struct KindDefinition {
    /// The key in a policy.
    pub name: &'static str,
    /// Description for policy authors.
    pub doc: &'static str,
    /// The shape of its value.
    pub shape: Shape,
    /// The meaning of an undecided test.
    pub polarity: Polarity,
    /// Whether the conditions of a policy with this value can read the tool's result.
    pub reads_result: fn(&YamlNode) -> bool,
    /// Whether a policy of this kind needs `match`.
    pub needs_matcher: bool,
    /// Whether it applies to a run instead of to calls. Then `match` can only have `where`, over `$.context` and `$.session`.
    pub applies_to_run: bool,
    /// Reads the value and reports problems.
    pub read: fn(&YamlNode, &mut PolicyReader<'_>) -> Option<PolicyKind>,
}

/// Every kind, in the order of their phases.
pub static KINDS: [&KindDefinition; 22] = [
    &transform::KIND,
    &validate::KIND,
    &deny::KIND,
    &require::KIND,
    &allow::KIND,
    &halt::KIND,
    &rate_limit::KIND,
    &concurrency::KIND,
    &approval::KIND,
    &respond::KIND,
    &cache::KIND,
    &around::KIND,
    &retry::KIND,
    &timeout::KIND,
    &recover::KIND,
    &redact::KIND,
    &label::KIND,
    &fact::KIND,
    &audit::KIND,
    &model::KIND,
    &stream::KIND,
    &budget::KIND,
];

impl PolicyKind {
    /// The definition of this kind.
    pub fn definition(&self) -> &'static KindDefinition {
        match self {
            Self::Deny(_) => &deny::KIND,
            Self::Require(_) => &require::KIND,
            Self::Allow(_) => &allow::KIND,
            Self::Halt(_) => &halt::KIND,
            Self::Validate(_) => &validate::KIND,
            Self::RateLimit(_) => &rate_limit::KIND,
            Self::Concurrency(_) => &concurrency::KIND,
            Self::Approval(_) => &approval::KIND,
            Self::Cache(_) => &cache::KIND,
            Self::Around(_) => &around::KIND,
            Self::Retry(_) => &retry::KIND,
            Self::Timeout(_) => &timeout::KIND,
            Self::Transform(_) => &transform::KIND,
            Self::Redact(_) => &redact::KIND,
            Self::Respond(_) => &respond::KIND,
            Self::Recover(_) => &recover::KIND,
            Self::Label(_) => &label::KIND,
            Self::Fact(_) => &fact::KIND,
            Self::Audit(_) => &audit::KIND,
            Self::Model(_) => &model::KIND,
            Self::Budget(_) => &budget::KIND,
            Self::Stream(_) => &stream::KIND,
        }
    }

    /// Whether the policy is evaluated in this phase of a call. `respond` is matched in gate, where it permits unmatched calls, and
    /// returns its result in execute.
    pub fn is_active_in(&self, phase: Phase) -> bool {
        match self {
            Self::Transform(transform) => match phase {
                Phase::Normalise => !transform.input.is_empty(),
                Phase::Settle => !transform.output.is_empty(),
                Phase::Gate | Phase::Execute => false,
            },
            Self::Validate(_) => phase == Phase::Normalise,
            Self::Deny(_)
            | Self::Require(_)
            | Self::Allow(_)
            | Self::Halt(_)
            | Self::RateLimit(_)
            | Self::Concurrency(_)
            | Self::Approval(_)
            | Self::Respond(_) => phase == Phase::Gate,
            Self::Cache(_) | Self::Around(_) | Self::Retry(_) | Self::Timeout(_) => phase == Phase::Execute,
            Self::Fact(fact) => {
                phase
                    == match fact.when {
                        FactTime::Success => Phase::Settle,
                        FactTime::Attempted => Phase::Execute,
                    }
            }
            Self::Recover(_) | Self::Redact(_) | Self::Label(_) | Self::Audit(_) => phase == Phase::Settle,
            // These apply to the run.
            Self::Model(_) | Self::Stream(_) | Self::Budget(_) => false,
        }
    }

    /// Whether it applies to the run instead of to single calls.
    pub fn applies_to_run(&self) -> bool {
        self.definition().applies_to_run
    }

    /// Returns the settings of a limit. Returns `None` for other kinds.
    pub fn as_limit(&self) -> Option<&Limit> {
        match self {
            Self::RateLimit(limit) | Self::Concurrency(limit) => Some(limit),
            _ => None,
        }
    }

    /// Returns the settings of the approvals that the policy can require: of an `approval` policy, or of a limit with `on_exceed: approval`.
    pub fn as_approval(&self) -> Option<&Approval> {
        match self {
            Self::Approval(approval) => Some(approval),
            Self::RateLimit(limit) => match &limit.on_exceed {
                OnExceed::Approval(approval) => Some(approval),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it permits calls that `defaults.unmatched` would stop.
    pub fn permits(&self) -> bool {
        matches!(self, Self::Allow(_) | Self::Approval(_) | Self::Respond(_))
    }

    /// Its position among the policies of the same priority that wrap the execution, outermost first. Every kind that is active in
    /// [`Phase::Execute`] has one, except facts, which are stored when the tool starts.
    pub fn wrapper_order(&self) -> u8 {
        match self {
            Self::Cache(_) => 0,
            Self::Around(_) => 1,
            Self::Retry(_) => 2,
            Self::Timeout(_) => 3,
            // These wrap nothing.
            Self::Deny(_)
            | Self::Require(_)
            | Self::Allow(_)
            | Self::Halt(_)
            | Self::Validate(_)
            | Self::RateLimit(_)
            | Self::Concurrency(_)
            | Self::Approval(_)
            | Self::Transform(_)
            | Self::Redact(_)
            | Self::Respond(_)
            | Self::Recover(_)
            | Self::Label(_)
            | Self::Fact(_)
            | Self::Audit(_)
            | Self::Model(_)
            | Self::Stream(_)
            | Self::Budget(_) => u8::MAX,
        }
    }
}
