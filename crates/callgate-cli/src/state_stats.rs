//! `callgate state stats`: how much a state store holds, and how old its unfinished calls are.

use std::io::Write as _;
use std::sync::Arc;

use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Runtime;

use super::exit::CommandError;
use super::output::Output;
use callgate::approval::{CallStage, Inbox, Ledger};
use callgate::durations;
use callgate::host::{StateStore, SystemClock, space};
use callgate::json::{self, Map, Value, json};
use callgate_state::OpenStateStore;

/// The number of records that are read at once.
const PAGE_SIZE: usize = 256;

/// The format of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StatsFormat {
    /// Human-readable text
    Text,
    /// JSON for programs, stable
    Json,
    /// Metrics in the text format of Prometheus, for a collector that reads files
    Prometheus,
}

/// The records of one space.
struct SpaceUsage {
    name: &'static str,
    records: u64,
    bytes: u64,
}

/// The number of calls at one stage, and since when the oldest is.
#[derive(Default)]
struct StageUsage {
    calls: u64,
    oldest: Option<Timestamp>,
}

impl StageUsage {
    fn add(&mut self, since: Timestamp) {
        self.calls += 1;
        self.note(since);
    }

    fn note(&mut self, since: Timestamp) {
        self.oldest = Some(self.oldest.map_or(since, |oldest| oldest.min(since)));
    }

    /// How old the oldest is, in whole seconds; 0 if there is none, or if this host's clock is behind.
    fn oldest_age(&self, now: Timestamp) -> u64 {
        let age = self.oldest.map_or(SignedDuration::ZERO, |oldest| now.duration_since(oldest));
        u64::try_from(age.as_secs()).unwrap_or(0)
    }
}

/// What a state store holds.
pub(super) struct StoreUsage {
    url: String,
    spaces: Vec<SpaceUsage>,
    pending: StageUsage,
    started: StageUsage,
    completed: StageUsage,
    now: Timestamp,
}

impl StoreUsage {
    /// Reads the whole store.
    pub(super) fn measure(url: &str, runtime: &Runtime) -> Result<Self, CommandError> {
        let OpenStateStore { url, store, keys, .. } = OpenStateStore::open_existing(url, runtime)?;
        let mut spaces = Vec::new();
        for name in space::ALL {
            spaces.push(runtime.block_on(space_usage(&store, name))?);
        }
        let failed = |error: &dyn std::fmt::Display| CommandError::new(error.to_string());
        let ledger = Ledger::new(Arc::clone(&store) as _, &SystemClock);
        let [mut pending, mut started, mut completed] = [(); 3].map(|()| StageUsage::default());
        for call in runtime.block_on(ledger.list()).map_err(|error| failed(&error))? {
            match call.entry.stage {
                CallStage::Waiting => pending.calls += 1,
                CallStage::Claimed { at } => started.add(at),
                CallStage::Settled { at, .. } => completed.add(at),
            }
        }
        let inbox = Inbox::new(store, keys, SystemClock);
        for item in runtime.block_on(inbox.list()).map_err(|error| failed(&error))? {
            if item.is_pending()
                && let Some(bound) = item.bound_request
            {
                pending.note(bound.asked_at);
            }
        }
        Ok(Self { url, spaces, pending, started, completed, now: Timestamp::now() })
    }

    /// Prints it.
    pub(super) fn write(&self, format: StatsFormat, output: &mut Output) -> Result<(), CommandError> {
        match format {
            StatsFormat::Text => self.write_text(output),
            StatsFormat::Json => self.write_json(output),
            StatsFormat::Prometheus => self.write_metrics(output),
        }
    }

    fn write_text(&self, output: &mut Output) -> Result<(), CommandError> {
        writeln!(output, "`{}`", self.url)?;
        for SpaceUsage { name, records, bytes } in &self.spaces {
            writeln!(output, "  {name:<9} {records:>9} records {:>9} KiB", bytes.div_ceil(1024))?;
        }
        let Self { pending, started, completed, .. } = self;
        writeln!(
            output,
            "calls: {} pending{}, {} started and not completed{}, {} completed",
            pending.calls,
            self.age(pending),
            started.calls,
            self.age(started),
            completed.calls
        )?;
        Ok(())
    }

    fn age(&self, stage: &StageUsage) -> String {
        match stage.oldest {
            None => String::new(),
            Some(_) => {
                let age = std::time::Duration::from_secs(stage.oldest_age(self.now));
                format!(" (the oldest for {})", durations::format(age))
            }
        }
    }

    fn write_json(&self, output: &mut Output) -> Result<(), CommandError> {
        let usage = |space: &SpaceUsage| json!({ "records": space.records, "bytes": space.bytes });
        let spaces: Map = self.spaces.iter().map(|space| (space.name.to_owned(), usage(space))).collect();
        let document = json!({
            "version": 1,
            "state": self.url,
            "calls": {
                "pending": self.pending.calls,
                "started": self.started.calls,
                "completed": self.completed.calls,
            },
            "oldest_seconds": {
                "pending": self.pending.oldest_age(self.now),
                "started": self.started.oldest_age(self.now),
            },
            "spaces": Value::Object(spaces),
        });
        let text = json::to_string_pretty(&document).map_err(|error| CommandError::new(error.to_string()))?;
        Ok(writeln!(output, "{text}")?)
    }

    fn write_metrics(&self, output: &mut Output) -> Result<(), CommandError> {
        let mut family = |name: &str, help: &str, samples: &[(&str, &str, u64)]| {
            writeln!(output, "# HELP callgate_state_{name} {help}\n# TYPE callgate_state_{name} gauge")?;
            samples.iter().try_for_each(|(label, value, number)| {
                writeln!(output, "callgate_state_{name}{{{label}=\"{value}\"}} {number}")
            })
        };
        let of_spaces = |number: fn(&SpaceUsage) -> u64| {
            self.spaces.iter().map(|space| ("space", space.name, number(space))).collect::<Vec<_>>()
        };
        family("records", "Records of the state store", &of_spaces(|space| space.records))?;
        family("record_bytes", "The size of their keys and values", &of_spaces(|space| space.bytes))?;
        let stages = [("pending", &self.pending), ("started", &self.started), ("completed", &self.completed)];
        let calls = stages.map(|(name, stage)| ("stage", name, stage.calls));
        family("calls", "Calls by how far they are; started ones have no outcome yet", &calls)?;
        let unfinished = [("pending", &self.pending), ("started", &self.started)];
        let ages = unfinished.map(|(name, stage)| ("stage", name, stage.oldest_age(self.now)));
        family("oldest_call_age_seconds", "How long the oldest of these calls is at this stage", &ages)?;
        Ok(())
    }
}

async fn space_usage(store: &Arc<dyn StateStore>, name: &'static str) -> Result<SpaceUsage, CommandError> {
    let mut usage = SpaceUsage { name, records: 0, bytes: 0 };
    let mut after: Option<String> = None;
    loop {
        let page = store.records(name, after.as_deref(), PAGE_SIZE).await;
        let page = page.map_err(|error| CommandError::new(error.to_string()))?;
        for (key, record) in &page.records {
            usage.records += 1;
            usage.bytes += (key.len() + record.value.to_string().len()) as u64;
        }
        after = page.records.last().map(|(key, _)| key.clone());
        if !page.more || after.is_none() {
            return Ok(usage);
        }
    }
}
