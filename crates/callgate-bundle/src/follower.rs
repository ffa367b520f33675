//! The follower: a task that keeps the rules of an engine at the published bundle. It fetches, verifies and stores bundles, lets the engine reload their
//! rules, and shares with the other instances whether they are active.

mod followed_bundle;
mod pending_bundle;
mod reporting;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate::engine::Engine;
use callgate::host::StateStore;
use callgate::reload::{ReloadResult, Reloader};
use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use crate::acceptance::{RefusalReason, SignedBundle};
use crate::bundle_directory::{DirectoryError, InstanceName};
use crate::first_bundle::{FirstBundle, FirstBundleError, PublishedBundle};
use crate::fleet_records::{FleetRecords, InstanceReport, NewerBundle, Standing};
use crate::instance_status::SharedStatus;
use crate::source::{Fetched, Validator};
use followed_bundle::Signals;
use pending_bundle::PendingBundle;

pub use followed_bundle::FollowedBundle;

/// How often the state store is asked for news of other instances, at most.
const FLEET_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after the first failure; it doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after failures, unless the interval is longer.
const MAX_PAUSE: Duration = Duration::from_secs(5 * 60);
/// The longest reason that is shared, in characters, and the number of changes.
const MAX_REASON_CHARS: usize = 2_000;
const MAX_RELAXATIONS: usize = 100;

/// What a follower tells its operator.
#[derive(Clone, Copy, Debug)]
pub enum FollowerMessage<'m> {
    /// The rules of a version took effect.
    InEffect {
        /// The name of the bundle.
        bundle: &'m str,
        /// The version.
        version: u64,
    },
    /// A newer version can't be fetched, or is refused.
    Problem(&'m str),
}

type FollowerLog = Box<dyn Fn(FollowerMessage<'_>) + Send + Sync>;

/// Makes the reloader of the rules in a directory.
pub type ReloaderFactory = Arc<dyn Fn(&Path) -> Reloader + Send + Sync>;

/// Keeps the rules of an engine at a published bundle.
pub struct BundleFollower {
    published: PublishedBundle,
    engine: Engine,
    reloaders: ReloaderFactory,
    interval: Duration,
    log: FollowerLog,
    shared: FollowedBundle,
    /// What the source had last.
    validator: Option<Validator>,
    /// The newest bundle whose rules were reloaded, with whatever result.
    newest: SignedBundle,
    pending: Option<PendingBundle>,
    /// Why the bundle that the source has is not accepted.
    refused: Option<String>,
    failures: u32,
    /// The announced version that was checked for last.
    announced: u64,
    last_logged: String,
    last_report: Option<(InstanceReport, Instant)>,
    _instance: InstanceName,
}

impl std::fmt::Debug for BundleFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BundleFollower").field("source", &self.published.source).finish_non_exhaustive()
    }
}

/// What a follower works with.
pub struct FollowerParts {
    /// The engine whose rules are reloaded.
    pub engine: Engine,
    /// The state store, which other instances may share.
    pub store: Arc<dyn StateStore>,
    /// Makes the reloader of new rules.
    pub reloaders: ReloaderFactory,
    /// How often the source is checked.
    pub interval: Duration,
}

impl BundleFollower {
    /// Prepares to follow a bundle, whose first version the engine has. Stores that version if it was fetched.
    ///
    /// # Errors
    /// The first version was fetched and is older than one that another instance has, or it can't be stored.
    pub async fn new(
        published: PublishedBundle,
        first: FirstBundle,
        parts: FollowerParts,
        log: impl Fn(FollowerMessage<'_>) + Send + Sync + 'static,
    ) -> Result<Self, FirstBundleError> {
        let FollowerParts { engine, store, reloaders, interval } = parts;
        let records = FleetRecords::new(store);
        let FirstBundle { bundle, is_fetched, .. } = first;
        if is_fetched {
            if let Ok(newest) = records.newest(bundle.bundle.name()).await {
                bundle.check_newer(newest.as_ref())?;
            }
            published.directory.raise_newest(&bundle.as_newest())?;
            published.directory.store_active(&bundle)?;
            let _ = records.raise_newest(&bundle.as_newest()).await;
        }
        let instance = published.directory.instance()?;
        let report = InstanceReport {
            instance: format!("{}-{}", reporting::host_name(), instance.name),
            callgate: env!("CARGO_PKG_VERSION").to_owned(),
            source: published.source.display_name().to_owned(),
            bundle: Some(bundle.bundle.name().to_owned()),
            version: Some(bundle.bundle.version()),
            revision: engine.revision(),
            newer: None,
            error: None,
            checked_at: is_fetched.then(Timestamp::now),
            reported_at: Timestamp::now(),
        };
        let signals = Arc::new(Signals::default());
        let changed = Arc::clone(&signals);
        engine.on_change(move |_| changed.changed.notify_one());
        Ok(Self {
            published,
            engine,
            reloaders,
            interval,
            log: Box::new(log),
            shared: FollowedBundle { status: SharedStatus::new(report), records, signals },
            validator: None,
            announced: bundle.bundle.version(),
            newest: bundle,
            pending: None,
            refused: None,
            failures: 0,
            last_logged: String::new(),
            last_report: None,
            _instance: instance,
        })
    }

    /// For those who show the status.
    pub fn followed(&self) -> FollowedBundle {
        self.shared.clone()
    }

    /// Follows the bundle, until the future is dropped.
    pub async fn run(mut self) {
        let signals = Arc::clone(&self.shared.signals);
        let mut next_check = Instant::now();
        loop {
            let next = next_check.min(Instant::now() + jittered(FLEET_INTERVAL.min(self.interval)));
            let is_due = tokio::select! {
                () = sleep_until(next) => Instant::now() >= next_check,
                () = signals.check.notified() => true,
                () = signals.changed.notified() => false,
            };
            if is_due || self.is_newer_announced().await {
                self.check().await;
                next_check = Instant::now() + self.pause();
            }
            self.follow_confirmation().await;
            self.report_if_due().await;
        }
    }

    /// How long until the next check.
    fn pause(&self) -> Duration {
        if self.failures == 0 {
            return jittered(self.interval);
        }
        let longest = MAX_PAUSE.max(self.interval);
        jittered(FIRST_PAUSE.saturating_mul(2u32.saturating_pow(self.failures)).min(longest))
    }

    /// Whether another instance has a version that this one has not checked for. Announces the own one if it is newer.
    async fn is_newer_announced(&mut self) -> bool {
        let own = self.newest.as_newest();
        let Ok(known) = self.shared.records.newest(&own.name).await else { return false };
        let version = known.map_or(0, |known| known.version);
        if version < own.version {
            let _ = self.shared.records.raise_newest(&own).await;
        }
        let is_news = version > own.version && version > self.announced;
        self.announced = self.announced.max(version);
        is_news
    }

    /// Fetches the published bundle, and loads it if it is new.
    async fn check(&mut self) {
        let fetched = self.published.source.fetch(self.validator.as_ref()).await;
        let (envelope, validator) = match fetched {
            Ok(Fetched::Envelope(envelope, validator)) => (envelope, validator),
            Ok(Fetched::Unchanged) => return self.record_check(),
            Err(error) => return self.record_failure(error.to_string()),
        };
        self.validator = validator;
        match self.accept(envelope).await {
            Ok(Some(bundle)) => {
                self.refused = None;
                match self.load(bundle).await {
                    Ok(()) => self.record_check(),
                    Err(error) => {
                        // The next check fetches it again.
                        self.validator = None;
                        self.record_failure(format!("the bundle can't be loaded: {error}"));
                    }
                }
            }
            Ok(None) => {
                self.refused = None;
                // Again, if that failed before.
                match self.store_if_active() {
                    Ok(()) => self.record_check(),
                    Err(error) => self.record_failure(format!("the bundle can't be stored: {error}")),
                }
            }
            Err(Refused::Bundle(why)) => {
                let why = format!("the published bundle is refused: {why}");
                self.log_once(&format!("{why}; version {} stays in effect", self.active_version()));
                self.shared.status.update(|status| status.rejected += 1);
                self.refused = Some(why);
                self.record_check();
            }
            Err(Refused::Directory(error)) => {
                self.validator = None;
                self.record_failure(error.to_string());
            }
        }
    }

    /// Verifies an envelope. Returns `None` if its bundle was loaded before.
    async fn accept(&self, envelope: Vec<u8>) -> Result<Option<SignedBundle>, Refused> {
        let refused = |why: RefusalReason| Refused::Bundle(why.to_string());
        let trust = self.published.trust.clone();
        let opened = spawn_blocking(move || SignedBundle::open(envelope, &trust)).await;
        let bundle = opened.map_err(|error| Refused::Bundle(error.to_string()))?.map_err(refused)?;
        let stored = self.published.directory.newest().map_err(Refused::Directory)?;
        bundle.check_newer(stored.as_ref()).map_err(refused)?;
        // Of another instance. If the store fails, what is stored here has to do.
        let shared = self.shared.records.newest(bundle.bundle.name()).await.ok().flatten();
        bundle.check_newer(shared.as_ref()).map_err(refused)?;
        Ok((bundle.digest != self.newest.digest).then_some(bundle))
    }

    /// Reloads the rules of a bundle.
    async fn load(&mut self, bundle: SignedBundle) -> Result<(), DirectoryError> {
        let _ = self.shared.records.raise_newest(&bundle.as_newest()).await;
        let before = self.engine.revision();
        let (directory, reloaders, loading) =
            (self.published.directory.clone(), Arc::clone(&self.reloaders), bundle.clone());
        let reload = move || {
            // Before the rules are read, so that no older version counts from here on.
            directory.raise_newest(&loading.as_newest())?;
            let unpacked = directory.unpack(&loading)?;
            Ok::<_, DirectoryError>(reloaders(unpacked.path()).reload())
        };
        let result = spawn_blocking(reload).await.ok().transpose()?;
        let status = self.engine.status();
        let version = bundle.bundle.version();
        let standing = match (result, status.pending) {
            (Some(ReloadResult::Applied | ReloadResult::Unchanged), _) => {
                self.newest = bundle;
                self.pending = None;
                return self.activate();
            }
            (Some(ReloadResult::Pending), Some(pending)) => {
                self.pending = Some(PendingBundle { revision: pending.revision.clone(), from: before });
                let changes = pending.relaxations.iter().take(MAX_RELAXATIONS).map(ToString::to_string);
                Standing::Pending { revision: pending.revision, relaxations: changes.collect() }
            }
            _ => {
                self.pending = None;
                self.shared.status.update(|status| status.rejected += 1);
                let reason = status.last_rejected.map(|rejected| rejected.reason.to_string());
                let reason = reason.unwrap_or_else(|| "the rules could not be loaded".to_owned());
                let reason = self.published.directory.with_bundle_names(&reason);
                Standing::Rejected { reason: reason.chars().take(MAX_REASON_CHARS).collect() }
            }
        };
        let newer = NewerBundle { version, digest: bundle.digest.clone(), standing };
        self.newest = bundle;
        self.shared.status.update(|status| status.record_newer(newer));
        Ok(())
    }

    /// Stores the newest bundle, whose rules are in effect now.
    fn activate(&mut self) -> Result<(), DirectoryError> {
        let bundle = &self.newest.bundle;
        let (name, version, revision) = (bundle.name(), bundle.version(), self.engine.revision());
        self.shared.status.update(|status| status.record_active(name, version, revision));
        (self.log)(FollowerMessage::InEffect { bundle: name, version });
        self.published.directory.store_active(&self.newest)
    }

    /// Stores the newest bundle, if its rules are in effect.
    fn store_if_active(&self) -> Result<(), DirectoryError> {
        if self.shared.status.get().report.newer.is_some() {
            return Ok(());
        }
        self.published.directory.store_active(&self.newest)
    }
}

/// Why a fetched bundle is not loaded.
enum Refused {
    Bundle(String),
    Directory(DirectoryError),
}

/// A duration that differs by up to a fifth, so that instances do not act at the same time.
fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(0.8 + 0.4 * fastrand::f64())
}
