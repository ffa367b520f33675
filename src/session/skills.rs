//! Loads skills that the model asks for: resolves its prompt again, adds their tools, and refunds turns that
//! did nothing else.

use super::Session;
use crate::call::Outcome;
use crate::execution::BudgetAccount;
use crate::host::catch_panic;
use crate::json::Value;
use crate::lifecycle::{HookError, ModelConfig};

/// The number of turns of one run that are free because they loaded skills.
const FREE_TURNS: usize = 8;

/// The result of loading skills.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SkillAmendment {
    /// The configuration from now on, in place of the one that [`Session::begin`] returned.
    pub config: ModelConfig,
    /// The arguments of the calls that loaded them.
    pub loaded: Vec<Value>,
    /// Whether the model call that asked for them is not counted.
    pub refunded: bool,
}

impl Session {
    /// Finds the skills that a round's outcomes loaded, and resolves the prompt again if there are any:
    /// `reresolve` gets the arguments of those calls. Hooks and policies of the start see the new
    /// configuration, and its tools replace present ones of the same name.
    ///
    /// A turn that did nothing else is refunded to the budgets and to `iteration`; a skill that was loaded
    /// before in the run, and turns beyond eight, are not free.
    ///
    /// # Errors
    /// The prompt could not be resolved; nothing has changed.
    pub async fn apply_skill_loads<F, R>(
        &mut self,
        outcomes: &[Outcome],
        reresolve: F,
    ) -> Result<Option<SkillAmendment>, HookError>
    where
        F: FnOnce(Vec<Value>) -> R,
        R: Future<Output = Result<ModelConfig, HookError>>,
    {
        let Some(tool) = &self.skill_tool else { return Ok(None) };
        let loads = |outcome: &&Outcome| outcome.tool == *tool && outcome.output.is_some();
        let loaded: Vec<Value> = outcomes.iter().filter(loads).map(|outcome| outcome.input.clone()).collect();
        if loaded.is_empty() {
            return Ok(None);
        }
        let resolved = catch_panic(async { reresolve(loaded.clone()).await }).await;
        let config = resolved.unwrap_or_else(|_| Err(HookError::new("resolving the prompt panicked")))?;
        let config = self.configured(config, true);
        self.add_tools(config.tools.clone());
        let known = &self.progress.loaded;
        let new = |skill: &Value| !known.iter().any(|known| known == skill);
        let refunded =
            loaded.len() == outcomes.len() && loaded.iter().all(new) && self.progress.free_turns < FREE_TURNS;
        self.progress.loaded.extend(loaded.iter().cloned());
        if refunded {
            self.progress.free_turns += 1;
            self.refund().await;
        }
        Ok(Some(SkillAmendment { config, loaded, refunded }))
    }

    /// Refunds the last model call.
    async fn refund(&mut self) {
        if self.progress.last_turn.is_some() {
            self.progress.stats.iterations = self.progress.stats.iterations.saturating_sub(1);
            self.release_last_turn().await;
        }
    }

    /// Releases the budget reservation of the last model call.
    pub(super) async fn release_last_turn(&mut self) {
        let Some(reservation) = self.progress.last_turn.take() else { return };
        let scope = self.scope();
        let Self { shared, state, run, .. } = self;
        let (services, kernel) = (&shared.services, shared.kernel(&scope.layers));
        let budgets = BudgetAccount { services, kernel, run, conversation: &scope.conversation };
        budgets.release(state, reservation).await;
    }
}
