//! `callgate proxy`: the MCP gateway.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::check;
use super::exit::{Exit, Stop};
use super::files::read_context;
use super::output::{complain_of_rules, warn};
use super::state::State;
use super::watching;
use crate::engine::{self, Change, Engine};
use crate::mcp::{ChildSpec, Gateway, Reach, ServerSpec};

/// Stand between an MCP client and its servers, and put every tool call through the policies.
///
/// A client that starts its servers as processes starts this in their place: `callgate proxy --policies my-rules -- SERVER COMMAND`. All
/// that the client and the server say passes as it is, but for tool calls: each is judged, and one that policies are against never
/// reaches the server. Changed rules are taken in while it runs.
///
/// Exit status: 0 the client is gone, 1 the rules hold errors, 2 wrong usage, or the server can't be started.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate proxy --policies policies/filesystem -- npx -y @modelcontextprotocol/server-filesystem ~/work\n  \
    callgate proxy --policies my-rules --context context.json --state file:state.db -- my-server --flag")]
pub(super) struct Proxy {
    /// Rules files, and directories to search for them. Without any, every call passes
    #[arg(long, value_name = "PATH", num_args = 1..)]
    policies: Vec<PathBuf>,
    /// A JSON object that is the context of every call: who the client acts for, and whatever else the rules ask for
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// Keep questions to people, limits and what is remembered in a state: `file:PATH`, made if it is not there, or `memory:`
    #[arg(long, value_name = "URL", default_value = "memory:")]
    state: String,
    /// What policies call the server (`server:` in `match`)
    #[arg(long, value_name = "NAME", default_value = "server")]
    name: String,
    /// The server's command, after `--`
    #[arg(value_name = "SERVER COMMAND", last = true, required = true)]
    command: Vec<String>,
}

pub(super) fn proxy(arguments: &Proxy) -> Result<Exit, Stop> {
    let context = arguments.context.as_deref().map(read_context).transpose()?;
    let chains = if arguments.policies.is_empty() {
        engine::load_text("policies: []")
    } else {
        engine::load(&arguments.policies)
    };
    let chains = match chains {
        Ok(chains) => chains,
        Err(error) => {
            complain_of_rules(error.built());
            return Ok(check::exit(&error.built().diagnostics));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Stop::trouble(format!("no runtime for the gateway: {error}")))?;
    let state = State::of_gateway(&arguments.state, &runtime)?;
    let mut builder = Engine::builder(chains).store(state.store);
    if let Some(keys) = state.keys {
        builder = builder.keys(keys);
    }
    let engine = builder.build();
    let server = ServerSpec { name: arguments.name.clone(), prefix: None, reach: reach(arguments)? };
    let gateway = Gateway::new(engine.clone(), [server])
        .with_context(context.map_or(Value::Null, Value::Object))
        .logging(|message| warn(message));
    let gateway = Arc::new(match answered_in(&arguments.state) {
        Some(state) => gateway.answered_in(state),
        None => gateway,
    });
    let _watch = match arguments.policies.is_empty() {
        true => None,
        false => Some(watching::begin(&engine, &arguments.policies)?),
    };
    tell_of_changes(&engine, &gateway, runtime.handle());
    let served = runtime.block_on(async {
        tokio::select! {
            served = gateway.serve_lines(tokio::io::stdin(), tokio::io::stdout()) => served,
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    });
    // Whoever reads stdin may never come back.
    runtime.shutdown_background();
    served.map(|()| Exit::Done).map_err(Stop::Trouble)
}

/// Where people can answer: the state by a name that holds in every directory.
fn answered_in(state: &str) -> Option<String> {
    let path = std::path::absolute(state.strip_prefix("file:")?).ok()?;
    Some(format!("file:{}", path.display()))
}

fn reach(arguments: &Proxy) -> Result<Reach, Stop> {
    let Some((command, args)) = arguments.command.split_first() else {
        return Err(Stop::trouble("which server? name its command after `--`"));
    };
    let spec = ChildSpec { command: command.clone(), args: args.to_vec(), env: Vec::new(), cwd: None };
    Ok(Reach::Child(spec))
}

/// Clients hear of rules that were taken in, for they may be shown other tools by them.
fn tell_of_changes(engine: &Engine, gateway: &Arc<Gateway>, runtime: &tokio::runtime::Handle) {
    let (gateway, runtime) = (Arc::downgrade(gateway), runtime.clone());
    engine.on_change(move |change| {
        if let (Change::TakenIn { .. }, Some(gateway)) = (change, gateway.upgrade()) {
            runtime.spawn(async move { gateway.tools_changed().await });
        }
    });
}
