//! Explanations of calls: which policies matched and which did not, by which test and which values, what they changed, what was
//! left of limits, and why the call was decided so.
//!
//! An [`Explainer`] listens to the events of calls and builds an [`Explanation`] of each. Explanations are redacted as outcomes are.
//!
//! ```
//! use callgate::{Engine, SessionState, ToolCall};
//! use callgate::json::json;
//!
//! let mut built = callgate::load_bundle_texts([(
//!     "rules.yaml",
//!     "policies:\n  - id: large\n    match: { tool: refund, where: { path: $.input.amount, gt: 100 } }\n    deny: {}\n",
//! )]);
//! let engine = Engine::new(built.policies.take().expect("the rules are valid").into());
//! let call = ToolCall::new("c1", "refund", json!({ "amount": 50 }));
//! let explanation = engine.explain(&call, &SessionState::default(), &built.sources).expect("it was decided");
//! let why_not = explanation.why_not("large").expect("there is such a policy");
//! assert_eq!(why_not.words, "`$.input.amount` is 50, not `gt: 100`");
//! ```

mod explanation_completion;
mod condition;
mod explained_fact;
mod explained_let;
mod explained_value;
mod explanation_builder;
mod explainer;
mod explanation;
pub mod render;
mod step;
mod explanation_redaction;
mod why_not;
mod condition_phrases;
mod effect_phrases;

pub use crate::kernel::{
    Change, CostCorrected, DecisionStarted, ErrorMatched, Event, EventListener, FactStored, LimitChecked,
    MatchStatus, PolicyEvaluated, SkipReason,
};
pub use crate::matcher::Truth;
pub use crate::middleware::FactChange;
pub use condition::{
    ConditionForm, ConditionTest, ElementReason, ExplainedCommand, ExplainedCondition, ExplainedElement,
    ExplainedElements, ExplainedShell, FoundValue, TestOperator, TruthValue,
};
pub use explained_fact::ExplainedFact;
pub use explained_let::{ExplainedLet, LetState};
pub use explained_value::ExplainedValue;
pub use explainer::Explainer;
pub use explanation::{ExplainedCall, Explanation, NestedCall, UnmatchedLayer, VERSION};
pub use step::{ExplainedLimit, MatchResult, PolicyStep, UnmatchedPattern, ValueChange};
pub use why_not::{WhyNot, WhyNotReason};
