//! The lifecycle of a run around its calls: its start, the model's configuration and usage, and whether it
//! continues.

use std::sync::Arc;
use std::time::Instant;

use super::Session;
use crate::call::{Amount, Outcome, RunShadowEffect, ToolCall};
use crate::execution::{BudgetAccount, BudgetExceeded, BudgetReservation, OfferedTools, model_usage};
use crate::host::EngineEventKind;
use crate::kernel::{Kernel, run_policies};
use crate::lifecycle::{Middleware, ModelConfig, RunContext, RunEnd, RunPhase, RunStats, Usage};
use crate::message::History;
use crate::middleware::{BudgetAmounts, OnBudgetExceeded, StreamFilter, StreamShadow};

/// The progress of a run.
#[derive(Debug, Default)]
pub(super) struct RunProgress {
    pub(super) started: Option<Instant>,
    pub(super) session_begun: bool,
    /// What the session was before its first run here is unknown.
    pub(super) is_past_forgotten: bool,
    pub(super) stats: RunStats,
    pub(super) ended: bool,
    /// The host's configuration has tools: the model may call no others than it was offered.
    lists_tools: bool,
    /// Whether the turn was captured.
    pub(super) captured: bool,
    /// The filter of the model's stream, from its first chunk to the end of its turn.
    pub(super) filter: Option<StreamFilter>,
    /// The stream policies in shadow mode.
    pub(super) stream_shadows: Vec<(RunShadowEffect, StreamShadow)>,
    /// Usage of models that has not been counted yet.
    unpaid: Vec<Usage>,
    /// The budget reservation of the last model call.
    pub(super) last_turn: Option<BudgetReservation>,
    /// That reservation is for a model call that has not begun yet.
    pub(super) is_turn_reserved: bool,
    /// The skills that were loaded in this run.
    pub(super) loaded: Vec<crate::json::Value>,
    /// The number of model calls that were refunded for loading skills.
    pub(super) free_turns: usize,
}

impl Session {
    /// The run as hooks see it. A clone of it can end the run from anywhere ([`RunContext::abort`]); each run
    /// but the first has its own, from [`begin`](Self::begin) on.
    pub fn run(&self) -> &RunContext {
        &self.run
    }

    /// Begins a run: hooks see the session and the configuration, and policies decide last.
    ///
    /// # Errors
    /// How the run ends before it has begun.
    pub fn begin(&mut self, config: ModelConfig) -> Result<ModelConfig, RunEnd> {
        // A run that ended with pending calls continues.
        let is_next = self.progress.ended && !self.state.is_suspended();
        if is_next {
            self.state.start_new_run();
        }
        let is_first = self.progress.started.is_none();
        let RunProgress { session_begun, is_past_forgotten, .. } = self.progress;
        self.progress = RunProgress { session_begun, is_past_forgotten, ..RunProgress::default() };
        if is_past_forgotten && (is_first || is_next) {
            self.state.mark_run_known();
        }
        self.progress.started = Some(Instant::now());
        let name = || self.shared.services.unique_name();
        let context = self.run.context.clone();
        let mut run = match is_first {
            true => self.run.with_ids(name(), name()),
            false => RunContext::new(name(), name(), context),
        };
        run.conversation_id = Some(self.conversation());
        self.run = run;
        (self.progress.lists_tools, self.offered) = (!config.tools.is_empty(), None);
        if let Some(name) =
            self.name.clone().filter(|_| self.state.document().get("conversationId").is_none())
        {
            self.state.set_run_info("conversationId", name.into());
        }
        self.set_run_members(RunPhase::Init);
        if !std::mem::replace(&mut self.progress.session_begun, true) {
            self.each_hook("on_session_start", |hook, run| hook.on_session_start(run));
        }
        let config = self.configured(config, true);
        self.each_hook("on_start", |hook, run| hook.on_start(run));
        self.may_go_on().map(|()| config)
    }

    /// Decides whether the run continues with a model call, and reserves it in budgets: for frameworks that ask for this before they
    /// make the configuration of the call. The next [`before_model`](Self::before_model) uses the reservation; without one,
    /// [`end`](Self::end) releases it.
    ///
    /// # Errors
    /// The run ends here.
    pub async fn reserve_model_call(&mut self, messages: &History) -> Result<(), RunEnd> {
        self.run.iteration = self.progress.stats.iterations;
        self.set_run_members(RunPhase::BeforeModel);
        self.may_go_on()?;
        if !self.progress.is_turn_reserved {
            self.hooks_go_on(messages)?;
            self.settle_usage(Some(BudgetAmounts {
                iterations: Some(Amount::from_whole(1)),
                ..BudgetAmounts::default()
            }))
            .await?;
            self.progress.is_turn_reserved = true;
        }
        Ok(())
    }

    /// The configuration of the next model call: that of [`begin`](Self::begin) with the present messages.
    ///
    /// # Errors
    /// The run ends here.
    pub async fn before_model(&mut self, config: ModelConfig) -> Result<ModelConfig, RunEnd> {
        self.reserve_model_call(&config.messages).await?;
        self.progress.is_turn_reserved = false;
        self.progress.lists_tools |= !config.tools.is_empty();
        let config = self.configured(config, false);
        let lists_tools = self.progress.lists_tools || !config.tools.is_empty();
        self.offered = lists_tools.then(|| Arc::new(OfferedTools::new(&config.tools)));
        self.each_hook("before_completion", |hook, run| hook.before_completion(run, &config.messages));
        self.may_go_on()?;
        self.progress.stats.iterations += 1;
        self.progress.filter = None;
        self.progress.stream_shadows = Vec::new();
        self.set_run_members(RunPhase::ModelStream);
        Ok(config)
    }

    /// Counts the usage of one model call, if its last chunk does not contain it.
    pub fn report_usage(&mut self, usage: Usage) {
        let all = &mut self.progress.stats.usage;
        all.prompt_tokens = all.prompt_tokens.saturating_add(usage.prompt_tokens);
        all.completion_tokens = all.completion_tokens.saturating_add(usage.completion_tokens);
        all.total_tokens = Some(all.total_tokens.unwrap_or_default().saturating_add(usage.tokens()));
        if let Some(cost) = usage.cost {
            all.cost = Some(all.cost.unwrap_or_default() + cost);
        }
        self.progress.unpaid.push(usage);
        self.each_hook("on_usage", |hook, run| hook.on_usage(run, &usage));
    }

    /// Counts the usage of models, checks that budgets let the run continue, and reserves the next use. Errors:
    /// they do not.
    pub(super) async fn settle_usage(&mut self, next: Option<BudgetAmounts>) -> Result<(), RunEnd> {
        let unpaid = std::mem::take(&mut self.progress.unpaid);
        let scope = self.scope();
        let Self { shared, state, run, progress, listener, task, .. } = self;
        let kernel = Kernel { listener: listener.as_deref(), task, ..shared.kernel(&scope.layers) };
        let budgets =
            BudgetAccount { services: &shared.services, kernel, run, conversation: &scope.conversation };
        for usage in unpaid {
            budgets.spend(state, model_usage(&usage)).await;
        }
        let Some(next) = next else { return Ok(()) };
        // If only tool calls are denied, the model may end by itself.
        let mut shadows = Vec::new();
        let reserved =
            budgets.reserve(state, next, |at_bound| at_bound != OnBudgetExceeded::Deny, &mut shadows).await;
        let ended = match reserved {
            Ok(reserved) => {
                progress.last_turn = Some(reserved);
                Ok(())
            }
            Err(BudgetExceeded { at_bound: OnBudgetExceeded::Finish, reason, .. }) => {
                Err(RunEnd::Finished { reason: Some(reason.code), content: reason.message })
            }
            Err(BudgetExceeded { reason, .. }) => {
                state.halt(&reason.message);
                Err(RunEnd::Aborted { reason: reason.message })
            }
        };
        let would = |shadow: BudgetExceeded| {
            let verdict = shadow.verdict();
            Some(run_policies::shadow(shadow.policy.find(&scope.layers)?, verdict, Some(shadow.reason)))
        };
        self.record_shadows(shadows.into_iter().filter_map(would).collect());
        ended
    }

    /// The model requests these calls. If the run is aborted by now, none of them runs. Policies that halt the
    /// run halt each call, with their reason.
    pub(super) fn before_calls(&mut self, calls: &[ToolCall]) {
        self.set_run_members(RunPhase::BeforeTools);
        for hook in &self.hooks {
            let result = self
                .hooks()
                .call(hook, "after_tool_request", |hook, run| hook.after_tool_request(run, calls));
            match result {
                Some(None) => {}
                Some(Some(reason)) => self.run.abort(reason),
                None => self.run.abort(format!("the hook `{}` failed", hook.id())),
            }
        }
        self.halt_if_aborted();
    }

    /// All calls of a round have their outcomes.
    pub(super) fn after_calls(&mut self, outcomes: &[Outcome]) {
        self.set_run_members(RunPhase::AfterTools);
        self.each_hook("after_tools", |hook, run| hook.after_tools(run, outcomes));
    }

    /// Notifies hooks that the host has compacted the history, if that changed it.
    pub fn compacted(&mut self, before: &History, after: &History) {
        if before != after {
            self.each_hook("after_compaction", |hook, run| hook.after_compaction(run, before, after));
        }
    }

    /// The model has ended its last turn.
    pub fn completed(&mut self, history: &History) {
        self.each_hook("after_completion", |hook, run| hook.after_completion(run, history));
    }

    /// The configuration after hooks and policies. Changes that policies in shadow mode would have made are
    /// recorded.
    pub(super) fn configured(&mut self, config: ModelConfig, at_init: bool) -> ModelConfig {
        let (config, shadows) = self.configure(config, at_init);
        self.record_shadows(shadows);
        config
    }

    /// The configuration after hooks and policies, and the changes that policies in shadow mode would have
    /// made.
    pub(super) fn configure(
        &self,
        mut config: ModelConfig,
        at_init: bool,
    ) -> (ModelConfig, Vec<RunShadowEffect>) {
        for hook in &self.hooks {
            let patch = self.hooks().call(hook, "on_config", |hook, run| hook.on_config(run, &config));
            if let Some(Some(patch)) = patch {
                config = config.with_patch(patch);
            }
        }
        let layers = self.layers();
        let kernel = self.kernel(&layers);
        let shadows = kernel.configure(&mut config, &self.run.context, &self.state, at_init);
        (config, shadows)
    }

    /// Errors: a hook ends the run.
    fn hooks_go_on(&self, history: &History) -> Result<(), RunEnd> {
        if self.run.iteration == 0 {
            return Ok(());
        }
        let stops = |hook: &&Arc<dyn Middleware>| {
            self.hooks()
                .call(hook, "goes_on", |hook, run| !hook.should_continue(run, history))
                .unwrap_or(false)
        };
        match self.hooks.iter().find(stops) {
            Some(hook) => {
                let reason = Some("stopped".to_owned());
                Err(RunEnd::Finished { reason, content: format!("`{}` has ended the run", hook.id()) })
            }
            None => Ok(()),
        }
    }

    /// Errors: the run has ended, by a policy that halts it now, or from elsewhere before.
    pub(super) fn may_go_on(&mut self) -> Result<(), RunEnd> {
        if let Some(reason) = self.run.abort_reason().or_else(|| self.state.halt_message().map(str::to_owned))
        {
            return Err(RunEnd::Aborted { reason });
        }
        let layers = self.layers();
        let (halted, shadows) = self.kernel(&layers).halts_run(&self.run.context, &self.state);
        self.record_shadows(shadows);
        match halted {
            Some(reason) => {
                self.state.halt(&reason.message);
                Err(RunEnd::Aborted { reason: reason.message })
            }
            None => Ok(()),
        }
    }

    /// Records what policies in shadow mode would have done to the run, and notifies observers; of each the
    /// same only once.
    pub(super) fn record_shadows(&mut self, shadows: Vec<RunShadowEffect>) {
        for shadow in shadows {
            let same = |known: &RunShadowEffect| (&known.id, known.verdict) == (&shadow.id, shadow.verdict);
            if !self.progress.stats.shadows.iter().any(same) {
                self.notify_of_run(EngineEventKind::RunShadow(&shadow));
                self.progress.stats.shadows.push(shadow);
            }
        }
    }

    /// Sets the members of the session that say how far the run is.
    fn set_run_members(&mut self, phase: RunPhase) {
        self.run.phase = phase;
        // A host that only makes calls sets them itself.
        if self.progress.started.is_none() {
            return;
        }
        let RunContext { request_id, stream_id, iteration, chunk_index, .. } = &self.run;
        for (key, value) in [
            ("requestId", request_id.clone().into()),
            ("streamId", stream_id.clone().into()),
            ("phase", phase.name().into()),
            ("iteration", (*iteration).into()),
            ("chunkIndex", (*chunk_index).into()),
        ] {
            self.state.set_run_info(key, value);
        }
    }

    /// Calls one method of every hook. A hook that panics changes nothing, and is reported.
    pub(super) fn each_hook(&self, point: &'static str, method: impl Fn(&dyn Middleware, &RunContext)) {
        for hook in &self.hooks {
            self.hooks().call(hook, point, &method);
        }
    }
}
