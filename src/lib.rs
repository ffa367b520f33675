//! Callgate is a policy engine between AI agents and their tools. Policies in YAML say who may call which tool, with which
//! arguments and how often, and which calls need the approval of a human. This crate evaluates tool calls against them inside
//! your program. The command line is the crate `callgate-cli`, the MCP gateway `callgate-mcp`.
//!
//! # From rules to a decision
//!
//! An [`Engine`] has the rules. [`Engine::decide`] evaluates a call and executes nothing:
//!
//! ```
//! use callgate::json::json;
//! use callgate::{Effect, Engine, SessionState, ToolCall};
//!
//! let engine = Engine::from_text(
//!     "policies:
//!        - id: no-large-refunds
//!          match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
//!          deny: { message: 'At most 100, not {{ input.amount }}' }",
//! )?;
//! let call = ToolCall::new("c1", "refund", json!({ "amount": 250 }));
//! let decision = engine.decide(&call, &SessionState::default());
//! assert_eq!(decision.effect(), Effect::Deny);
//! assert_eq!(decision.reason().message, "At most 100, not 250");
//! # Ok::<(), callgate::LoadError>(())
//! ```
//!
//! # Execute, request an approval, resume
//!
//! A [`Session`] is one agent run. It executes allowed calls with your [`ToolExecutor`], counts limits, redacts results, and
//! suspends calls that need an approval. Nothing waits in memory: the request and its answer are part of the
//! [history](message), and any process that has both the history and the [`Keys`] resumes the run.
//!
//! ```
//! use callgate::json::json;
//! use callgate::message::{Dialect, History, approval_response};
//! use callgate::{ClosureTools, Engine, Keys, OutcomeKind};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let rules = callgate::load_text(
//!     "policies:
//!        - id: refunds-need-approval
//!          match: refund
//!          approval: { message: 'Refund {{ input.amount }}?', expires: 24h }",
//! )?;
//! let engine = Engine::builder(rules).keys(Keys::parse(&"5a".repeat(32))?).build();
//! let tools = ClosureTools::new().with_tool("refund", async |call| Ok(json!({ "refunded": call.input["amount"] })));
//!
//! // The model asks for a refund. The call is suspended, with a request in the history.
//! let mut history = History::read(Dialect::OpenaiChat, &json!([
//!     { "role": "user", "content": "refund order 7" },
//!     { "role": "assistant", "content": null, "tool_calls": [
//!         { "id": "c1", "type": "function", "function": { "name": "refund", "arguments": "{\"amount\":250}" } } ] } ]))?;
//! let round = engine.session().with_name("chat 7").run_round(&mut history, &tools).await?;
//! assert!(round.is_suspended());
//!
//! // Hours later, perhaps elsewhere: an approver answers, and the call runs once.
//! let request = history.find_approval_requests()[0].clone();
//! history.append_approval_response(approval_response(request.approval_id, true))?;
//! let round = engine.session().with_name("chat 7").resume(&mut history, &tools).await?;
//! assert_eq!(round.outcomes[0].outcome, OutcomeKind::Executed);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(run()).unwrap();
//! ```
//!
//! # Where to go from here
//!
//! | to | use |
//! | --- | --- |
//! | load rules, and report their errors | [`load`], [`load_text`], [`LoadError`], [`diagnostic`] |
//! | run your own code around calls | [`Middleware`](lifecycle::Middleware) and [`ToolHooks`](lifecycle::ToolHooks) in [`lifecycle`] |
//! | run calls of several clients or an SDK's loop | [`ConcurrentSession`], [`SdkSession`] |
//! | show requests to approvers, and record their answers | [`approval::Inbox`], [`card`] |
//! | share limits, caches and approvals between processes | [`state`], and the crates `callgate-sqlite` for a file, `callgate-postgres` and `callgate-redis` for several hosts |
//! | log outcomes and approvals, or every evaluation of a policy | [`Observer`], [`explain::EventListener`] |
//! | evaluate calls under candidate rules, without effect | [`Candidate`] |
//! | reload rules while calls run | [`reload`] |
//! | run policy tests, or lints | the crates `callgate-policy-tests` and `callgate-lint` |
//! | report what a change of rules means | the crate `callgate-analysis` |
//! | show why a call was decided as it was | [`explain`] |
//!
//! # Features
//!
//! All features are off by default.
//!
//! - `json-schema` checks arguments against JSON Schemas. Without it, tools and rules that have a schema are rejected.
//! - `scripts` compiles the expressions and scripts of rules: `expr`, computed placeholders, `script`, `around` and `functions`. Without it,
//!   rules that have some are rejected.
//! - `watch` reloads rules when their files change: `reload::RulesWatcher`.
//! - `snippets` shows the lines of the rules files in error messages, with the problem underlined.
//!
//! # Stability
//!
//! Versions follow semantic versioning. What this documentation shows is the public API; every change of it is in the changelog, and
//! is made only with a new minor version before 1.0, and a new major version after it. Items that are hidden here serve the other
//! Callgate crates of the same version and can change at any time. Enums and structs that grow are `#[non_exhaustive]`. The policy
//! language, the JSON forms and the reason codes are covered by the same promise. A newer Rust version than the stated one is
//! required only by a new minor version.

// The modules are listed in the order in which a policy, and then a call, passes through them. A module uses only modules listed
// above it; tests/layering.rs enforces this.

// Base types that every module uses.
#[doc(hidden)]
pub mod file_access;
mod unicode;
mod regex_compiler;
mod pattern_analysis;
mod string_search;
#[doc(hidden)]
pub mod name_pattern;
#[doc(hidden)]
pub mod work_limit;
pub mod json;
pub mod diagnostic;
#[doc(hidden)]
pub mod time;
#[doc(hidden)]
pub mod seal;
#[doc(hidden)]
pub mod principal;
#[doc(hidden)]
pub mod call;
#[doc(hidden)]
pub mod host;
pub mod state;
pub mod message;

// Reading: rules files → document trees with positions.
#[doc(hidden)]
pub mod source;
mod tool_result;
#[doc(hidden)]
pub mod safe_text;
#[doc(hidden)]
pub mod durations;
pub mod card;

// The parts of a policy.
#[doc(hidden)]
pub mod address;
#[doc(hidden)]
pub mod tokens;
#[doc(hidden)]
pub mod redaction;
#[doc(hidden)]
pub mod path;
#[doc(hidden)]
pub mod script;
#[doc(hidden)]
pub mod template;
#[doc(hidden)]
pub mod argument_schema;
#[doc(hidden)]
pub mod tools;
pub mod approval;
pub mod lifecycle;
#[doc(hidden)]
pub mod rules_schema;
#[doc(hidden)]
pub mod matcher;
#[doc(hidden)]
pub mod middleware;

// Compiling: document trees → bundle → plan → compiled policies.
#[doc(hidden)]
pub mod policy;

// Running: one call, one agent run, and the engine for programs that embed Callgate.
#[doc(hidden)]
pub mod kernel;
pub mod explain;
mod execution;
#[doc(hidden)]
pub mod session;
#[doc(hidden)]
pub mod engine;

// Hot reload of rules.
pub mod reload;

pub use call::{
    Amount, AuditEntry, CallRecord, CallRecordError, Effect, Outcome, OutcomeKind, Phase, PolicyTrace,
    Reason, RecordedResult, RunShadowEffect, SessionState, Task, TaskTurn, ToolCall, Verdict, reason_code,
};
pub use engine::{
    Candidate, CandidateOptions, CandidateSummary, Engine, EngineBuilder, LoadError, OnFullQueue, load,
    load_layer, load_text,
};
pub use host::{
    BoxFuture, CacheHit, CallDecided, CallIdentity, CandidateDecided, CandidateDifference, Clock,
    ClosureTools, ComparedDecision, EngineEvent, EngineEventKind, HookFailure, LimitRefused, ManualClock,
    NotificationReport, Observer, ObserverError, RecordedAnswer, RulesEvent, RunIdentity, SystemClock,
    ToolCallSpan, ToolCallStart, ToolError, ToolExecutor, ToolResponse,
};
pub use kernel::Decision;
pub use policy::{
    CompiledPolicies, LoadedBundle, Mode, Policy, build as load_bundle, build_texts as load_bundle_texts,
};
pub use principal::PrincipalComparison;
pub use seal::{EncryptError, KEYS_VARIABLE, KeyError, Keys, SealError, SecretFileError};
pub use session::{
    ConcurrentSession, DeferredTasks, Evaluation, ResumeError, Round, SdkCallResult, SdkSession,
    SdkSessionGuard, Session, SkillAmendment,
};
pub use tools::{ToolDescriptor, ToolListError, parse_list as parse_tools};

#[cfg(doctest)]
mod doc_examples;
