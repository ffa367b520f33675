//! Where a test or a policy reads a value: a JSONPath, or an expression. Call → values.

use super::truth::Truth;
use crate::call::{CallView, ElementMemo, NodeRef, Root, WordForms};
use crate::json::Value;
use crate::path::{ElementName, ElementNames, Path, PathStep};
use crate::rules_schema::{FieldShape, PolicyReader, RecordShape, Shape};
use crate::script::{Expression, ExpressionError, ExpressionValue};
use crate::source::YamlNode;

/// What a valid expression looks like, for messages.
const EXAMPLE: &str = "write an expression such as `input.amount * 100`";

/// The shape of `{ path: … }` as an operand.
pub static PATH_OPERAND: RecordShape = RecordShape {
    name: "path_operand",
    doc: "A value of the call document to compare with.",
    fields: &[
        FieldShape::optional(
            "path",
            Shape::String("a JSONPath such as `$.context.tenant`"),
            "The path of the value.",
        ),
        FieldShape::optional(
            "expr",
            Shape::String("an expression such as `order.amount * 2`"),
            "An expression over the members of the call and the names of the bundle, in place of `path`.",
        ),
    ],
};

/// A compiled path or expression.
#[derive(Debug)]
pub enum ValueSource {
    /// A path, which may lead to several values.
    Path(Path),
    /// An expression, which has at most one value.
    Expression(Box<ExpressionText>),
}

/// A compiled expression with its text.
#[derive(Debug)]
pub struct ExpressionText {
    /// The text in the rules.
    pub text: String,
    /// The expression.
    pub expression: Expression,
}

impl ExpressionText {
    /// Reads an expression and reports problems to `reader`.
    pub fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let expression = reader.read_expression(node, EXAMPLE)?;
        Some(Self { text: node.as_str()?.to_owned(), expression })
    }

    /// Why it has no value. The reason of a named value names it already.
    fn describe_failure(&self, error: &ExpressionError) -> String {
        match self.expression.as_named() {
            Some(_) => error.message.clone(),
            None => format!("`{}` failed: {}", self.text, error.message),
        }
    }
}

impl ValueSource {
    /// Reads a string: one that starts with `$` is a JSONPath, any other is an expression.
    pub fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        match node.as_str()?.trim_start().starts_with('$') {
            true => Self::read_path(node, reader),
            false => Self::read_expression(node, reader),
        }
    }

    /// Reads a JSONPath. One to a constant of the bundle, such as `$.data.limits.pay`, is an expression: `data.limits.pay`.
    pub fn read_path(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let text = node.as_str()?;
        let Some(expression) = constant_expression(text) else {
            return reader.read_path(node).map(Self::Path);
        };
        let expression = YamlNode::from_json(&Value::from(expression), node.span);
        let expression = reader.read_expression(&expression, EXAMPLE)?;
        Some(Self::Expression(Box::new(ExpressionText { text: text.to_owned(), expression })))
    }

    /// Reads an expression.
    pub fn read_expression(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        ExpressionText::read(node, reader).map(|expression| Self::Expression(Box::new(expression)))
    }

    /// The element that a condition on elements is about.
    pub fn innermost_element(reader: &PolicyReader<'_>) -> Option<Self> {
        let elements = reader.names.elements();
        let name = format!("${}", elements.innermost()?);
        Path::parse_with(&name, elements).ok().map(Self::Path)
    }

    /// Reads the operand forms `{ path: … }` and `{ expr: … }`. Returns `None` for any other node.
    pub fn read_operand(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Option<Self>> {
        let [entry] = node.entries()? else { return None };
        entry.value.as_str()?;
        match entry.key.as_str() {
            "path" => Some(Self::read_path(&entry.value, reader)),
            "expr" => Some(Self::read_expression(&entry.value, reader)),
            _ => None,
        }
    }

    /// The path or expression as written.
    pub fn text(&self) -> &str {
        match self {
            Self::Path(path) => path.text(),
            Self::Expression(expression) => &expression.text,
        }
    }

    /// Whether it has at most one value.
    pub fn is_singular(&self) -> bool {
        match self {
            Self::Path(path) => path.is_singular(),
            Self::Expression(_) => true,
        }
    }

    /// The path. Returns `None` for an expression.
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Expression(_) => None,
        }
    }

    /// The members of the call that it reads.
    pub fn roots(&self) -> Vec<Root> {
        match self {
            Self::Path(path) => vec![path.root()],
            Self::Expression(expression) => expression.expression.roots_read().into_iter().collect(),
        }
    }

    /// Every member of the call that it reads, also in filters.
    pub fn roots_read(&self) -> Vec<Root> {
        match self {
            Self::Path(path) => path.roots_read().to_vec(),
            Self::Expression(expression) => expression.expression.roots_read().into_iter().collect(),
        }
    }

    /// The memo of the quantifier for whose elements the values stay the same. Returns `None` outside of quantifiers, and if the values
    /// depend on the innermost element.
    pub fn element_memo<'a>(&self, view: &CallView<'a>) -> Option<&'a ElementMemo> {
        let elements = view.elements?;
        let distances = self.roots_read().into_iter().filter_map(|root| match root {
            Root::Element(element) => Some(element.distance),
            _ => None,
        });
        elements.memo_for(distances.min())
    }

    /// What tests read of its value, if it is a word of a shell command.
    pub fn word_forms<'a>(&self, view: &CallView<'a>) -> Option<&'a WordForms> {
        let Self::Path(path) = self else { return None };
        match path.root() {
            Root::Element(element) if path.steps().is_some_and(|steps| steps.is_empty()) => {
                view.elements?.word_forms(element)
            }
            _ => None,
        }
    }

    /// The constant of the bundle that it is, whatever the call.
    pub fn constant(&self) -> Option<&Value> {
        match self {
            Self::Path(_) => None,
            Self::Expression(expression) => expression.expression.constant(),
        }
    }

    /// Whether its values come from the arguments, which the agent controls.
    pub fn reads_arguments(&self) -> bool {
        match self {
            Self::Path(path) => path.root() == Root::Input || path.root().is_argument(),
            Self::Expression(expression) => expression.expression.reads_arguments(),
        }
    }

    /// Whether it may read the name of the principal.
    pub fn reads_principal(&self) -> bool {
        match self {
            Self::Path(path) => path.context_reads().may_read("principal"),
            Self::Expression(expression) => expression.expression.context_reads().may_read("principal"),
        }
    }

    /// Passes the values to `use_values`: none if they are absent.
    ///
    /// # Errors
    /// Passes [`Truth::Undecided`] if a value cannot be read.
    pub fn with_values<T>(
        &self,
        view: &CallView<'_>,
        use_values: impl FnOnce(Result<&[NodeRef<'_>], Truth>) -> T,
    ) -> T {
        match self {
            Self::Path(path) => match resolve_path(path, view) {
                Ok(nodes) => use_values(Ok(nodes.as_slice())),
                Err(undecided) => use_values(Err(undecided)),
            },
            Self::Expression(expression) => match expression.expression.resolve(view) {
                Ok(value) => use_values(Ok(&[value.node()])),
                Err(error) if error.is_absent => use_values(Ok(&[])),
                Err(error) => use_values(Err(Truth::Undecided(expression.describe_failure(&error)))),
            },
        }
    }

    /// The name of its elements, for what reads them inside of elements that have the `outer` names.
    pub fn element_name(&self, name: String, outer: &ElementNames) -> ElementName {
        let (mut arguments, members) = match self {
            Self::Path(path) => (path.argument_names().clone(), path.members_of_elements()),
            Self::Expression(expression) => {
                let expression = &expression.expression;
                (expression.argument_names(), expression.member_names().clone())
            }
        };
        arguments.merge(&outer.arguments_read(self.roots_read(), &members));
        ElementName { name, is_argument: self.reads_arguments(), arguments }
    }

    /// Passes the elements to `use_elements`: the values of a path to several values, otherwise the items of the array that it leads to.
    /// Absent and null have no elements.
    ///
    /// # Errors
    /// Passes [`Truth::Undecided`] if a value cannot be read, or is not an array.
    pub fn with_elements<T>(
        &self,
        view: &CallView<'_>,
        use_elements: impl FnOnce(Result<&[NodeRef<'_>], Truth>) -> T,
    ) -> T {
        let value = match self {
            Self::Path(path) => match path.element_nodes(view) {
                Ok(nodes) if !path.is_singular() => return use_elements(Ok(&nodes)),
                Ok(nodes) => nodes.first().copied().map(ExpressionValue::Borrowed),
                Err(error) => return use_elements(Err(self.undecided(&error))),
            },
            Self::Expression(expression) => match expression.expression.resolve(view) {
                Ok(value) => Some(value),
                Err(error) if error.is_absent => None,
                Err(error) => return use_elements(Err(self.undecided(&error))),
            },
        };
        match value.as_ref().map(ExpressionValue::node) {
            None | Some(NodeRef::Json(Value::Null)) => use_elements(Ok(&[])),
            Some(NodeRef::Json(Value::Array(items))) => {
                let items: Vec<NodeRef<'_>> = items.iter().map(NodeRef::Json).collect();
                use_elements(Ok(&items))
            }
            Some(other) => use_elements(Err(self.undecided(&format_args!(
                "it is {}, and elements need an array",
                other.json_type().with_article()
            )))),
        }
    }

    /// The elements, borrowed where they are parts of the call. See [`with_elements`](Self::with_elements).
    ///
    /// # Errors
    /// Returns [`Truth::Undecided`] if a value cannot be read, or is not an array.
    pub fn elements<'a>(&'a self, view: &CallView<'a>) -> Result<Vec<ExpressionValue<'a>>, Truth> {
        if let Self::Path(path) = self
            && let Ok(nodes) = path.element_nodes(view)
        {
            match nodes.first() {
                _ if !path.is_singular() => {
                    return Ok(nodes.into_iter().map(ExpressionValue::Borrowed).collect());
                }
                Some(NodeRef::Json(Value::Array(items))) => {
                    return Ok(items
                        .iter()
                        .map(|item| ExpressionValue::Borrowed(NodeRef::Json(item)))
                        .collect());
                }
                _ => {}
            }
        }
        self.with_elements(view, |elements| {
            let elements = elements?;
            Ok(elements.iter().map(|element| ExpressionValue::Owned(element.to_value())).collect())
        })
    }

    fn undecided(&self, why: &dyn std::fmt::Display) -> Truth {
        Truth::Undecided(match self {
            Self::Path(path) => format!("`{}`: {why}", path.text()),
            Self::Expression(expression) => format!("`{}` failed: {why}", expression.text),
        })
    }

    /// The values, borrowed where they are parts of the call.
    ///
    /// # Errors
    /// Returns [`Truth::Undecided`] if a value cannot be read.
    pub fn values<'a>(&'a self, view: &CallView<'a>) -> Result<Vec<ExpressionValue<'a>>, Truth> {
        match self {
            Self::Path(path) => {
                let nodes = resolve_path(path, view)?;
                Ok(nodes.iter().copied().map(ExpressionValue::Borrowed).collect())
            }
            Self::Expression(expression) => match expression.expression.resolve(view) {
                Ok(value) => Ok(vec![value]),
                Err(error) if error.is_absent => Ok(Vec::new()),
                Err(error) => Err(Truth::Undecided(expression.describe_failure(&error))),
            },
        }
    }
}

/// Rewrites a path to one constant of the bundle, or to a part of it, as an expression. Returns `None` for any other path.
fn constant_expression(path: &str) -> Option<String> {
    let rest = path.trim().strip_prefix("$.data").filter(|rest| rest.starts_with(['.', '[']))?;
    // Below its root, it is a path as over the call.
    let path = Path::parse(&format!("$.context{rest}")).ok()?;
    let mut expression = "data".to_owned();
    for step in path.steps()? {
        match step {
            PathStep::Name(name) if is_identifier(name) => {
                expression.push('.');
                expression.push_str(name);
            }
            PathStep::Name(name) => expression.push_str(&format!("[{}]", Value::from(name.as_str()))),
            PathStep::Index(index) => expression.push_str(&format!("[{index}]")),
        }
    }
    Some(expression)
}

fn is_identifier(name: &str) -> bool {
    let is_start = |first: char| first.is_ascii_alphabetic() || first == '_';
    name.starts_with(is_start) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the nodes at a path.
///
/// # Errors
/// Returns [`Truth::Undecided`] if a value on the path has the wrong type.
pub fn resolve_path<'a>(path: &Path, view: &CallView<'a>) -> Result<crate::path::Nodes<'a>, Truth> {
    path.nodes(view).map_err(|mismatch| Truth::Undecided(format!("`{}`: {mismatch}", path.text())))
}
