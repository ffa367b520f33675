//! `model`: changes the configuration of model calls.

use super::{KindDefinition, PolicyKind};
use crate::call::CallView;
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, MISSING_KEY, OUT_OF_RANGE, WRONG_TYPE};
use crate::lifecycle::ModelConfig;
use crate::matcher::{NamePattern, PatternList};
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::source::YamlNode;
use crate::template::Template;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "model",
    doc: "Changes the configuration of model calls: system prompts, sampling parameters and the visible tools. It applies to the run, not \
          to single calls, so its conditions can read only the context and the session.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: true,
    read: |node, reader| Model::read(node, reader).map(Box::new).map(PolicyKind::Model),
};

static RECORD: RecordShape = RecordShape {
    name: "model",
    doc: "The changes, and when they are made.",
    fields: &[
        FieldShape::optional(
            "on",
            Shape::Word(&[
                ("init", "once, at the start of the run"),
                ("before_model", "before each model call"),
            ]),
            "When the changes are made. Default: `before_model`.",
        ),
        FieldShape::optional("system_prompts", Shape::Record(&PROMPTS), "Changes to the system prompts."),
        FieldShape::optional("temperature", Shape::Record(&BOUND), "Sampling temperature."),
        FieldShape::optional("top_p", Shape::Record(&BOUND), "Nucleus sampling (`top_p`)."),
        FieldShape::optional(
            "max_tokens",
            Shape::Record(&TOKENS),
            "Maximum number of tokens that the model may generate.",
        ),
        FieldShape::optional(
            "tools",
            Shape::Record(&TOOLS),
            "The tools that the model sees. This does not replace `deny`: calls are still evaluated in the gate phase.",
        ),
        FieldShape::optional(
            "metadata",
            Shape::Any,
            "A mapping whose members are added to the metadata of the request.",
        ),
        FieldShape::optional(
            "provider_options",
            Shape::Any,
            "A mapping whose members are added to the provider's options.",
        ),
    ],
};

static PROMPTS: RecordShape = RecordShape {
    name: "system_prompts",
    doc: "Changes to the system prompts.",
    fields: &[
        FieldShape::optional(
            "append",
            Shape::OneOrMany(&Shape::String("a template")),
            "Prompts added after the existing ones.",
        ),
        FieldShape::optional(
            "prepend",
            Shape::OneOrMany(&Shape::String("a template")),
            "Prompts added before the existing ones.",
        ),
        FieldShape::optional(
            "replace",
            Shape::OneOrMany(&Shape::String("a template")),
            "Prompts that replace the existing ones.",
        ),
    ],
};

static BOUND: RecordShape = RecordShape {
    name: "bound",
    doc: "A value and its bounds. Bounds have no effect on a parameter that is not set.",
    fields: &[
        FieldShape::optional("set", Shape::Number, "Sets the value."),
        FieldShape::optional("min", Shape::Number, "Minimum value."),
        FieldShape::optional("max", Shape::Number, "Maximum value."),
    ],
};

/// The range of a number of tokens, larger than any model generates.
const COUNT: Shape = Shape::Integer(1, 1_000_000_000);

static TOKENS: RecordShape = RecordShape {
    name: "bound_of_tokens",
    doc: "A number of tokens and its bounds. `min` and `max` have no effect if the number is not set.",
    fields: &[
        FieldShape::optional("set", COUNT, "Sets the number."),
        FieldShape::optional("min", COUNT, "Minimum number."),
        FieldShape::optional("max", COUNT, "Maximum number."),
    ],
};

static TOOLS: RecordShape = RecordShape {
    name: "model_tools",
    doc: "The tools that the model sees.",
    fields: &[
        FieldShape::optional(
            "show",
            Shape::OneOrMany(&Shape::String("a tool's name, a glob or `/regex/`")),
            "Shows only these tools.",
        ),
        FieldShape::optional(
            "hide",
            Shape::OneOrMany(&Shape::String("a tool's name, a glob or `/regex/`")),
            "Hides these tools.",
        ),
    ],
};

/// Settings of a `model` policy.
#[derive(Debug)]
pub struct Model {
    /// Whether the changes are made only at the start of the run.
    pub at_init: bool,
    prepend: Vec<Template>,
    append: Vec<Template>,
    replace: Option<Vec<Template>>,
    temperature: ParameterBounds,
    top_p: ParameterBounds,
    max_tokens: ParameterBounds,
    show: Vec<NamePattern>,
    hide: Vec<NamePattern>,
    metadata: crate::json::Map,
    provider_options: crate::json::Map,
}

/// A value and its bounds.
#[derive(Clone, Copy, Debug, Default)]
struct ParameterBounds {
    set: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
}

impl ParameterBounds {
    fn read(node: Option<&YamlNode>, most: f64, reader: &mut PolicyReader<'_>) -> Self {
        let Some(node) = node else { return Self::default() };
        let mut number = |name: &str| {
            let node = node.get(name)?;
            let number = node.as_number().and_then(crate::json::Number::as_f64)?;
            if !(0.0..=most).contains(&number) {
                let message = match most.is_finite() {
                    true => format!("`{name}` must be a number from 0 to {most}"),
                    false => format!("`{name}` must be a number that is not negative"),
                };
                reader.report(
                    Diagnostic::new(&OUT_OF_RANGE, node.span, message).with_help("write for example `0.7`"),
                );
            }
            Some(number)
        };
        let bound = Self { set: number("set"), min: number("min"), max: number("max") };
        if let (Some(min), Some(max)) = (bound.min, bound.max)
            && min > max
        {
            reader.report(
                Diagnostic::new(&OUT_OF_RANGE, node.span, "`min` is greater than `max`")
                    .with_help("swap them, or remove one"),
            );
        }
        bound
    }

    fn apply_to(self, value: Option<f64>) -> Option<f64> {
        let value = self.set.or(value)?;
        let value = self.min.map_or(value, |min| value.max(min));
        Some(self.max.map_or(value, |max| value.min(max)))
    }
}

impl Model {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let reported = reader.problem_count();
        let changes = RECORD.fields.iter().map(|field| field.name).filter(|name| *name != "on");
        if changes.clone().all(|name| node.get(name).is_none() && !RECORD.has_misspelling_of(node, name)) {
            let names = changes.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "this `model` policy changes nothing")
                    .with_help(format!("add one of {names}")),
            );
        }
        let prompts = node.get("system_prompts");
        let mut templates = |name: &str| -> Option<Vec<Template>> {
            let node = prompts?.get(name)?;
            let one = [node];
            let nodes: Vec<&YamlNode> = match node.items() {
                Some(items) => items.iter().collect(),
                None => one.to_vec(),
            };
            Some(nodes.into_iter().filter_map(|node| reader.read_template(node, &[])).collect())
        };
        let (append, prepend, replace) = (templates("append"), templates("prepend"), templates("replace"));
        if let (Some(prompts), true) = (prompts, replace.is_some() && (append.is_some() || prepend.is_some()))
        {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    prompts.span,
                    "`replace` can't be combined with `append` or `prepend`",
                )
                .with_help("write all prompts under `replace`, or remove it"),
            );
        }
        let temperature = ParameterBounds::read(node.get("temperature"), f64::INFINITY, reader);
        let top_p = ParameterBounds::read(node.get("top_p"), 1.0, reader);
        let max_tokens = ParameterBounds::read(node.get("max_tokens"), f64::INFINITY, reader);
        let patterns = |name: &str, reader: &mut PolicyReader<'_>| {
            let tools = node.get("tools").and_then(|tools| tools.get(name));
            tools.map(|tools| PatternList::read(tools, reader).patterns).unwrap_or_default()
        };
        let (show, hide) = (patterns("show", reader), patterns("hide", reader));
        let mut members = |name: &str| {
            let Some(node) = node.get(name) else { return crate::json::Map::new() };
            match node.to_json() {
                crate::json::Value::Object(members) => members,
                _ => {
                    let message = format!("`{name}` must be a mapping, whose members are added");
                    reader.report(
                        Diagnostic::new(&WRONG_TYPE, node.span, message)
                            .with_help(format!("write for example `{name}: {{ team: red }}`")),
                    );
                    crate::json::Map::new()
                }
            }
        };
        let (metadata, provider_options) = (members("metadata"), members("provider_options"));
        (reader.problem_count() == reported).then(|| Self {
            at_init: node.get("on").and_then(YamlNode::as_str) == Some("init"),
            append: append.unwrap_or_default(),
            prepend: prepend.unwrap_or_default(),
            replace,
            temperature,
            top_p,
            max_tokens,
            show,
            hide,
            metadata,
            provider_options,
        })
    }

    /// Whether it only sets upper bounds and hides tools, which never allows more, in any order.
    pub fn only_restricts(&self) -> bool {
        let only_bounds = |bound: &ParameterBounds| bound.set.is_none() && bound.min.is_none();
        self.prepend.is_empty()
            && self.append.is_empty()
            && self.replace.is_none()
            && [&self.temperature, &self.top_p, &self.max_tokens].into_iter().all(only_bounds)
            && self.metadata.is_empty()
            && self.provider_options.is_empty()
    }

    /// Applies the changes to the configuration of a model call.
    pub fn apply(&self, config: &mut ModelConfig, view: &CallView<'_>) {
        let rendered = |templates: &[Template]| {
            templates.iter().map(|template| template.render(view, &[]).text).collect::<Vec<_>>()
        };
        if let Some(replace) = &self.replace {
            config.system_prompts = rendered(replace);
        }
        config.system_prompts.splice(0..0, rendered(&self.prepend));
        config.system_prompts.extend(rendered(&self.append));
        config.temperature = self.temperature.apply_to(config.temperature);
        config.top_p = self.top_p.apply_to(config.top_p);
        // A number of tokens is whole: round down.
        let tokens = self.max_tokens.apply_to(config.max_tokens.map(|tokens| tokens as f64));
        config.max_tokens = tokens.map(|tokens| tokens.max(0.0) as u64);
        let any = |patterns: &[NamePattern], name: &str| patterns.iter().any(|pattern| pattern.matches(name));
        config.tools.retain(|tool| {
            (self.show.is_empty() || any(&self.show, &tool.name)) && !any(&self.hide, &tool.name)
        });
        config.metadata.extend(self.metadata.clone());
        config.provider_options.extend(self.provider_options.clone());
    }
}
