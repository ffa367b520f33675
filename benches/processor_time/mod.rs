//! The processor time of a process, as the kernel counts it.

use std::fs;
use std::time::Duration;

/// The processor time that a process and its children have used, also those that have ended.
pub fn processor_time(process: u32) -> Duration {
    let Ok(all) = fs::read_dir("/proc") else { return Duration::ZERO };
    let ticks = all.flatten().filter_map(|found| {
        let id: u32 = found.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(found.path().join("stat")).ok()?;
        // After the name, which may have spaces: the state, the parent, and from the 12th on the times.
        let fields: Vec<u64> =
            stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let (own, children) = (fields.get(11)? + fields.get(12)?, fields.get(13)? + fields.get(14)?);
        match id == process {
            true => Some(own + children),
            false => (*fields.get(1)? == u64::from(process)).then_some(own),
        }
    });
    // A tick is 10 ms.
    Duration::from_millis(10 * ticks.sum::<u64>())
}
