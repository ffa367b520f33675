//! Matcher of a policy: patterns for tool and server, and conditions over the call document. Call → [`Truth`].

mod comparison;
mod condition;
mod condition_shape;
mod detection;
mod examination;
mod examination_result;
mod folded_comparison;
mod length_bounds;
mod method_pattern;
mod mention;
mod operand;
mod operand_set;
mod operator;
mod pattern_list;
mod requirement;
mod scalar_key;
mod scalar_test;
mod field_test;
mod time_test;
mod truth;
mod value_index;
mod value_source;
mod work_units;

pub use crate::name_pattern::NamePattern;
pub use condition::{Condition, ITEM, MAX_ELEMENTS, ShellQuantifier};
pub use condition_shape::{
    CONDITION_RECORD, CONDITION_SHAPE, ELEMENTS_RECORD, EXPR_KEY, OPTION_KEYS, SHELL_KEY, SHELL_RECORD,
};
pub use examination_result::{
    ExaminedCommand, ExaminedCondition, ExaminedElement, ExaminedElements, ExaminedForm, ExaminedMatcher,
    ExaminedOperand, ExaminedOperator, ExaminedPattern, ExaminedShell, ExaminedTest, ExaminedValue,
    TestedValues,
};
pub use field_test::{FieldTest, Quantifier};
pub use pattern_list::{PatternList, read_patterns};
pub use requirement::Requirement;
pub use scalar_key::ScalarKey;
pub use scalar_test::{Scalar, ScalarTest};
pub use truth::Truth;
pub use value_source::{ExpressionText, ValueSource};

use crate::call::{CallView, method_name};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, EMPTY_VALUE, Span};
use crate::rules_schema::{FieldShape, PolicyReader, RecordShape, Shape};
use crate::source::{YamlNode, YamlValue};

const PATTERN: Shape =
    Shape::String("an exact name, a glob such as `refund.*`, or a regular expression such as `/^admin/`");

const METHOD: Shape = Shape::String("a method such as `resources/read`, or a glob such as `resources/*`");

static MATCHER: RecordShape = RecordShape {
    name: "matcher",
    doc: "The calls that a policy applies to. All keys must match.",
    fields: &[
        FieldShape::optional(
            "tool",
            Shape::OneOrMany(&PATTERN),
            "The tool's name, without its server. Default: every tool.",
        ),
        FieldShape::optional(
            "server",
            Shape::OneOrMany(&PATTERN),
            "The name of the MCP server that provides the tool. Default: every server.",
        ),
        FieldShape::optional(
            "method",
            Shape::OneOrMany(&METHOD),
            "The MCP method of requests through the gateway, instead of tool calls: `resources/read`, `prompts/*`, \
             `sampling/createMessage`. `$.input` is the parameters. Excludes `tool`.",
        ),
        FieldShape::optional("where", Shape::OneOrMany(&CONDITION_SHAPE), "Conditions that must all hold."),
    ],
};

/// The shape of `match:`.
pub static MATCH_SHAPE: Shape =
    Shape::Either(&[PATTERN, Shape::NonEmptyList(&PATTERN), Shape::Record(&MATCHER)]);

/// A compiled `match:`, the calls that a policy applies to.
#[derive(Debug, Default)]
pub struct Matcher {
    /// Patterns for tools, of which one must match. Empty for every tool. For requests by methods, patterns for [qualified
    /// names](crate::call::METHOD_PREFIX) of methods.
    pub tools: Vec<NamePattern>,
    /// Patterns for servers, of which one must match. Empty for every call, also one without a server.
    pub servers: Vec<NamePattern>,
    /// The condition that must hold, if there is one.
    pub condition: Option<Condition>,
    /// It matches requests by methods, and no calls of tools.
    pub is_for_methods: bool,
    /// The locations of the patterns for tools, and of those for servers.
    pattern_spans: [Box<[Span]>; 2],
}

impl Matcher {
    /// Reads `match:` and reports problems to `reader`.
    pub fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Self {
        if !matches!(node.value, YamlValue::Mapping(_)) {
            let PatternList { patterns: tools, spans } = PatternList::read(node, reader);
            let pattern_spans = [spans.into(), Box::default()];
            return Self { tools, pattern_spans, ..Self::default() };
        }
        if node.entries().is_some_and(<[_]>::is_empty) {
            reader.report(
                Diagnostic::new(&EMPTY_VALUE, node.span, "`match` is empty")
                    .with_help("`match: \"*\"` matches every tool"),
            );
        }
        let methods = node.get("method");
        let tools = match (node.get("tool"), methods) {
            (tool, Some(method)) => {
                if let Some(tool) = tool {
                    let message = "`tool` and `method` exclude each other";
                    reader.report(
                        Diagnostic::new(&CONFLICTING_KEYS, tool.span, message)
                            .with_label(method.span, "the methods")
                            .with_help("write one policy for tools and one for methods"),
                    );
                }
                method_pattern::read(method, reader)
            }
            (tool, None) => tool.map(|node| PatternList::read(node, reader)).unwrap_or_default(),
        };
        let servers = node.get("server").map(|node| PatternList::read(node, reader)).unwrap_or_default();
        let condition = node.get("where").and_then(|node| Condition::read_all(node, reader));
        let pattern_spans = [tools.spans.into(), servers.spans.into()];
        Self {
            tools: tools.patterns,
            servers: servers.patterns,
            condition,
            is_for_methods: methods.is_some(),
            pattern_spans,
        }
    }

    /// The location of each pattern for tools: for a pattern of a group, that of the group's name.
    pub fn tool_spans(&self) -> &[Span] {
        let [tools, _] = &self.pattern_spans;
        tools
    }

    /// Reads the `match:` of a policy that applies to a run instead of to calls. It can only have `where`.
    pub fn read_for_run(node: &YamlNode, kind: &str, reader: &mut PolicyReader<'_>) -> Self {
        let mut refuse = |span, key: &str| {
            let message = format!("a `{kind}` policy applies to a run, which has no {key}");
            reader.report(Diagnostic::new(&CONFLICTING_KEYS, span, message).with_help(
                "remove it: `match` can only have `where` here, over `$.context` and `$.session`",
            ));
        };
        let Some(entries) = node.entries() else {
            refuse(node.span, "tool");
            return Self::default();
        };
        for entry in entries.iter().filter(|entry| names_calls(&entry.key)) {
            refuse(entry.key_span, &entry.key);
        }
        let names = entries.iter().any(|entry| names_calls(&entry.key));
        if names { Self::default() } else { Self::read(node, reader) }
    }

    /// Whether the patterns match a tool of a server. `server` is empty for a call without a server.
    pub fn matches_tool(&self, server: &str, tool: &str) -> bool {
        let matches =
            |patterns: &[NamePattern], name| patterns.is_empty() || patterns.iter().any(|p| p.matches(name));
        self.is_for(tool) && matches(&self.tools, tool) && matches(&self.servers, server)
    }

    /// Whether a name is one of those that the patterns are for: of tools, or of methods.
    pub fn is_for(&self, tool: &str) -> bool {
        self.is_for_methods == method_name(tool).is_some()
    }

    /// Whether `self` is certain to match the tool and the server of every call that `narrow` matches.
    pub fn covers_names_of(&self, narrow: &Self) -> bool {
        self.is_for_methods == narrow.is_for_methods
            && NamePattern::covers_all(&self.tools, &narrow.tools)
            && NamePattern::covers_all(&self.servers, &narrow.servers)
    }

    /// Evaluates the conditions for a call whose tool and server match.
    pub fn eval(&self, view: &CallView<'_>) -> Truth {
        self.condition.as_ref().map_or(Truth::Yes, |condition| condition.eval(view))
    }
}

/// Whether a key of `match` concerns calls, which a run does not have.
fn names_calls(key: &str) -> bool {
    matches!(key, "tool" | "server" | "method")
}
