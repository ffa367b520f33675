//! `callgate proxy`: the MCP gateway.

use std::path::PathBuf;
use std::sync::Arc;

use super::candidate_args::CandidateArgs;
use super::exit::{CommandError, ExitStatus};
use super::gateway_servers::{
    FollowingGateway, GatewayServers, check_caller_tokens, notify_clients_of_reloads,
};
use super::json_inputs::read_context;
use super::log_args::LogArgs;
use super::metrics_args::MetricsArgs;
use super::notify_args::{self, NotifyArgs};
use super::observability::Observability;
use super::open_logs::OpenLogs;
use super::output::{print_warning, quote_shell_word};
use super::pins::read_signers;
use super::proxy_http::{self, HttpArgs};
use super::published_rules::{self, FollowerState, PublishedRulesArgs};
use super::server_args::{ServerArgs, ServerSetup, merge_context};
use super::server_list_file::{self, ServersError};
use super::shutdown_signal::{ReadUntilShutdown, wait_for_shutdown};
use callgate::engine::Engine;
use callgate_http::HealthProbe;
use callgate_mcp::{Gateway, TaskSource};
use callgate_state::{OpenStateStore, is_shared};
use callgate_telemetry::Metrics;

/// The name of the gateway's own rules in metrics.
const GATEWAY_BUNDLE: &str = "gateway";

/// Run an MCP gateway: evaluate every tool call between an MCP client and its servers against the policies.
///
/// A client that starts its servers as processes starts the gateway instead: `callgate proxy --policies my-rules -- SERVER COMMAND`.
/// Messages are forwarded unchanged, except for tool calls: each is evaluated, and a denied call never reaches the server. Rules are
/// reloaded when their files change (hot reload).
///
/// Exit status: 0 the client has disconnected, 1 the rules have errors, 2 usage error, or a server can't be started.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate proxy --policies policies/filesystem -- npx -y @modelcontextprotocol/server-filesystem ~/work\n  \
    callgate proxy --policies my-rules --context context.json --state file:state.db -- my-server --flag")]
pub(super) struct ProxyArgs {
    /// Rules files, or directories to search for them; or the URL of a published bundle: `https://…`, `oci://HOST/REPOSITORY:TAG` or
    /// `s3://BUCKET/KEY`. Without any, every call is allowed
    #[arg(long, value_name = "PATH", num_args = 1..)]
    policies: Vec<PathBuf>,
    #[command(flatten)]
    published: PublishedRulesArgs,
    /// A JSON object, the context of every call: the client's principal, and other values that the rules use
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// Persist approvals, limits and session state in a state store: `file:PATH`, created if missing, `postgres://…` or `rediss://…`,
    /// which several hosts can share, or `memory:` [default: memory:]
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// The session of the client's calls. With `--state file:PATH`, labels, facts and limits per run continue from an earlier gateway
    /// with the same session
    #[arg(long, value_name = "NAME", conflicts_with = "listen")]
    session: Option<String>,
    /// What the user asked for, which policies read as `$.task`: FILE, or `fd:N` for an inherited descriptor. Read for each call; the host
    /// replaces it when the user writes. Text is one message, a `.json` file or a descriptor has a list of them
    #[arg(long, value_name = "FILE", conflicts_with = "listen", value_parser = parse_task_source)]
    task: Option<Box<TaskSource>>,
    /// Show and run only tools that match this lock file; see `callgate pins`
    #[arg(long, value_name = "FILE")]
    pins: Option<PathBuf>,
    /// Require a signature of the lock file by one of the public keys in FILE, one a line; see `callgate pins key`
    #[arg(long, value_name = "FILE")]
    pins_signed_by: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    notify: NotifyArgs,
    #[command(flatten)]
    candidate: CandidateArgs,
    #[command(flatten)]
    listening: HttpArgs,
    #[command(flatten)]
    servers: ServerArgs,
}

fn parse_task_source(text: &str) -> Result<Box<TaskSource>, std::num::ParseIntError> {
    TaskSource::parse(text).map(Box::new)
}

pub(super) fn proxy(arguments: &ProxyArgs) -> Result<ExitStatus, CommandError> {
    let ServerSetup::Config(config) = arguments.servers.read_config()? else {
        return Ok(ExitStatus::Failure);
    };
    let has_caller_tokens = arguments.listening.authenticates();
    check_caller_tokens(&config, has_caller_tokens).map_err(CommandError::Message)?;
    let given = arguments.context.as_deref().map(read_context).transpose()?;
    let context = merge_context(given, config.context.clone());
    let policies = [arguments.policies.clone(), config.policies.clone()].concat();
    let mut source = arguments.published.open(&policies)?;
    let rules = match source.load()? {
        Ok(rules) => rules,
        Err(exit) => return Ok(exit),
    };
    let notifications = match arguments.notify.read() {
        Ok(file) => file,
        Err(exit) => return Ok(exit),
    };
    let runtime = match arguments.listening.is_enabled() {
        // Local clients and servers need cores, too, and every hand-over of a message between threads adds latency.
        true => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)))
            .enable_all()
            .build(),
        // One client sends its messages one after the other, so a single thread avoids hand-overs.
        false => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let runtime =
        runtime.map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))?;
    let url = arguments.state.clone().or(config.state.clone()).unwrap_or_else(|| "memory:".to_owned());
    let state = OpenStateStore::open_or_new(&url, &runtime)?;
    let logs = OpenLogs::open(&[config.log.clone(), arguments.log.settings()?].concat(), Some(&state.keys))?;
    let candidate = arguments.candidate.load_for_service(config.candidate.clone())?;
    let observability = Observability::new(logs, arguments.metrics.open()?, candidate);
    let store = Arc::clone(&state.store);
    observability.warn_of_unrecorded(&rules);
    let mut engine = observability.observe(Engine::builder(rules), GATEWAY_BUNDLE);
    let mut notification_tasks = None;
    if let Some(file) = notifications {
        let (notifier, tasks) = notify_args::start(file, state.keys.clone(), &runtime);
        engine = engine.observer(notifier);
        notification_tasks = Some(tasks);
    }
    let engine = engine.store(Arc::clone(&store)).keys(state.keys.clone()).build();
    if let Some(tasks) = &notification_tasks {
        tasks.report_to(engine.clone());
    }
    let rules_engine = engine.clone();
    let mut servers = GatewayServers::new(&observability, has_caller_tokens);
    let specs = match servers.specs(&config.servers) {
        Ok(specs) => specs,
        Err(ServersError::Reported(exit)) => return Ok(exit),
        Err(ServersError::Command(error)) => return Err(error),
    };
    let config_file = arguments.servers.config_file();
    let mut gateway =
        Gateway::new(engine, specs).with_context(context).with_log(|message| print_warning(message));
    let signers = arguments.pins_signed_by.as_ref().or(config.pins_signed_by.as_ref());
    let signers = signers.map(|path| read_signers(path)).transpose()?;
    match arguments.pins.clone().or(config.pins.clone()) {
        Some(file) => {
            gateway =
                gateway.with_pins(file, signers).map_err(|error| CommandError::new(error.to_string()))?;
        }
        None if signers.is_some() => {
            return Err(CommandError::new(
                "`--pins-signed-by` needs a lock file; name it with `--pins FILE`",
            ));
        }
        None => {}
    }
    if let Some(session) = &arguments.session {
        gateway = gateway.with_session(session);
    }
    if let Some(task) = &arguments.task {
        gateway = gateway.with_task(TaskSource::clone(task));
    }
    if let Some(state) = approvals_state_url(&state.url) {
        gateway = gateway.with_approval_state(state);
    }
    let has_rules = !source.is_empty();
    if has_rules || servers.have_rules() || config_file.is_some() {
        gateway = gateway.with_rule_reload();
    }
    let gateway = Arc::new(observability.observe_gateway(gateway));
    let health = HealthProbe::new(store, {
        let gateway = Arc::clone(&gateway);
        move || gateway.servers_up().into_iter().map(|(_, is_up)| is_up).collect()
    });
    let http_server = match arguments.listening.prepare_server(&gateway, &health)? {
        proxy_http::HttpServerSetup::Disabled => None,
        proxy_http::HttpServerSetup::Ready(http_server) => Some(http_server),
        proxy_http::HttpServerSetup::Invalid => return Ok(ExitStatus::Failure),
    };
    let mut watches = Vec::new();
    let updates = source.follow(
        &rules_engine,
        &FollowerState { runtime: &runtime, store: Arc::clone(&state.store), url: &state.url },
    )?;
    if has_rules {
        notify_clients_of_reloads(&rules_engine, &gateway, runtime.handle());
    }
    servers.watch_rules(&gateway, runtime.handle())?;
    watches.extend(observability.watch_candidate()?);
    let refresh = {
        let (gateway, followed) = (Arc::downgrade(&gateway), updates.followed.clone());
        move |metrics: &Metrics| {
            published_rules::show_metrics(followed.as_ref(), metrics);
            let servers = gateway.upgrade().map(|gateway| gateway.servers_up()).unwrap_or_default();
            metrics.set_upstreams_up(&servers);
        }
    };
    runtime.block_on(observability.serve_metrics(health, refresh))?;
    let served = runtime.block_on(async {
        let (stdin, over) = ReadUntilShutdown::new(callgate_mcp::stdin());
        let listens = http_server.is_some();
        // The second signal, or a signal after the end of stdin, ends the process without waiting for requests in progress.
        let second_signal = async {
            match listens {
                true => wait_for_shutdown().await,
                false => drop(over.await),
            }
            wait_for_shutdown().await;
        };
        let served = async {
            match http_server {
                Some(http_server) => http_server.serve().await,
                None => Arc::clone(&gateway)
                    .serve_stdio(stdin, callgate_mcp::stdout())
                    .await
                    .map_err(|error| error.to_string()),
            }
        };
        let follow_config = async {
            match config_file {
                Some(file) => {
                    let mut follower = FollowingGateway { servers: &mut servers, gateway: &gateway };
                    server_list_file::follow(&file, *config, &mut follower).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            served = served => served,
            () = second_signal => Ok(()),
            () = follow_config => Ok(()),
        }
    });
    if let Some(tasks) = notification_tasks {
        runtime.block_on(tasks.finish());
    }
    // The thread that reads stdin may be blocked forever.
    runtime.shutdown_background();
    observability.shut_down_candidate();
    served.map(|()| ExitStatus::Success).map_err(CommandError::Message)
}

/// The state URL for `callgate approvals` commands shown to people: with an absolute path, quoted for a shell.
fn approvals_state_url(state: &str) -> Option<String> {
    if is_shared(state) {
        return Some(quote_shell_word(state));
    }
    let path = std::path::absolute(state.strip_prefix("file:")?).ok()?;
    Some(quote_shell_word(&format!("file:{}", path.display())))
}
