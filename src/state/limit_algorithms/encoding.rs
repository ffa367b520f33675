//! Binary encoding of limits, for persistent stores.

use super::LimitUsage;
use super::gcra::Gcra;
use super::limit_encoder::{LimitDecoder, LimitEncoder};
use super::resettable_count::ResettableCount;
use super::sliding_window::SlidingLog;
use crate::host::Allowance;

/// The version of the encoding. Other versions are not read.
const FORMAT: u8 = 1;

/// Encodes a limit with the allowance of its latest acquisition.
pub fn encode(spent: &LimitUsage, allowance: &Allowance) -> Vec<u8> {
    let mut writer = LimitEncoder::new(FORMAT);
    writer.allowance(allowance);
    match spent {
        LimitUsage::Gcra(gcra) => gcra.write(&mut writer),
        LimitUsage::FixedWindow(count) | LimitUsage::Total(count) => count.write(&mut writer),
        LimitUsage::SlidingWindow(sliding) => sliding.write(&mut writer),
        LimitUsage::Slots(held) => writer.number(*held),
    }
    writer.into_bytes()
}

/// Decodes what [`encode`] wrote. Returns `None` for anything else: treating it as an unused limit would admit what the
/// limit forbids.
pub fn decode(bytes: &[u8]) -> Option<(LimitUsage, Allowance)> {
    let (&FORMAT, rest) = bytes.split_first()? else { return None };
    let mut reader = LimitDecoder::new(rest);
    let allowance = reader.allowance()?;
    let spent = match allowance {
        Allowance::Gcra { .. } => LimitUsage::Gcra(Gcra::read(&mut reader)?),
        Allowance::FixedWindow { .. } => LimitUsage::FixedWindow(ResettableCount::read(&mut reader)?),
        Allowance::SlidingWindow { .. } => LimitUsage::SlidingWindow(SlidingLog::read(&mut reader)?),
        Allowance::Total { .. } => LimitUsage::Total(ResettableCount::read(&mut reader)?),
        Allowance::Slots { .. } => LimitUsage::Slots(reader.number()?),
    };
    reader.is_at_end().then_some((spent, allowance))
}
