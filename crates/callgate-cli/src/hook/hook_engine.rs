//! What decides events: rules, state and logs, opened from the arguments of `callgate hook`.

use std::path::PathBuf;
use std::sync::Arc;

use super::HookArgs;
use super::decision::{HookRequest, failure, verdict};
use super::default_state::default_state_url;
use super::file_identity::FileIdentity;
use crate::exit::CommandError;

use crate::json_inputs::read_context;
use crate::open_logs::OpenLogs;
use crate::output::print_build_errors;
use callgate::engine::{Engine, RejectionReason};
use callgate::host::StateStore;
use callgate::reload::CurrentRules;
use callgate_hooks::Answer;
use callgate_policy_tests::PolicyTests;
use callgate_state::OpenStateStore;
use tokio::runtime::Runtime;

/// Rules, state and logs of hooks.
pub(super) struct HookEngine {
    engine: Engine,
    store: Arc<dyn StateStore>,
    context: Option<PathBuf>,
    rules: CurrentRules,
    /// The files of the state store: after an exchange, this process would go on with the old ones.
    state_files: Vec<FileIdentity>,
    // After the engine, which writes to them.
    _logs: OpenLogs,
    runtime: Runtime,
}

impl HookEngine {
    /// Opens what the arguments name.
    pub(super) fn open(arguments: &HookArgs, runtime: Runtime) -> Result<Self, CommandError> {
        let rules = CurrentRules::load(&arguments.policies, &PolicyTests).map_err(|why| {
            if let RejectionReason::Errors(built) = &why {
                print_build_errors(built);
            }
            CommandError::new("the rules have errors; `callgate check` shows them")
        })?;
        let url = arguments.state.clone().map_or_else(default_state_url, Ok)?;
        if url == "memory:" {
            return Err(CommandError::new("`memory:` ends with each event; use `file:PATH`"));
        }
        let state = OpenStateStore::open_or_new(&url, &runtime)?;
        let state_files = state.files().into_iter().map(FileIdentity::new).collect();
        let logs = OpenLogs::open(&arguments.log.settings()?, Some(&state.keys))?;
        let engine = logs.observe(Engine::builder(Arc::clone(rules.policies())));
        let engine = engine.store(Arc::clone(&state.store)).keys(state.keys).build();
        let context = arguments.context.clone();
        Ok(Self { engine, store: state.store, context, rules, state_files, _logs: logs, runtime })
    }

    /// Whether the files are still those that were opened.
    pub(super) fn is_current(&self) -> bool {
        self.state_files.iter().all(FileIdentity::is_current) && self.rules.is_current()
    }

    /// The answer to an event.
    pub(super) fn answer(&self, request: &HookRequest) -> Answer {
        let given = self.context.as_deref().map(read_context).transpose();
        let decided = given.and_then(|given| {
            let decision = verdict(&self.engine, Arc::clone(&self.store), request, given.unwrap_or_default());
            self.runtime.block_on(decision).map_err(CommandError::Message)
        });
        match decided {
            Ok(verdict) => request.agent.answer(&request.event, &verdict),
            Err(error) => undecided(request, &error),
        }
    }
}

/// The answer to an event that could not be decided.
pub(super) fn undecided(request: &HookRequest, error: &CommandError) -> Answer {
    let reason = match error {
        CommandError::Message(reason) => format!("Callgate can't decide this: {reason}"),
        CommandError::OutputClosed => "stdout is closed".to_owned(),
    };
    failure(request.agent, &request.event, &reason)
}
