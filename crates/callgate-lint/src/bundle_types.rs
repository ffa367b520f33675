//! Types of what policies read: schemas of the known tools, definitions and facts of the bundle → type of each value of a call.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use crate::argument_lookup::first_name;
use crate::lint_context::LintContext;
use crate::policy_source::PolicySource;
use crate::schema_type::schema_type;
use callgate::call::Root;
use callgate::json::Value;
use callgate::matcher::NamePattern;
use callgate::path::{ElementName, Path, PathStep};
use callgate::script::{
    Expression, Names, ObjectType, PolicyScript, TypeEnvironment, TypeKind, TypeReport, ValueType,
};
use callgate::source::YamlNode;
use callgate::tools::ToolDescriptor;

/// Kinds that act after the tool, where a script around the tool may have changed the arguments.
const AFTER_TOOL: [&str; 6] = ["audit", "fact", "label", "recover", "redact", "transform"];

/// The names of the elements that an expression can read, and its text.
type ExpressionKey = (Vec<String>, String);

/// The types of what the policies of a bundle read.
pub(super) struct BundleTypes<'c, 'a> {
    checked: &'c LintContext<'a>,
    /// The definitions of named values that count.
    pub(super) lets: HashMap<&'a str, &'a YamlNode>,
    /// The arguments that `transform` policies create or change. `None` if they may change any.
    transformed: Option<HashSet<&'a str>>,
    has_scripts_around: bool,
    /// Whether policies may replace a result after the tool returned it.
    replaces_results: bool,
    facts: OnceCell<BTreeMap<String, ValueType>>,
    schemas: RefCell<HashMap<*const Value, ValueType>>,
    data: RefCell<HashMap<Vec<String>, ValueType>>,
    /// The compiled expressions; `None` for one that is not valid.
    expressions: RefCell<HashMap<ExpressionKey, Option<Rc<Expression>>>>,
}

/// The types of one call: of a tool, or of any.
pub(super) struct CallTypes<'t, 'c, 'a> {
    pub(super) bundle: &'t BundleTypes<'c, 'a>,
    pub(super) tool: Option<&'a ToolDescriptor>,
    input: ValueType,
    result: ValueType,
    /// The names and types of elements, the innermost last.
    pub(super) elements: Vec<(String, ValueType)>,
    named: RefCell<HashMap<String, ValueType>>,
    /// What the definitions that were read report.
    pub(super) in_definitions: RefCell<Vec<(&'a YamlNode, Rc<TypeReport>)>>,
}

impl<'c, 'a> BundleTypes<'c, 'a> {
    pub(super) fn new(checked: &'c LintContext<'a>) -> Self {
        let lets = |of_defaults: bool| {
            let sections = checked.files.iter().filter_map(move |file| match of_defaults {
                true => file.root.get("defaults")?.get("let"),
                false => file.root.get("let"),
            });
            sections.filter_map(YamlNode::entries).flatten().map(|entry| (entry.key.as_str(), &entry.value))
        };
        Self {
            checked,
            // A definition outside `defaults` replaces one under it.
            lets: lets(true).chain(lets(false)).collect(),
            transformed: transformed_arguments(checked),
            has_scripts_around: checked.policies.iter().any(|written| written.has_kind(&["around"])),
            replaces_results: checked.policies.iter().any(|written| {
                written.has_kind(&["redact", "recover"])
                    || written.has_kind(&["transform"]) && written.kind.value.get("output").is_some()
            }),
            facts: OnceCell::new(),
            schemas: RefCell::default(),
            data: RefCell::default(),
            expressions: RefCell::default(),
        }
    }

    fn names(&self) -> &'c Names {
        self.checked.compiled.names()
    }

    /// Compiles an expression. Returns `None` if it is not valid here.
    fn expression(&self, text: &str, elements: &[(String, ValueType)]) -> Option<Rc<Expression>> {
        let element_names = elements.iter().map(|(name, _)| name.clone()).collect();
        let key = (element_names, text.to_owned());
        if let Some(known) = self.expressions.borrow().get(&key) {
            return known.clone();
        }
        let compiled = match elements {
            [] => Expression::compile_with(text, self.names()),
            elements => {
                let mut names = self.names().clone();
                for (name, _) in elements {
                    names.add_element(ElementName { name: name.clone(), ..ElementName::default() });
                }
                Expression::compile_with(text, &names)
            }
        };
        let compiled = compiled.ok().map(Rc::new);
        self.expressions.borrow_mut().insert(key, compiled.clone());
        compiled
    }

    /// The types of the calls of a tool that a policy applies to.
    pub(super) fn call<'t>(
        &'t self,
        written: &PolicySource<'a>,
        tool: Option<&'a ToolDescriptor>,
    ) -> CallTypes<'t, 'c, 'a> {
        let is_changed = self.has_scripts_around && written.has_kind(&AFTER_TOOL);
        let input = match tool.and_then(|tool| tool.input_schema.as_ref()) {
            Some(schema) if !is_changed => self.input_type(schema),
            _ => ValueType::object(ObjectType::default()),
        };
        CallTypes {
            bundle: self,
            tool,
            input,
            result: tool.map_or(ValueType::ANY, |tool| self.result_type(tool)),
            elements: Vec::new(),
            named: RefCell::default(),
            in_definitions: RefCell::default(),
        }
    }

    /// The type of the result that a tool declares: one that does not fit it is undecided.
    fn result_type(&self, tool: &ToolDescriptor) -> ValueType {
        let Some(schema) = tool.output_schema.as_ref().filter(|_| !self.replaces_results) else {
            return ValueType::ANY;
        };
        // Structured content with only this member may wrap the result.
        let members = schema.get("properties").and_then(Value::as_object);
        if members.is_some_and(|members| members.len() == 1 && members.contains_key("result")) {
            return ValueType::ANY;
        }
        let known = self.schemas.borrow().get(&std::ptr::from_ref(schema)).cloned();
        known.unwrap_or_else(|| {
            let declared = schema_type(schema);
            self.schemas.borrow_mut().insert(std::ptr::from_ref(schema), declared.clone());
            declared
        })
    }

    /// The type of the arguments, apart from those that policies change.
    fn input_type(&self, schema: &Value) -> ValueType {
        if let Some(known) = self.schemas.borrow().get(&std::ptr::from_ref(schema)) {
            return known.clone();
        }
        let declared = schema_type(schema);
        let input = match &self.transformed {
            Some(transformed) => {
                let properties = schema.get("properties").and_then(Value::as_object);
                let members = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                let members = members.map(|name| (name.to_owned(), declared.member(name)));
                let any = transformed.iter().map(|name| ((*name).to_owned(), ValueType::ANY));
                ValueType::object(ObjectType {
                    members: members.chain(any).collect(),
                    is_listed: declared.listed_members().is_some(),
                    ..ObjectType::default()
                })
            }
            None => ValueType::object(ObjectType::default()),
        };
        self.schemas.borrow_mut().insert(std::ptr::from_ref(schema), input.clone());
        input
    }

    /// Determines the types of the facts that policies write. Until then, a fact has any value.
    pub(super) fn read_facts(&self) {
        self.facts.get_or_init(|| {
            let mut facts: BTreeMap<String, ValueType> = BTreeMap::new();
            // A redacted value is a string, whatever it was.
            if self.checked.policies.iter().any(|written| written.has_kind(&["redact"])) {
                return facts;
            }
            for written in self.checked.policies.iter().filter(|written| written.has_kind(&["fact"])) {
                let node = &written.kind.value;
                let Some(name) = node.get("name").and_then(YamlNode::as_str) else { continue };
                if node.get("forget").is_some() {
                    continue;
                }
                let written_type = self.fact_type(written, node);
                facts
                    .entry(name.to_owned())
                    .and_modify(|known| *known = known.or(&written_type))
                    .or_insert(written_type);
            }
            facts
        });
    }

    fn fact_type(&self, written: &PolicySource<'a>, node: &YamlNode) -> ValueType {
        let tools = self.checked.tools_for(written);
        let source = node.get("value").or_else(|| node.get("collect")).and_then(YamlNode::as_str);
        let (Some(source), None, false) = (source, node.get("for_each"), tools.is_empty()) else {
            return ValueType::ANY;
        };
        let types = tools.into_iter().map(|tool| self.call(written, Some(tool)).source_type(source));
        let value = ValueType::one_of(types);
        if node.get("collect").is_some() {
            // Each element of an array is added, and any other value itself.
            let element = if value.may_be(TypeKind::Array) { ValueType::ANY } else { value };
            return ValueType::array(element);
        }
        let keys = match node.get("key") {
            Some(key) => key.items().map_or(1, <[YamlNode]>::len),
            None => 0,
        };
        (0..keys).fold(value, |others, _| ValueType::object(ObjectType { others, ..ObjectType::default() }))
    }
}

/// The arguments that `transform` policies create or change. Returns `None` if they may change any.
fn transformed_arguments<'a>(checked: &LintContext<'a>) -> Option<HashSet<&'a str>> {
    let mut transformed = HashSet::new();
    for written in checked.policies.iter().filter(|written| LintContext::changes_input(written)) {
        for step in written.kind.value.get("input").and_then(YamlNode::items).unwrap_or_default() {
            transformed.extend(step.get("rename").and_then(YamlNode::as_str));
            transformed.insert(step.get("path").and_then(YamlNode::as_str).and_then(first_name)?);
        }
    }
    Some(transformed)
}

impl<'a> CallTypes<'_, '_, 'a> {
    /// Checks an expression. Returns `None` if it is not valid here.
    pub(super) fn check(&self, text: &str) -> Option<TypeReport> {
        let expression = self.bundle.expression(text, &self.elements)?;
        Some(expression.check_types(text, self))
    }

    /// Checks a script of a policy. Returns `None` if it is not valid.
    pub(super) fn check_script(&self, text: &str) -> Option<TypeReport> {
        let script = PolicyScript::compile(text, self.bundle.names()).ok()?;
        Some(script.check_types(text, self))
    }

    /// The type of a JSONPath or an expression.
    pub(super) fn source_type(&self, text: &str) -> ValueType {
        match text.trim_start().starts_with('$') {
            true => self.path_type(text),
            false => self.check(text).map_or(ValueType::ANY, |report| report.value),
        }
    }

    /// The type of the value at a path. A path to several values has any.
    pub(super) fn path_type(&self, text: &str) -> ValueType {
        let Ok(path) = Path::parse(text) else { return ValueType::ANY };
        let Some(steps) = path.steps() else { return ValueType::ANY };
        steps.iter().fold(self.member(path.root()), |value, step| match step {
            PathStep::Name(name) => value.member(name),
            PathStep::Index(_) => value.element(),
        })
    }
}

impl TypeEnvironment for CallTypes<'_, '_, '_> {
    fn member(&self, root: Root) -> ValueType {
        match root {
            Root::Input => self.input.clone(),
            Root::Result => self.result.clone(),
            Root::Tool => match self.tool {
                Some(tool) => ValueType::of(&tool.name.as_str().into()),
                None => ValueType::new(TypeKind::String),
            },
            Root::Server => match self.tool.and_then(|tool| tool.server.as_deref()) {
                Some(server) => ValueType::of(&server.into()),
                None => ValueType::new(TypeKind::String),
            },
            Root::Now => ValueType::new(TypeKind::Time),
            Root::Session => {
                let facts = self.bundle.facts.get().cloned().unwrap_or_default();
                let facts = ValueType::object(ObjectType { members: facts, ..ObjectType::default() });
                let labels = ValueType::array(ValueType::new(TypeKind::String));
                let members = [("facts".to_owned(), facts), ("labels".to_owned(), labels)];
                ValueType::object(ObjectType { members: members.into(), ..ObjectType::default() })
            }
            Root::Element(element) => {
                let types = self.elements.iter().rev();
                types
                    .map(|(_, element)| element)
                    .nth(usize::from(element.distance))
                    .cloned()
                    .unwrap_or_default()
            }
            _ => ValueType::ANY,
        }
    }

    fn named(&self, name: &str) -> ValueType {
        if let Some(known) = self.named.borrow().get(name) {
            return known.clone();
        }
        let Some((name, node)) = self.bundle.lets.get_key_value(name) else { return ValueType::ANY };
        let Some(text) = node.as_str() else { return ValueType::new(TypeKind::Boolean) };
        // Definitions read no elements.
        let Some(expression) = self.bundle.expression(text, &[]) else { return ValueType::ANY };
        let report = expression.check_types(text, self);
        let value = report.value.clone();
        self.in_definitions.borrow_mut().push((node, Rc::new(report)));
        self.named.borrow_mut().insert((*name).to_owned(), value.clone());
        value
    }

    fn data(&self, keys: &[String], value: &Value) -> ValueType {
        if let Some(known) = self.bundle.data.borrow().get(keys) {
            return known.clone();
        }
        let known = ValueType::of(value);
        self.bundle.data.borrow_mut().insert(keys.to_vec(), known.clone());
        known
    }

    fn is_tool(&self, patterns: &[NamePattern]) -> Option<bool> {
        let tool = self.tool?;
        Some(patterns.iter().any(|pattern| pattern.matches(&tool.name)))
    }
}
