//! What was covered, as data. The serialized form is a contract: members are added, never changed.

use std::ops::Range;
use std::sync::PoisonError;

use serde::Serialize;

use super::Coverage;
use super::side::Side;
use crate::diagnostic::{Location, SourceId, SourceMap, Span};
use crate::policy::Mode;

/// Characters of a place's words that are kept.
const MAX_TEXT: usize = 200;

/// What the cases of a suite covered of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoverageReport {
    /// Of a hundred branches so many are covered, rounded down to a tenth: it is 100 only where nothing is missing.
    pub percent: f64,
    /// The branches that cases came to.
    pub covered: usize,
    /// All branches.
    pub total: usize,
    /// The rules files, in the order in which they were read.
    pub files: Vec<CoveredFile>,
}

/// What was covered of a rules file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoveredFile {
    /// The file's name, as it was given or found.
    pub file: String,
    /// As in the report.
    pub percent: f64,
    /// The branches that cases came to.
    pub covered: usize,
    /// All branches.
    pub total: usize,
    /// `defaults.unmatched`, where it is said here and stops anything.
    pub defaults: Vec<CoveredPlace>,
    /// The policies that are counted, in the order in which they stand.
    pub policies: Vec<CoveredPolicy>,
    /// The policies that are not, and why.
    pub not_counted: Vec<NotCounted>,
}

/// What was covered of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoveredPolicy {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: &'static str,
    /// `enforce` or `shadow`.
    pub mode: &'static str,
    /// The branches that cases came to.
    pub covered: usize,
    /// All its branches.
    pub total: usize,
    /// The policy as a whole, then its places in the order in which they stand.
    pub places: Vec<CoveredPlace>,
}

/// A place of a rules file that has branches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoveredPlace {
    /// What it is: `policy`, `kind`, `tool`, `server`, `all`, `any`, `not`, `test`, `expr`, `step`, `detector`, `pattern`, `error` or
    /// `unmatched`.
    pub what: &'static str,
    /// The words of the rules file, in one line, cut where they are very long.
    pub text: String,
    /// Where they stand.
    pub place: Location,
    /// How often it could not be decided. For information: it is no branch.
    pub undecided: u64,
    /// Its branches.
    pub sides: Vec<CoveredSide>,
}

/// A branch: one side of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CoveredSide {
    /// Which.
    pub side: Side,
    /// How often cases came to it.
    pub times: u64,
}

/// A policy that is not counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotCounted {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: &'static str,
    /// Where it stands.
    pub place: Location,
    /// Why.
    pub why: WhyNot,
}

/// Why a policy is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// It is off.
    Off,
    /// It acts on the run around the calls, and cases have only calls. A budget of calls is counted.
    OfRun,
}

impl WhyNot {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OfRun => "acts on the run around the calls, which cases do not come to",
        }
    }
}

impl CoveredPlace {
    /// The branches that no case came to, in words: `never false`.
    pub fn missing(&self) -> Option<String> {
        let missing: Vec<&str> =
            self.sides.iter().filter(|side| side.times == 0).map(|side| side.side.missing()).collect();
        let reached = missing.len() < self.sides.len() || self.undecided > 0;
        match (missing.as_slice(), self.what) {
            ([], _) => None,
            (_, "policy") | ([_], _) => Some(missing.join(", ")),
            _ if reached => Some(missing.join(", ")),
            _ => Some("never reached".to_owned()),
        }
    }
}

impl CoverageReport {
    /// Whether at least so many of a hundred branches are covered.
    pub fn reaches(&self, percent: f64) -> bool {
        as_f64(self.covered) * 100.0 >= percent * as_f64(self.total)
    }

    /// All places, with those of `defaults`.
    pub fn places(&self) -> impl Iterator<Item = &CoveredPlace> {
        self.files.iter().flat_map(CoveredFile::places)
    }
}

impl CoveredFile {
    /// All places of the file.
    pub fn places(&self) -> impl Iterator<Item = &CoveredPlace> {
        self.defaults.iter().chain(self.policies.iter().flat_map(|policy| &policy.places))
    }
}

impl Coverage {
    /// What was covered by now. `sources`: the files that the bundle was read from.
    pub fn report(&self, sources: &SourceMap) -> CoverageReport {
        let files: Vec<CoveredFile> =
            self.places.files.iter().filter_map(|source| self.file(*source, sources)).collect();
        let [covered, total] = count(files.iter().flat_map(CoveredFile::places));
        CoverageReport { percent: percent(covered, total), covered, total, files }
    }

    fn file(&self, source: SourceId, sources: &SourceMap) -> Option<CoveredFile> {
        let file = sources.get(source)?.name().to_owned();
        let written = || self.places.written.iter().filter(|written| written.span.source == source);
        let counted = written().filter(|written| written.not_counted.is_none());
        let policies: Vec<CoveredPolicy> = counted
            .filter_map(|written| {
                let of_policy = self.places.of_policies.get(&written.id)?;
                let places = self.places(of_policy.policy..of_policy.end, sources);
                let [covered, total] = count(places.iter());
                let mode = if written.mode == Mode::Shadow { "shadow" } else { "enforce" };
                Some(CoveredPolicy {
                    id: written.id.clone(),
                    kind: written.kind,
                    mode,
                    covered,
                    total,
                    places,
                })
            })
            .collect();
        let unmatched = self.places.unmatched.map_or(0..0, |place| place..place + 1);
        let mut defaults = self.places(unmatched, sources);
        defaults.retain(|default| default.place.file == file);
        let not_counted = written().filter_map(|written| {
            let place = sources.locate(written.span)?;
            Some(NotCounted { id: written.id.clone(), kind: written.kind, place, why: written.not_counted? })
        });
        let not_counted = not_counted.collect();
        let [covered, total] = count(defaults.iter().chain(policies.iter().flat_map(|one| &one.places)));
        let percent = percent(covered, total);
        Some(CoveredFile { file, percent, covered, total, defaults, policies, not_counted })
    }

    /// These places, the first of them first and the others in the order in which they stand.
    fn places(&self, range: Range<usize>, sources: &SourceMap) -> Vec<CoveredPlace> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.places.all.iter().zip(counts.sides.iter().zip(&counts.undecided));
        let mut found: Vec<_> = all.skip(range.start).take(range.len()).collect();
        found.sort_by_key(|(place, _)| (place.what != "policy", place.span.start));
        let covered = found.into_iter().filter_map(|(place, (times, undecided))| {
            let sides = place.sides.iter().zip(times);
            Some(CoveredPlace {
                what: place.what,
                text: words(place.span, sources),
                place: sources.locate(place.span)?,
                undecided: *undecided,
                sides: sides.map(|(side, times)| CoveredSide { side: *side, times: *times }).collect(),
            })
        });
        covered.collect()
    }
}

/// The words of a span, in one line.
fn words(span: Span, sources: &SourceMap) -> String {
    let text = sources.get(span.source).and_then(|source| source.text().get(span.start..span.end));
    let line = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// How many branches are covered, and how many there are.
fn count<'p>(places: impl Iterator<Item = &'p CoveredPlace>) -> [usize; 2] {
    places
        .flat_map(|place| &place.sides)
        .fold([0, 0], |[covered, total], side| [covered + usize::from(side.times > 0), total + 1])
}

fn percent(covered: usize, total: usize) -> f64 {
    let tenths = covered.saturating_mul(1000).checked_div(total).unwrap_or(1000);
    as_f64(tenths) / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "so many branches no bundle has")]
fn as_f64(count: usize) -> f64 {
    count as f64
}
