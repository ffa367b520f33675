//! `callgate bundle status` and `confirm`: what the instances that share a state store have of a bundle.

use std::collections::BTreeSet;
use std::io::Write as _;

use jiff::Timestamp;
use tokio::runtime::Runtime;

use super::{command_error, network_runtime};
use crate::OutputFormat;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{Output, count_noun, escape_line, print_error};
use callgate::json::{self, json};
use callgate_bundle::{Confirmation, FleetRecords, InstanceReport, NewerBundle, Standing};
use callgate_state::OpenStateStore;

/// The records of a state store, and the runtime of its connections.
struct Fleet {
    runtime: Runtime,
    records: FleetRecords,
}

impl Fleet {
    fn open(state: &str) -> Result<Self, CommandError> {
        let runtime = network_runtime()?;
        let records = FleetRecords::new(OpenStateStore::open_existing(state, &runtime)?.store);
        Ok(Self { runtime, records })
    }

    fn instances(&self) -> Result<Vec<InstanceReport>, CommandError> {
        self.runtime.block_on(self.records.instances()).map_err(command_error)
    }
}

/// Prints which version each instance has.
pub(super) fn print_status(
    state: &str,
    format: OutputFormat,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let instances = Fleet::open(state)?.instances()?;
    let newest = instances.iter().filter_map(newest_version).max();
    let is_behind = |report: &InstanceReport| report.version < newest;
    if format == OutputFormat::Json {
        let document = json!({ "version": 1, "newest": newest, "instances": instances });
        writeln!(output, "{}", json::to_string_pretty(&document).map_err(command_error)?)?;
    } else if instances.is_empty() {
        writeln!(output, "no instance that shares this state store follows a published bundle")?;
    } else {
        for report in &instances {
            print_instance(report, output)?;
        }
        let behind = instances.iter().filter(|report| is_behind(report)).count();
        let count = count_noun(instances.len(), "instance", "instances");
        let newest = newest.map_or_else(|| "none".to_owned(), |version| version.to_string());
        writeln!(output, "{count}, newest version {newest}, {behind} without it")?;
    }
    Ok(if instances.iter().any(is_behind) { ExitStatus::Failure } else { ExitStatus::Success })
}

fn newest_version(report: &InstanceReport) -> Option<u64> {
    report.newer.as_ref().map(|newer| newer.version).or(report.version)
}

fn print_instance(report: &InstanceReport, output: &mut Output) -> Result<(), CommandError> {
    let bundle = report.bundle.as_deref().unwrap_or("no bundle");
    let version = report.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
    let revision = report.revision.get(..12).unwrap_or(&report.revision);
    let line = format!("{}  {bundle} version {version}, revision {revision}", report.instance);
    writeln!(output, "{}", escape_line(&line))?;
    if let Some(newer) = &report.newer {
        match &newer.standing {
            Standing::Rejected { reason } => {
                writeln!(output, "  version {} is rejected:", newer.version)?;
                for line in reason.lines() {
                    writeln!(output, "    {}", escape_line(line))?;
                }
            }
            Standing::Pending { revision, .. } => {
                let revision = escape_line(revision);
                writeln!(
                    output,
                    "  version {} is pending confirmation as revision {revision}",
                    newer.version
                )?;
            }
        }
    }
    if let Some(error) = &report.error {
        writeln!(output, "  {}", escape_line(error))?;
    }
    Ok(())
}

/// Shows what pending rules may allow, and confirms them with `yes`.
pub(super) fn confirm(
    state: &str,
    revision: Option<&str>,
    yes: bool,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let fleet = Fleet::open(state)?;
    let instances = fleet.instances()?;
    let pending: Vec<PendingInstance> = instances.iter().filter_map(PendingInstance::new).collect();
    let revisions: BTreeSet<&str> =
        pending.iter().map(|pending| pending.confirmation.revision.as_str()).collect();
    let chosen: Vec<&&str> =
        revisions.iter().filter(|known| revision.is_none_or(|given| known.starts_with(given))).collect();
    let chosen = match chosen.as_slice() {
        [chosen] => **chosen,
        [] => {
            print_error("no instance has such rules pending; see `callgate bundle status`");
            return Ok(ExitStatus::Failure);
        }
        _ => {
            print_error(format!(
                "rules of several revisions are pending: name one of {}",
                revisions.iter().copied().collect::<Vec<_>>().join(", ")
            ));
            return Ok(ExitStatus::Failure);
        }
    };
    let pending: Vec<&PendingInstance> =
        pending.iter().filter(|pending| pending.confirmation.revision == chosen).collect();
    let relaxations: BTreeSet<&str> =
        pending.iter().flat_map(|pending| pending.relaxations).map(String::as_str).collect();
    let Some(first) = pending.first() else { return Ok(ExitStatus::Failure) };
    let version = first.confirmation.version;
    writeln!(
        output,
        "version {version} of the bundle `{}` (revision {chosen}), pending on {}:",
        first.confirmation.bundle,
        count_noun(pending.len(), "instance", "instances")
    )?;
    for relaxation in relaxations {
        writeln!(output, "  {}", escape_line(relaxation))?;
    }
    if !yes {
        writeln!(output, "add `--yes` to confirm")?;
        return Ok(ExitStatus::Success);
    }
    for pending in &pending {
        let confirmed = fleet.records.confirm(&pending.confirmation, Timestamp::now());
        fleet.runtime.block_on(confirmed).map_err(command_error)?;
    }
    writeln!(output, "confirmed; the instances apply it within seconds")?;
    Ok(ExitStatus::Success)
}

/// An instance with pending rules.
struct PendingInstance<'r> {
    relaxations: &'r [String],
    confirmation: Confirmation,
}

impl<'r> PendingInstance<'r> {
    fn new(report: &'r InstanceReport) -> Option<Self> {
        let NewerBundle { version, digest, standing } = report.newer.as_ref()?;
        let Standing::Pending { revision, relaxations } = standing else { return None };
        let confirmation = Confirmation {
            bundle: report.bundle.clone()?,
            version: *version,
            digest: digest.clone(),
            revision: revision.clone(),
            from: vec![report.revision.clone()],
        };
        Some(Self { relaxations, confirmation })
    }
}
