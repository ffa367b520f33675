//! Operators of a test: reads them from the rules and evaluates them for a value.

use regex::Regex;

use super::comparison::{self, FieldComparison, any_matches, with_string};
use super::detection::Detection;
use super::folded_comparison::{FoldedComparison, read_folding};
use super::length_bounds::LengthBounds;
use super::mention::Mention;
use super::operand::{Operand, PatternSet};
use super::operand_set::OperandSet;
use super::requirement::{RequiredParts, Requirement};
use super::scalar_key::ScalarKey;
use super::scalar_test::ScalarComparison;
use super::time_test::TimeTest;
use super::truth::Truth;
use super::work_units::{node_cost, spend_for};
use crate::address::{Directory, DomainPattern, HostPattern, every_domain_matches};
use crate::call::{CallView, NodeRef, WordForms};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_OPERAND};
use crate::json::Value;
use crate::rules_schema::PolicyReader;
use crate::source;

/// Examples of patterns for hosts and domains.
const HOST_EXAMPLES: &str = "`example.com`, or `*.example.com` for its subdomains";

/// The most literals of a scalar comparison, which tries one after the other.
const MAX_SCALARS: usize = 8;

/// A compiled operator of a test.
#[derive(Debug)]
pub enum Operator {
    Compare(FieldComparison, Operand),
    In {
        set: OperandSet,
        negated: bool,
    },
    Contains(Operand),
    ContainsAny(OperandSet),
    StartsWith(PatternSet<String>),
    EndsWith(PatternSet<String>),
    Matches(Box<RegexOperands>),
    Type(Vec<String>),
    Length(LengthBounds),
    Inside(Box<DirectoryOperands>),
    Host(PatternSet<HostPattern>),
    Domain(PatternSet<DomainPattern>),
    MentionedIn(Mention),
    Detects(Box<Detection>),
    Folded(Box<FoldedComparison>),
    /// A test of a timestamp, with its operand as written.
    Time(Box<(TimeTest, Value)>),
}

/// Regular expressions.
#[derive(Debug)]
pub struct RegexOperands {
    pub(super) regexes: Box<[Regex]>,
    pub(super) texts: Box<[String]>,
    /// What an index searches for.
    parts: RequiredParts,
}

/// Directories, and the one that relative paths start from.
#[derive(Debug)]
pub struct DirectoryOperands {
    pub(super) directories: PatternSet<Directory>,
    base: Option<String>,
}

impl Operator {
    /// Reads the operators of a test. An invalid one is reported and is `None` in the result.
    pub fn read_all(test: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Vec<Option<Self>> {
        let base = test.get("base").and_then(source::YamlNode::as_str);
        let relative =
            test.get("base").filter(|node| node.as_str().is_some_and(|base| !base.starts_with('/')));
        if let Some(node) = relative {
            reader.report(
                Diagnostic::new(&INVALID_OPERAND, node.span, "`base` must be an absolute directory")
                    .with_help("write for example `base: /srv`"),
            );
            return vec![None];
        }
        let Some(folding) = read_folding(test, reader) else { return vec![None] };
        Mention::check_options(test, reader);
        let entries = test.entries().unwrap_or_default().iter();
        let operators = entries.filter_map(|entry| match entry.key.as_str() {
            key if !folding.is_exact() && FoldedComparison::is_foldable(key) => {
                let comparison = FoldedComparison::read(key, &entry.value, folding, reader);
                Some(comparison.map(|comparison| Self::Folded(Box::new(comparison))))
            }
            "mentioned_in" => Some(Mention::read(&entry.value, test, reader).map(Self::MentionedIn)),
            key => match TimeTest::read(key, &entry.value, reader) {
                Some(test) => Some(test.map(|test| Self::Time(Box::new((test, entry.value.to_json()))))),
                None => Self::read(key, &entry.value, base, reader),
            },
        });
        let operators = operators.collect();
        if let (Some(base), None) = (test.get("base"), test.get("inside")) {
            reader.report(
                Diagnostic::new(&CONFLICTING_KEYS, base.span, "`base` has no effect without `inside`")
                    .with_help("add `inside:`, or remove `base`"),
            );
        }
        operators
    }

    /// Reads one operator. Returns `None` if the key is not an operator, and `Some(None)` if the operator is invalid.
    fn read(
        key: &str,
        node: &source::YamlNode,
        base: Option<&str>,
        reader: &mut PolicyReader<'_>,
    ) -> Option<Option<Self>> {
        if let Some(comparison) = FieldComparison::ALL.into_iter().find(|comparison| comparison.name() == key)
        {
            let operand = Operand::read(node, reader);
            return Some(operand.and_then(|operand| read_comparison(comparison, operand, node, reader)));
        }
        Some(match key {
            "in" | "not_in" => {
                OperandSet::read(node, reader).map(|set| Self::In { set, negated: key == "not_in" })
            }
            "contains" => Operand::read(node, reader).map(Self::Contains),
            "starts_with" => PatternSet::read(node, reader, "`abc`", parse_plain).map(Self::StartsWith),
            "ends_with" => PatternSet::read(node, reader, "`abc`", parse_plain).map(Self::EndsWith),
            "contains_any" => OperandSet::read_parts(node, reader).map(Self::ContainsAny),
            "matches" => read_regexes(node, reader),
            "detects" => Detection::read(node, reader).map(|detection| Self::Detects(Box::new(detection))),
            "type" => {
                let words = node.items().unwrap_or(std::slice::from_ref(node)).iter();
                words.map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>().map(Self::Type)
            }
            "length" => LengthBounds::read(node, reader).map(Self::Length),
            "inside" => {
                PatternSet::read(node, reader, "`/srv/data`, or set `base:` for relative paths", |text| {
                    Directory::parse(text, base)
                })
                .map(|directories| {
                    Self::Inside(Box::new(DirectoryOperands { directories, base: base.map(str::to_owned) }))
                })
            }
            "host" => PatternSet::read(node, reader, HOST_EXAMPLES, HostPattern::parse).map(Self::Host),
            "domain" => PatternSet::read(node, reader, HOST_EXAMPLES, DomainPattern::parse).map(Self::Domain),
            _ => return None,
        })
    }

    /// Evaluates the operator for a value. Reasons refer to the value as "it".
    pub fn eval(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        if let (NodeRef::Time(time), false) = (node, matches!(self, Self::Compare(..) | Self::Time(..))) {
            let found = time.value.type_name();
            return Truth::Undecided(format!("it is of type {found}, and this operator takes other types"));
        }
        match self {
            Self::Time(time) => time.0.eval(node, view),
            Self::Compare(comparison, operand) => {
                operand.evaluate(view, |operand| comparison.eval(node, operand))
            }
            Self::In { set, negated } => {
                let operator = if *negated { "not_in" } else { "in" };
                let found = set.has_equal(node, operator, view);
                if *negated { !found } else { found }
            }
            Self::Contains(operand) => operand.evaluate(view, |operand| comparison::contains(node, operand)),
            Self::ContainsAny(set) => set.has_part_of(node, view),
            Self::StartsWith(texts) => with_string(node, "starts_with", |text| {
                texts.evaluate(view, parse_plain, |texts| {
                    any_of_texts(texts, |start| text.starts_with(start.as_str()))
                })
            }),
            Self::EndsWith(texts) => with_string(node, "ends_with", |text| {
                texts.evaluate(view, parse_plain, |texts| {
                    any_of_texts(texts, |end| text.ends_with(end.as_str()))
                })
            }),
            Self::Matches(operands) => with_string(node, "matches", |text| {
                operands.regexes.iter().any(|regex| regex.is_match(text)).into()
            }),
            Self::Type(words) => words.iter().any(|word| comparison::is_of_type(node, word)).into(),
            Self::Length(bounds) => bounds.eval(node),
            Self::Inside(operands) => with_string(node, "inside", |text| {
                operands.directories.evaluate(
                    view,
                    |operand| Directory::parse(operand, operands.base.as_deref()),
                    |directories| any_matches(directories, text, |directory| directory.contains(text)),
                )
            }),
            Self::Host(patterns) => with_string(node, "host", |text| {
                patterns.evaluate(view, HostPattern::parse, |patterns| {
                    any_matches(patterns, text, |pattern| pattern.matches(text))
                })
            }),
            Self::Domain(patterns) => with_string(node, "domain", |text| {
                patterns.evaluate(view, DomainPattern::parse, |patterns| {
                    match spend_for(patterns.len().saturating_mul(text.len().saturating_add(8)), 1) {
                        Ok(()) => every_domain_matches(patterns, text)
                            .map_or_else(|why| Truth::Undecided(why.to_string()), Truth::from),
                        Err(exceeded) => exceeded,
                    }
                })
            }),
            Self::MentionedIn(mention) => mention.eval(node, view),
            Self::Detects(detection) => detection.eval(node),
            Self::Folded(comparison) => comparison.eval(node, view),
        }
    }

    /// Evaluates the operator for a value of the arguments, which the agent controls. If the operator treats strings differently from
    /// arrays and objects, the result is undecided for a string that is wrapped in one of these.
    pub fn eval_argument(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        let truth = self.eval(node, view);
        let Some(value) = node.as_json() else { return truth };
        let hides_string = match (self, &truth) {
            (Self::Contains(_) | Self::ContainsAny(_) | Self::Folded(_), Truth::No) => {
                let holds = |item| self.eval(NodeRef::Json(item), view) == Truth::Yes;
                value.as_array().is_some_and(|items| items.iter().any(holds))
            }
            (Self::Length(LengthBounds { of: None, .. }), Truth::Yes | Truth::No) => {
                comparison::any_nested_string(value, &mut |text| {
                    self.eval(NodeRef::Json(text), view) != truth
                })
            }
            _ => false,
        };
        match (hides_string, self) {
            (false, _) => truth,
            (true, Self::Length(_)) => Truth::Undecided(
                "a string in it would give another result: set `of` to `items`, `members` or `characters` in `length`".to_owned(),
            ),
            (true, _) => Truth::Undecided("it is an array with an item for which the test holds".to_owned()),
        }
    }

    /// Evaluates the operator for a word of a shell command. Returns `None` if it reads the word's text.
    pub(super) fn eval_word(&self, forms: &WordForms, view: &CallView<'_>) -> Option<Truth> {
        match (self, &forms.paths) {
            (Self::Inside(_), Some(paths)) => {
                let truths: Vec<Truth> =
                    paths.iter().map(|path| self.eval(NodeRef::Text(path), view)).collect();
                let same = truths.first().filter(|first| truths.iter().all(|truth| truth == *first)).cloned();
                Some(same.unwrap_or_else(|| Truth::Undecided("it is one of several paths".to_owned())))
            }
            (Self::Inside(_), None) => {
                Some(Truth::Undecided("its directory is known only when it runs".to_owned()))
            }
            _ if forms.is_pattern => Some(Truth::Undecided("it is a pattern of file names".to_owned())),
            _ => None,
        }
    }

    /// Returns the cost of evaluating the operator for a value, in work units.
    pub(super) fn cost(&self, node: NodeRef<'_>) -> u64 {
        let operands = match self {
            Self::In { set: OperandSet::Literals(literals), .. }
            | Self::ContainsAny(OperandSet::Literals(literals)) => literals.len(),
            Self::Matches(operands) => operands.regexes.len(),
            _ => 1,
        };
        let value = node_cost(node);
        let units = match self {
            // These inspect every byte. Those with patterns spend more for each of them.
            Self::Matches(_) | Self::MentionedIn(_) | Self::Detects(_) | Self::Folded(_) => {
                operands.saturating_mul(value.saturating_mul(8))
            }
            _ => operands.saturating_mul(1 + value),
        };
        1 + units as u64
    }

    /// Returns the comparison with literals of one type, if the operator is one.
    pub(super) fn as_scalar_comparison(&self) -> Option<ScalarComparison> {
        Some(match self {
            Self::Compare(comparison, Operand::Literal(literal)) => match (comparison, literal) {
                (_, Value::String(text)) => ScalarComparison::Text(*comparison, text.as_str().into()),
                (_, Value::Number(number)) => ScalarComparison::Number(*comparison, number.clone()),
                (FieldComparison::Eq | FieldComparison::Ne, Value::Bool(value)) => {
                    ScalarComparison::Boolean { value: *value, negated: *comparison == FieldComparison::Ne }
                }
                _ => return None,
            },
            Self::In { set: OperandSet::Literals(values), negated } if values.len() <= MAX_SCALARS => {
                let texts = values.iter().map(|value| value.as_str().map(Box::from));
                ScalarComparison::OneOf { texts: texts.collect::<Option<_>>()?, negated: *negated }
            }
            Self::StartsWith(PatternSet::Literals(starts, _)) if starts.len() <= MAX_SCALARS => {
                ScalarComparison::StartsWith(starts.clone())
            }
            Self::EndsWith(PatternSet::Literals(ends, _)) if ends.len() <= MAX_SCALARS => {
                ScalarComparison::EndsWith(ends.clone())
            }
            Self::Contains(Operand::Literal(Value::String(part))) => {
                ScalarComparison::Contains(part.as_str().into())
            }
            _ => return None,
        })
    }

    /// What a value must be for the operator to hold. Returns `None` if no index can look it up.
    pub(super) fn requirement(&self) -> Option<Requirement<'_>> {
        Some(match self {
            Self::Compare(
                FieldComparison::Gt | FieldComparison::Gte,
                Operand::Literal(Value::Number(bound)),
            ) => Requirement::AtLeast(bound),
            Self::Compare(
                FieldComparison::Lt | FieldComparison::Lte,
                Operand::Literal(Value::Number(bound)),
            ) => Requirement::AtMost(bound),
            Self::StartsWith(PatternSet::Literals(starts, _)) => Requirement::Start(starts),
            Self::EndsWith(PatternSet::Literals(ends, _)) => Requirement::End(ends),
            Self::Contains(Operand::Literal(Value::String(part))) => Requirement::Part(vec![part]),
            Self::Matches(operands) => {
                Requirement::Part(operands.parts.of(&operands.texts)?.iter().map(String::as_str).collect())
            }
            Self::Inside(operands) => match &operands.directories {
                PatternSet::Literals(directories, _) => Requirement::Inside(directories),
                PatternSet::Source(_) => return None,
            },
            Self::Host(PatternSet::Literals(hosts, _)) => Requirement::Host(hosts),
            _ => {
                let keys = self.required_literals()?.iter();
                let keys: Vec<_> =
                    keys.map(|value| ScalarKey::from_node(NodeRef::Json(value))).collect::<Option<_>>()?;
                let first = keys.first()?.json_type();
                return keys.iter().all(|key| key.json_type() == first).then_some(Requirement::OneOf(keys));
            }
        })
    }

    /// Returns the literals of which the value must equal one. Returns `None` for other operators.
    fn required_literals(&self) -> Option<&[Value]> {
        match self {
            Self::Compare(FieldComparison::Eq, Operand::Literal(value)) => Some(std::slice::from_ref(value)),
            Self::In { set: OperandSet::Literals(values), negated: false } => Some(values),
            _ => None,
        }
    }
}

/// Reads a regular expression, or several.
fn read_regexes(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Operator> {
    let items = node.items().unwrap_or(std::slice::from_ref(node)).iter();
    let regexes: Vec<Option<Regex>> = items.map(|item| reader.read_regex(item)).collect();
    let regexes: Box<[Regex]> = regexes.into_iter().collect::<Option<_>>()?;
    let texts = regexes.iter().map(|regex| regex.as_str().to_owned()).collect();
    Some(Operator::Matches(Box::new(RegexOperands { regexes, texts, parts: RequiredParts::default() })))
}

fn parse_plain(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Whether a test holds for one of some texts.
fn any_of_texts(texts: &[String], test: impl Fn(&String) -> bool) -> Truth {
    spend_for(texts.len(), 4).map_or_else(|exceeded| exceeded, |()| texts.iter().any(test).into())
}

/// Returns the comparison. Reports an operand of `gt`, `gte`, `lt` or `lte` that has no order.
fn read_comparison(
    comparison: FieldComparison,
    operand: Operand,
    node: &source::YamlNode,
    reader: &mut PolicyReader<'_>,
) -> Option<Operator> {
    let ordered = match &operand {
        Operand::Literal(value) => value.is_number() || value.is_string(),
        Operand::Source(_) => true,
    };
    if ordered || matches!(comparison, FieldComparison::Eq | FieldComparison::Ne) {
        return Some(Operator::Compare(comparison, operand));
    }
    reader.report(
        Diagnostic::new(
            &INVALID_OPERAND,
            node.span,
            format!("`{}` compares numbers or strings; this is {}", comparison.name(), node.type_name()),
        )
        .with_help("write a number, a string, `{ path: … }` or `{ expr: … }`"),
    );
    None
}
