//! The coverage report, as data. The serialized form is a contract: members are added, never changed.

use std::ops::Range;
use std::sync::PoisonError;

use serde::Serialize;

use super::Coverage;
use super::branch_kind::BranchKind;
use callgate::diagnostic::{Location, SourceId, SourceMap, Span};
use callgate::policy::Mode;

/// The maximum length of a coverage point's text, in characters.
const MAX_TEXT: usize = 200;

/// The branch coverage of a bundle by the cases of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoverageReport {
    /// The percentage of covered branches, rounded down to a tenth: 100 only if no branch is missing.
    pub percent: f64,
    /// The number of covered branches.
    pub covered: usize,
    /// The number of all branches.
    pub total: usize,
    /// The rules files, in the order they were read.
    pub files: Vec<CoveredFile>,
}

/// The branch coverage of a rules file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoveredFile {
    /// The file's name, as given or found.
    pub file: String,
    /// The percentage of covered branches, as in the report.
    pub percent: f64,
    /// The number of covered branches.
    pub covered: usize,
    /// The number of all branches.
    pub total: usize,
    /// `defaults.unmatched`, if this file sets it and it stops calls.
    pub defaults: Vec<CoveredPoint>,
    /// The boolean named values, and the patterns of groups, that policies use.
    pub definitions: Vec<CoveredPoint>,
    /// The counted policies, in file order.
    pub policies: Vec<CoveredPolicy>,
    /// The policies that are not counted, and why.
    pub not_counted: Vec<UncountedPolicy>,
}

/// The branch coverage of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoveredPolicy {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: &'static str,
    /// `enforce` or `shadow`.
    pub mode: &'static str,
    /// The number of covered branches.
    pub covered: usize,
    /// The number of all branches of the policy.
    pub total: usize,
    /// The policy as a whole, then its other coverage points in file order.
    pub places: Vec<CoveredPoint>,
}

/// A coverage point of a rules file: an element with branches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoveredPoint {
    /// The kind of point: `policy`, `kind`, `tool`, `server`, `all`, `any`, `not`, `test`, `expr`, `step`, `detector`, `pattern`,
    /// `error`, `value`, `let`, `group`, `function`, `arm` or `unmatched`.
    pub what: &'static str,
    /// The text of the rules file, in one line, truncated if very long.
    pub text: String,
    /// The location of the text.
    pub place: Location,
    /// How often the point was undecided. For information only: this is not a branch.
    pub undecided: u64,
    /// The branches of the point.
    pub sides: Vec<CoveredBranch>,
}

/// A branch of a coverage point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CoveredBranch {
    /// The kind of branch.
    pub side: BranchKind,
    /// How often cases took the branch.
    pub times: u64,
}

/// A policy that is not counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncountedPolicy {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: &'static str,
    /// The policy's location.
    pub place: Location,
    /// Why it is not counted.
    pub why: UncountedReason,
}

/// Why a policy is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UncountedReason {
    /// The policy is off.
    Off,
    /// The policy acts on the run, and cases consist of calls only. A budget of calls is counted.
    OfRun,
}

impl UncountedReason {
    /// The reason as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OfRun => "acts on the run, which cases do not test",
        }
    }
}

impl CoveredPoint {
    /// A description of the missing branches, such as `never false`. Returns `None` if all are covered.
    pub fn missing(&self) -> Option<String> {
        let missing: Vec<&str> =
            self.sides.iter().filter(|side| side.times == 0).map(|side| side.side.missing_text()).collect();
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
    /// Whether at least this percentage of the branches is covered.
    pub fn reaches(&self, percent: f64) -> bool {
        as_f64(self.covered) * 100.0 >= percent * as_f64(self.total)
    }

    /// All coverage points, including those of `defaults`.
    pub fn points(&self) -> impl Iterator<Item = &CoveredPoint> {
        self.files.iter().flat_map(CoveredFile::points)
    }
}

impl CoveredFile {
    /// All coverage points of the file.
    pub fn points(&self) -> impl Iterator<Item = &CoveredPoint> {
        let shared = self.defaults.iter().chain(&self.definitions);
        shared.chain(self.policies.iter().flat_map(|policy| &policy.places))
    }
}

impl Coverage {
    /// The coverage so far. `sources`: the files that the bundle was read from.
    pub fn report(&self, sources: &SourceMap) -> CoverageReport {
        let files: Vec<CoveredFile> =
            self.points.files.iter().filter_map(|source| self.file_report(*source, sources)).collect();
        let [covered, total] = count_branches(files.iter().flat_map(CoveredFile::points));
        CoverageReport { percent: percent(covered, total), covered, total, files }
    }

    fn file_report(&self, source: SourceId, sources: &SourceMap) -> Option<CoveredFile> {
        let file = sources.get(source)?.name().to_owned();
        let written = || self.points.policies.iter().filter(|written| written.span.source == source);
        let counted = written().filter(|written| written.not_counted.is_none());
        let policies: Vec<CoveredPolicy> = counted
            .filter_map(|written| {
                let of_policy = self.points.by_policy.get(&written.id)?;
                let places = self.covered_points(of_policy.policy..of_policy.end, sources);
                let [covered, total] = count_branches(places.iter());
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
        let unmatched = self.points.unmatched.map_or(0..0, |index| index..index + 1);
        let mut defaults = self.covered_points(unmatched, sources);
        defaults.retain(|default| default.place.file == file);
        let mut definitions = self.covered_points(self.points.definitions.clone(), sources);
        definitions.retain(|definition| definition.place.file == file);
        let not_counted = written().filter_map(|written| {
            let place = sources.locate(written.span)?;
            Some(UncountedPolicy {
                id: written.id.clone(),
                kind: written.kind,
                place,
                why: written.not_counted?,
            })
        });
        let not_counted = not_counted.collect();
        let [covered, total] = count_branches(
            defaults.iter().chain(&definitions).chain(policies.iter().flat_map(|one| &one.places)),
        );
        let percent = percent(covered, total);
        Some(CoveredFile { file, percent, covered, total, defaults, definitions, policies, not_counted })
    }

    /// The coverage points of this range: the policy as a whole first, then the others in file order.
    fn covered_points(&self, range: Range<usize>, sources: &SourceMap) -> Vec<CoveredPoint> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.points.all.iter().zip(counts.branches.iter().zip(&counts.undecided));
        let mut found: Vec<_> = all.skip(range.start).take(range.len()).collect();
        found.sort_by_key(|(point, _)| (point.what != "policy", point.span.start()));
        let covered = found.into_iter().filter_map(|(point, (times, undecided))| {
            let sides = point.branches.iter().zip(times);
            Some(CoveredPoint {
                what: point.what,
                text: span_text(point.span, sources),
                place: sources.locate(point.span)?,
                undecided: *undecided,
                sides: sides.map(|(side, times)| CoveredBranch { side: *side, times: *times }).collect(),
            })
        });
        covered.collect()
    }
}

/// The text of a span, in one line, truncated.
fn span_text(span: Span, sources: &SourceMap) -> String {
    let text = sources.get(span.source).and_then(|source| source.text().get(span.start()..span.end()));
    let line = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The numbers of covered branches and of all branches.
fn count_branches<'p>(points: impl Iterator<Item = &'p CoveredPoint>) -> [usize; 2] {
    points
        .flat_map(|point| &point.sides)
        .fold([0, 0], |[covered, total], side| [covered + usize::from(side.times > 0), total + 1])
}

fn percent(covered: usize, total: usize) -> f64 {
    let tenths = covered.saturating_mul(1000).checked_div(total).unwrap_or(1000);
    as_f64(tenths) / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "no bundle has that many branches")]
fn as_f64(count: usize) -> f64 {
    count as f64
}
