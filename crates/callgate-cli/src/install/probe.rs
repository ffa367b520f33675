//! Which tools of a server its rules leave: the server is started, as the client starts it, and lists its tools.

use std::sync::Arc;

use super::gateway_args::GatewayOptions;
use super::server_entry::ServerEntry;
use crate::exit::CommandError;
use crate::output::count_noun;
use callgate::engine::{self, Engine};
use callgate::safe_text::escape_controls;
use callgate::tools::ToolDescriptor;
use callgate_mcp::{Gateway, PinStatus, ServerSpec};
use tokio::runtime::Runtime;

/// As many tools that do not remain are named.
const MAX_NAMED: usize = 8;

/// Asks servers for their tools.
pub(super) struct Probe {
    runtime: Runtime,
}

impl Probe {
    pub(super) fn new() -> Result<Self, CommandError> {
        Ok(Self { runtime: crate::async_runtime::new_network_runtime()? })
    }

    /// How many tools of a server remain, as a line for people.
    pub(super) fn describe(&self, entry: &ServerEntry, program: &str, options: &GatewayOptions) -> String {
        match self.count(entry, program, options) {
            Ok(counted) => counted,
            Err(why) => format!("its tools are unknown: {why}"),
        }
    }

    fn count(&self, entry: &ServerEntry, program: &str, options: &GatewayOptions) -> Result<String, String> {
        let transport = entry.transport(program)?;
        let policies = match options.policies(entry.name()) {
            Some(policies) => Arc::clone(policies),
            None => engine::load_text("policies: []").map_err(|error| error.to_string())?,
        };
        let engine = Engine::new(policies);
        let session = engine.session();
        let gateway = Gateway::new(engine, [ServerSpec::new(entry.name(), transport)]).with_log(|_| {});
        let listed = self.runtime.block_on(Arc::new(gateway).list_tools());
        let tools: Vec<_> =
            listed.map_err(|error| error.to_string())?.into_iter().flat_map(|server| server.tools).collect();
        let remains = |(name, tool): &(String, callgate::json::Value)| {
            let is_accepted = options
                .lock()
                .is_none_or(|lock| lock.status(entry.name(), name, tool) == PinStatus::Accepted);
            is_accepted && !session.never_runs(&named_tool(entry.name(), name))
        };
        let gone: Vec<&str> =
            tools.iter().filter(|tool| !remains(tool)).map(|(name, _)| name.as_str()).collect();
        Ok(describe(tools.len(), &gone))
    }
}

/// A tool by its name, which is all that decides whether it never runs.
fn named_tool(server: &str, name: &str) -> ToolDescriptor {
    ToolDescriptor {
        name: name.to_owned(),
        description: None,
        input_schema: None,
        output_schema: None,
        annotations: None,
        server: Some(server.to_owned()),
        once: false,
        idempotent: false,
    }
}

fn describe(all: usize, gone: &[&str]) -> String {
    if gone.is_empty() {
        return format!("all of its {} remain", count_noun(all, "tool", "tools"));
    }
    let named = gone.iter().take(MAX_NAMED).map(|name| escape_controls(name)).collect::<Vec<_>>().join(", ");
    let more = match gone.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} of {all} tools remain, without {named}{more}", all - gone.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_do_not_remain_are_named_up_to_a_limit() {
        assert_eq!(describe(3, &[]), "all of its 3 tools remain");
        assert_eq!(describe(2, &["a"]), "1 of 2 tools remain, without a");
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        assert_eq!(describe(11, &many), "1 of 11 tools remain, without a, b, c, d, e, f, g, h and 2 more");
    }
}
