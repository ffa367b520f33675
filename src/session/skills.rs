//! Skills that the model loads on its way: its prompt is resolved anew, the tools that come with them are armed, and the turn that did
//! nothing else is free, so many times.

use super::Session;
use super::spending::Spending;
use crate::call::Outcome;
use crate::host::guarded;
use crate::json::Value;
use crate::lifecycle::Config;

/// How many turns of one run are free because they loaded skills.
const FREE_TURNS: usize = 8;

/// What came of loading skills.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillAmendment {
    /// The configuration from now on, in the place of the one that [`Session::begin`] gave.
    pub config: Config,
    /// The arguments of the calls that loaded them.
    pub loaded: Vec<Value>,
    /// Whether the call of the model that asked for them does not count.
    pub refunded: bool,
}

impl Session {
    /// Looks among the outcomes of a round for skills that were loaded, and resolves the prompt anew where there are any: `reresolve` is
    /// given the arguments of those calls. Hooks and policies of the beginning see what it gives, and its tools shadow those that
    /// were there.
    ///
    /// A turn that did nothing else is given back to the budgets and to `iteration`; a skill that was loaded before in the run, and
    /// what goes beyond eight such turns, is not free. Errors: the prompt could not be resolved; nothing has changed.
    pub async fn apply_skill_loads<F, R>(
        &mut self,
        outcomes: &[Outcome],
        reresolve: F,
    ) -> Result<Option<SkillAmendment>, String>
    where
        F: FnOnce(Vec<Value>) -> R,
        R: Future<Output = Result<Config, String>>,
    {
        let Some(tool) = &self.skill_tool else { return Ok(None) };
        let loads = |outcome: &&Outcome| outcome.tool == *tool && outcome.output.is_some();
        let loaded: Vec<Value> = outcomes.iter().filter(loads).map(|outcome| outcome.input.clone()).collect();
        if loaded.is_empty() {
            return Ok(None);
        }
        let resolved = guarded(async { reresolve(loaded.clone()).await }).await;
        let config = resolved.unwrap_or_else(|_| Err("resolving the prompt panicked".to_owned()))?;
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

    /// The last call of the model does not count.
    async fn refund(&mut self) {
        let Some(taken) = self.progress.last_turn.take() else { return };
        self.progress.stats.iterations = self.progress.stats.iterations.saturating_sub(1);
        let (layers, conversation) = (self.layers(), self.conversation());
        let Self { shared, state, run, .. } = self;
        let spending = Spending { shared, kernel: shared.kernel(&layers), run, conversation: &conversation };
        spending.give_back(state, taken).await;
    }
}
