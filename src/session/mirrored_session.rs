//! A session that evaluates the calls of another one again: it takes over what the host said of them.

use super::Session;
use crate::execution::CompletedCall;

impl Session {
    /// Takes over the surroundings of another session's call: tools, lower layers, task, context and the information about the run.
    pub(crate) fn mirror(&mut self, call: &CompletedCall) {
        self.tools = Some(call.tools.clone());
        self.lower_layers.clone_from(&call.lower_layers);
        self.task.clone_from(&call.task);
        self.run.request_id.clone_from(&call.run);
        self.run.iteration = call.iteration;
        self.run.context.clone_from(&call.context);
        self.calls.context.clone_from(&call.context);
        for (key, value) in &call.run_info {
            self.state.set_run_info(key, value.clone());
        }
    }
}
