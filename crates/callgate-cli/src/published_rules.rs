//! `--policies URL`: rules that are published once for many instances.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::exit::{CommandError, ExitStatus};
use super::output::{print_note, print_warning};
use super::pins::read_signers;
use super::reload_output::{self, ReloadOutput};
use super::rules_args;
use super::state_directory::state_directory;
use callgate::durations;
use callgate::engine::Engine;
use callgate::host::StateStore;
use callgate::json::{self, json};
use callgate::policy::CompiledPolicies;
use callgate::reload::{self, RejectionReason, Reloader, RulesWatcher};
use callgate_bundle::{
    BundleDirectory, BundleFollower, BundleSource, FirstBundle, FirstBundleError, FollowedBundle,
    FollowerMessage, FollowerParts, PublishedBundle, S3Settings, SourceAccess, TrustPolicy,
};
use callgate_policy_tests::PolicyTests;
use callgate_telemetry::{Metrics, PublishedVersions};

/// The shortest interval of checks.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// How published rules are fetched, and which are accepted.
#[derive(clap::Args)]
pub(super) struct PublishedRulesArgs {
    /// Accept rules of a URL only if they are signed by one of the public keys in FILE, one a line; see `callgate bundle key`. Required if
    /// `--policies` is a URL
    #[arg(long, value_name = "FILE")]
    policies_signed_by: Option<PathBuf>,
    /// Accept only the bundle of this name [default: the name of the first accepted bundle]
    #[arg(long, value_name = "NAME")]
    policies_name: Option<String>,
    /// Keep the last bundle in this directory, so that the next start needs no publisher [default: a directory for the URL in the user's
    /// state directory]
    #[arg(long, value_name = "DIRECTORY")]
    policies_dir: Option<PathBuf>,
    /// How often to check the URL for a newer version
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_interval)]
    policies_interval: Duration,
    #[command(flatten)]
    access: SourceAccessArgs,
}

/// How a publisher is accessed.
#[derive(clap::Args)]
pub(super) struct SourceAccessArgs {
    /// Credentials for the publisher: a file with `Bearer TOKEN` or `Basic USER:PASSWORD`. It is read for each request
    #[arg(long, value_name = "FILE")]
    policies_credentials: Option<PathBuf>,
    /// A host that a registry (`oci://`) may name for its tokens and blobs, in addition to itself; repeatable
    #[arg(long, value_name = "HOST")]
    policies_trust_host: Vec<String>,
}

impl SourceAccessArgs {
    /// The source at a URL.
    pub(super) fn source(&self, url: &str) -> Result<BundleSource, CommandError> {
        let access = SourceAccess {
            credentials: self.policies_credentials.clone(),
            trusted_hosts: self.policies_trust_host.clone(),
            s3: S3Settings::from_environment(),
        };
        BundleSource::parse(url, access).map_err(|error| CommandError::new(format!("`--policies`: {error}")))
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    durations::parse(text)
        .filter(|interval| *interval >= MIN_INTERVAL)
        .ok_or_else(|| "write a duration of at least a second, such as `30s` or `5m`".to_owned())
}

/// The rules of a command that serves: files, or a published bundle.
pub(super) enum RulesSource {
    Files(Vec<PathBuf>),
    Published(Box<OpenBundle>),
}

/// A published bundle, and its first version once it is loaded.
pub(super) struct OpenBundle {
    published: PublishedBundle,
    first: Option<FirstBundle>,
    interval: Duration,
}

/// What keeps rules up to date, until it is dropped.
pub(super) struct RulesUpdates {
    _watcher: Option<RulesWatcher>,
    /// The published bundle, if the rules are one.
    pub(super) followed: Option<FollowedBundle>,
}

impl PublishedRulesArgs {
    /// Opens what `--policies` names.
    pub(super) fn open(&self, policies: &[PathBuf]) -> Result<RulesSource, CommandError> {
        let urls: Vec<&str> = policies
            .iter()
            .filter_map(|path| path.to_str())
            .filter(|text| BundleSource::is_url(text))
            .collect();
        let url = match (urls.as_slice(), policies.len()) {
            ([], _) if self.policies_signed_by.is_some() => {
                return Err(CommandError::new(
                    "`--policies-signed-by` is for rules of a URL; files are not signed",
                ));
            }
            ([], _) => return Ok(RulesSource::Files(policies.to_vec())),
            ([url], 1) => *url,
            _ => {
                return Err(CommandError::new(
                    "a published bundle is all rules of an instance: give one URL, or only files and directories",
                ));
            }
        };
        let Some(keys) = &self.policies_signed_by else {
            return Err(CommandError::new(
                "rules of a URL must be signed: name the publishers' public keys with `--policies-signed-by FILE`",
            ));
        };
        let keys = read_signers(keys)?.public_keys().to_vec();
        let source = self.access.source(url)?;
        let path = self.policies_dir.clone().map_or_else(|| default_directory(source.display_name()), Ok)?;
        let directory = BundleDirectory::open(&path).map_err(|error| CommandError::new(error.to_string()))?;
        let trust = TrustPolicy { keys, name: self.policies_name.clone() };
        let published = PublishedBundle { source, trust, directory };
        let interval = self.policies_interval;
        Ok(RulesSource::Published(Box::new(OpenBundle { published, first: None, interval })))
    }
}

/// The directory of a URL in the user's state directory.
fn default_directory(source: &str) -> Result<PathBuf, CommandError> {
    let state = state_directory(|name| std::env::var_os(name)).ok_or_else(|| {
        CommandError::new("the user's state directory can't be located: set HOME, or use `--policies-dir`")
    })?;
    Ok(state.join("bundles").join(json::digest(&json!(source)).short_hex()))
}

impl RulesSource {
    /// Loads the rules. If they can't be used, reports the errors and returns the exit status.
    pub(super) fn load(&mut self) -> Result<Result<Arc<CompiledPolicies>, ExitStatus>, CommandError> {
        match self {
            Self::Files(paths) => Ok(rules_args::load_or_allow_all(paths)),
            Self::Published(bundle) => bundle.load(),
        }
    }

    /// Whether there are no rules, so that every call is allowed.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Files(paths) if paths.is_empty())
    }

    /// Keeps the rules of an engine up to date.
    pub(super) fn follow(
        self,
        engine: &Engine,
        state: &FollowerState<'_>,
    ) -> Result<RulesUpdates, CommandError> {
        match self {
            Self::Files(paths) if paths.is_empty() => Ok(RulesUpdates { _watcher: None, followed: None }),
            Self::Files(paths) => {
                let watcher = reload_output::start_watcher(engine, &paths)?;
                Ok(RulesUpdates { _watcher: Some(watcher), followed: None })
            }
            Self::Published(bundle) => {
                let followed = bundle.follow(engine, state)?;
                Ok(RulesUpdates { _watcher: None, followed: Some(followed) })
            }
        }
    }
}

/// Where a follower runs, and the state that it shares.
pub(super) struct FollowerState<'s> {
    pub(super) runtime: &'s Runtime,
    pub(super) store: Arc<dyn StateStore>,
    /// The URL of the store, without a password.
    pub(super) url: &'s str,
}

impl OpenBundle {
    fn load(&mut self) -> Result<Result<Arc<CompiledPolicies>, ExitStatus>, CommandError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))?;
        let load = |path: &Path| reload::load(&[path.to_owned()], &PolicyTests);
        match runtime.block_on(self.published.load_first(load, |warning| print_warning(warning))) {
            Ok(first) => {
                let (name, version) = first.name_and_version();
                let origin = if first.is_stored() { "stored here" } else { "fetched" };
                print_note(format!("version {version} of the bundle `{name}` is in effect ({origin})"));
                let rules = Arc::clone(&first.rules);
                self.first = Some(first);
                Ok(Ok(rules))
            }
            Err(FirstBundleError::Rules(reason)) => {
                print_rejection(&reason, &self.published.directory);
                Ok(Err(ExitStatus::Failure))
            }
            Err(error) => Err(CommandError::new(error.to_string())),
        }
    }

    fn follow(self, engine: &Engine, state: &FollowerState<'_>) -> Result<FollowedBundle, CommandError> {
        let Self { published, first, interval } = self;
        let Some(first) = first else { return Err(CommandError::new("the published rules are not loaded")) };
        let displayed = published.directory.clone();
        let confirm = match state.url {
            "memory:" => "give this process a state store (`--state file:PATH`), and confirm them with `callgate bundle \
                          confirm`, or publish other rules"
                .to_owned(),
            url => format!(
                "confirm them once for all instances, with `callgate bundle confirm --state {url}`, or publish other rules"
            ),
        };
        let displayed = Box::new(move |text: &str| displayed.with_bundle_names(text));
        reload_output::report_changes(engine, ReloadOutput { confirm, displayed });
        let reloading = engine.clone();
        let reloaders =
            move |path: &Path| Reloader::new(reloading.clone(), [path.to_owned()]).with_tests(PolicyTests);
        let parts = FollowerParts {
            engine: engine.clone(),
            store: Arc::clone(&state.store),
            reloaders: Arc::new(reloaders),
            interval,
        };
        let follower = BundleFollower::new(published, first, parts, print_message);
        let follower =
            state.runtime.block_on(follower).map_err(|error| CommandError::new(error.to_string()))?;
        let followed = follower.followed();
        state.runtime.spawn(follower.run());
        Ok(followed)
    }
}

fn print_message(message: FollowerMessage<'_>) {
    match message {
        FollowerMessage::InEffect { bundle, version } => {
            print_note(format!("version {version} of the bundle `{bundle}` is in effect"));
        }
        FollowerMessage::Problem(problem) => print_warning(problem),
    }
}

fn print_rejection(reason: &RejectionReason, directory: &BundleDirectory) {
    let displayed = |text: &str| directory.with_bundle_names(text);
    reload_output::print_reason(reason, &displayed);
}

/// Shows the status of a followed bundle in metrics.
pub(super) fn show_metrics(followed: Option<&FollowedBundle>, metrics: &Metrics) {
    let Some(status) = followed.map(FollowedBundle::status) else { return };
    let newer = status.report.newer.as_ref().map(|newer| newer.version);
    metrics.set_published_rules(&PublishedVersions {
        bundle: status.report.bundle.unwrap_or_default(),
        active: status.report.version.unwrap_or_default(),
        newest: newer.or(status.report.version).unwrap_or_default(),
        checked_at: status.report.checked_at,
        checks: status.checks,
        failed_checks: status.failed_checks,
        rejected: status.rejected,
    });
}
