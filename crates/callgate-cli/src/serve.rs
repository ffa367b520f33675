//! `callgate serve`: the decision server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::TcpListener;

use super::candidate_args::CandidateArgs;
use super::exit::{CommandError, ExitStatus};
use super::file_limit;
use super::json_inputs::{read_context, read_tools};
use super::log_args::LogArgs;
use super::metrics_args::MetricsArgs;
use super::notify_args::{self, NotifyArgs};
use super::observability::Observability;
use super::open_logs::OpenLogs;
use super::output::{print_diagnostics, print_note, print_warning};
use super::proxy_http::parse_address;
use super::published_rules::{self, FollowerState, PublishedRulesArgs};
use super::shutdown_signal::wait_for_shutdown;
use super::tls_args::TlsArgs;
use super::tool_server_args::ToolServerArgs;
use callgate::durations;
use callgate::engine::Engine;
use callgate_http::{HealthProbe, IdentityFile};
use callgate_server::{ActivityLog, DecisionServer};
use callgate_state::OpenStateStore;
use callgate_telemetry::Metrics;

/// The address without `--listen`.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8181";
/// The name of the rules in metrics.
const BUNDLE: &str = "server";
/// The state store without `--state`.
const DEFAULT_STATE: &str = "file:callgate.db";

/// Serve decisions over HTTP, and the approvals page in the browser.
///
/// Hosts in any language send tool calls, execute those that are allowed, and report the results; people approve calls in the browser.
/// Without an identity file the server listens on this machine only: local programs may send calls, and the token that is printed at the
/// start signs an approver in. Rules are reloaded when their files change (hot reload).
///
/// Exit status: 0 the server was stopped, 1 the rules or the identity file have errors, 2 usage error, or the address can't be used.
#[derive(clap::Args)]
#[command(args_override_self = true)]
#[command(after_help = "Examples:\n  \
    callgate serve --policies my-rules\n  \
    callgate serve --policies my-rules --listen 0.0.0.0:8181 --auth identities.yaml --log audit:audit.jsonl\n  \
    curl -s localhost:8181/v1/decide -H 'content-type: application/json' -d '{\"call\":{\"tool\":\"refund\",\"input\":{\"amount\":5}}}'")]
pub(super) struct ServeArgs {
    /// A YAML file with options of this command: each key is the name of one, with `_` for `-`. Paths in it are relative to it; options
    /// on the command line come after it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Rules files, or directories to search for them; or the URL of a published bundle: `https://…`, `oci://HOST/REPOSITORY:TAG` or
    /// `s3://BUCKET/KEY`
    #[arg(long, value_name = "PATH", num_args = 1.., required = true)]
    policies: Vec<PathBuf>,
    #[command(flatten)]
    published: PublishedRulesArgs,
    /// Listen at this address
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS, conflicts_with = "stdio")]
    listen: String,
    /// Serve lines of JSON on stdin and stdout instead of HTTP, for hosts that start the server as a process
    #[arg(long)]
    stdio: bool,
    /// Authenticate callers with this file: static tokens and JWT issuers, and what each caller may do; see docs/server.md. Required if
    /// other machines can reach the address
    #[arg(long, value_name = "FILE", conflicts_with = "stdio")]
    auth: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsArgs,
    /// The name of the person who approves with the printed token [default: the user who starts the server]
    #[arg(long, value_name = "PRINCIPAL", conflicts_with_all = ["auth", "stdio"])]
    approver: Option<String>,
    /// Accept requests of web pages from this origin, in addition to local ones
    #[arg(long, value_name = "ORIGIN", conflicts_with = "stdio")]
    allow_origin: Vec<String>,
    /// The tool descriptors: a JSON array of {name, description?, input_schema?, annotations?, server?} [default: the tools that the rules
    /// declare]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// A JSON object, the context of every call; hosts and credentials override its members
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// The state store for sessions, limits and approvals: `file:PATH`, created if missing, or `postgres://USER@HOST/DATABASE` or
    /// `rediss://USER@HOST`, which several hosts can share, or both: `records=URL limits=URL`
    #[arg(long, value_name = "URL", default_value = DEFAULT_STATE)]
    state: String,
    /// How long a host may take to report the result of a call
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    report_timeout: Duration,
    /// Maximum number of connections, of which one address may have a third and one network half
    #[arg(long, value_name = "NUMBER", default_value_t = 12_000, conflicts_with = "stdio")]
    most_connections: usize,
    #[command(flatten)]
    servers: ToolServerArgs,
    #[command(flatten)]
    candidate: CandidateArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    notify: NotifyArgs,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    durations::parse(text).ok_or_else(|| "write a duration such as `30s` or `10m`".to_owned())
}

pub(super) fn serve(arguments: &ServeArgs) -> Result<ExitStatus, CommandError> {
    let mut source = arguments.published.open(&arguments.policies)?;
    let rules = match source.load()? {
        Ok(rules) => rules,
        Err(exit) => return Ok(exit),
    };
    let identity = match arguments.auth.as_deref().map(IdentityFile::open).transpose() {
        Ok(identity) => identity,
        Err(error) => {
            print_diagnostics(&error.diagnostics, &error.sources);
            return Ok(ExitStatus::Failure);
        }
    };
    let servers_file = match arguments.servers.read()? {
        Ok(file) => file,
        Err(exit) => return Ok(exit),
    };
    let notifications = match arguments.notify.read() {
        Ok(file) => file,
        Err(exit) => return Ok(exit),
    };
    let tools = match &arguments.tools {
        Some(path) => read_tools(path)?,
        None => rules.tools().to_vec(),
    };
    let context = arguments.context.as_deref().map(read_context).transpose()?.unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))?;
    let state = OpenStateStore::open_or_new(&arguments.state, &runtime)?;
    if !state.store.is_shared() {
        return Err(CommandError::new(format!(
            "`{}` does not outlive the process, and approvals must: use `--state file:PATH`",
            arguments.state
        )));
    }
    let logs = OpenLogs::open(&arguments.log.settings()?, Some(&state.keys))?;
    let activity = ActivityLog::default();
    let builder =
        Engine::builder(rules).tools(tools).store(Arc::clone(&state.store)).keys(state.keys.clone());
    let candidate = arguments.candidate.load_for_service(Vec::new())?;
    let observability = Arc::new(Observability::new(logs, arguments.metrics.open()?, candidate));
    let mut builder = activity.observe(observability.observe(builder, BUNDLE));
    let mut notification_tasks = None;
    let mut channel_answers = None;
    if let Some(file) = notifications {
        let (notifier, tasks) = notify_args::start(file, state.keys, &runtime);
        channel_answers = Some(notifier.channel_answers());
        builder = builder.observer(notifier);
        notification_tasks = Some(tasks);
    }
    let engine = builder.build();
    if let Some(tasks) = &notification_tasks {
        tasks.report_to(engine.clone());
    }
    let updates = source.follow(
        &engine,
        &FollowerState { runtime: &runtime, store: Arc::clone(&state.store), url: &state.url },
    )?;
    let _candidate_watcher = observability.watch_candidate()?;
    let servers = {
        let _runtime = runtime.enter();
        match servers_file {
            Some(file) => {
                let servers = file.connect(&engine, &observability)?;
                runtime.spawn(file.follow(Arc::clone(&servers), engine.clone(), Arc::clone(&observability)));
                Some(servers)
            }
            None => None,
        }
    };
    let servers_up = {
        let servers = servers.clone();
        move || {
            let servers = servers.as_ref().map(|servers| servers.servers_up()).unwrap_or_default();
            servers.into_iter().map(|(_, is_up)| is_up).collect()
        }
    };
    let health = HealthProbe::new(Arc::clone(&state.store), servers_up);
    let refresh = {
        let (servers, followed) = (servers.clone(), updates.followed.clone());
        move |metrics: &Metrics| {
            published_rules::show_metrics(followed.as_ref(), metrics);
            metrics
                .set_upstreams_up(&servers.as_ref().map(|servers| servers.servers_up()).unwrap_or_default());
        }
    };
    runtime.block_on(observability.serve_metrics(health, refresh))?;
    let mut server = DecisionServer::new(engine, state.store, activity)
        .with_context(context)
        .with_report_timeout(arguments.report_timeout)
        .with_max_connections(arguments.most_connections)
        .with_log(|text| print_warning(text));
    if let Some(followed) = updates.followed.clone() {
        server = server.with_followed_bundle(followed);
    }
    if let Some(answers) = channel_answers {
        server = server.with_channel_answers(answers);
    }
    if let Some(servers) = servers {
        server = server.with_tool_servers(servers);
    }
    if let Some(tls) = arguments.tls.open()? {
        server = server.with_tls(tls);
    }
    let place = ListenPlace { address: &arguments.listen, scheme: arguments.tls.scheme() };
    for origin in &arguments.allow_origin {
        server = server.with_allowed_origin(origin);
    }
    let served = match (arguments.stdio, identity) {
        (true, _) => runtime.block_on(async {
            let (input, output) = (BufReader::new(tokio::io::stdin()), tokio::io::stdout());
            tokio::select! {
                served = server.serve_lines(input, output) => served.map_err(|error| error.to_string()),
                () = wait_for_shutdown() => Ok(()),
            }
        }),
        (false, Some(identity)) => runtime.block_on(listen(server.with_identity_file(identity), place, None)),
        (false, None) => {
            let approver = arguments.approver.clone().unwrap_or_else(user_name);
            let (server, token) = server.with_local_approver(approver).map_err(CommandError::Message)?;
            runtime.block_on(listen(server, place, Some(&token)))
        }
    };
    if let Some(tasks) = notification_tasks {
        runtime.block_on(tasks.finish());
    }
    observability.shut_down_candidate();
    // A thread that reads stdin may be blocked forever.
    runtime.shutdown_background();
    served.map(|()| ExitStatus::Success).map_err(CommandError::Message)
}

/// Where to listen.
struct ListenPlace<'a> {
    address: &'a str,
    /// The scheme of the server's URLs.
    scheme: &'static str,
}

/// Listens, and reports how to use the server.
async fn listen(server: DecisionServer, place: ListenPlace<'_>, token: Option<&str>) -> Result<(), String> {
    let ListenPlace { address, scheme } = place;
    let address = parse_address(address).map_err(|error| match error {
        CommandError::Message(message) => message,
        CommandError::OutputClosed => "the address can't be used".to_owned(),
    })?;
    server.check_address(address)?;
    file_limit::raise();
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| format!("can't listen on `{address}`: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    print_note(format!(
        "listening on {scheme}://{address}; the API is described at {scheme}://{address}/openapi.json"
    ));
    match token {
        // After `#`, so that the token is part of no request, log or referrer.
        Some(token) => print_note(format!("approvals: {scheme}://{address}/#token={token}")),
        None => print_note(format!("approvals: {scheme}://{address}/")),
    }
    let example = "'{\"call\": {\"tool\": \"NAME\", \"input\": {}}}'";
    print_note(format!(
        "try: curl {scheme}://{address}/v1/decide -H 'content-type: application/json' -d {example}"
    ));
    server.serve(listener, wait_for_shutdown()).await
}

/// The user who starts the server.
fn user_name() -> String {
    let names = ["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    names
        .map(|name| name.trim().to_owned())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "operator".to_owned())
}
