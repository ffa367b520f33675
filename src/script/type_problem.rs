//! Problems that a type checker finds: an operation that fails for every value of its operands, or a literal that no value equals.

use super::program::{Code, CodeNode, ReadOnlyVariable, SourcePosition};
use super::value_type::{TypeKind, ValueType};
use crate::call::Root;
use crate::json::{Number, Value};

/// An operation that fails for every value that its operands can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeProblem {
    /// The operation: an operator, or the name of a function or member.
    pub operation: String,
    position: SourcePosition,
    /// What has the wrong type: `` `input.amount` is a string ``.
    pub found: String,
    /// What the operation needs.
    pub needed: String,
    /// The fix.
    pub help: String,
}

/// A literal that a value is compared with, and that the schema of the value does not list.
#[derive(Clone, Debug, PartialEq)]
pub struct UnlistedValue {
    position: SourcePosition,
    /// The value that is compared.
    pub subject: String,
    /// The literal.
    pub literal: Value,
    /// The values that the schema lists.
    pub permitted: Vec<Value>,
}

/// A member that is read of an object whose members are listed without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMember {
    pub(super) position: SourcePosition,
    /// The object.
    pub object: String,
    /// The name that is read.
    pub member: String,
    /// The names of its members.
    pub known: Vec<String>,
}

impl UnknownMember {
    /// The position of the name, or of the literal that holds it, in the text.
    pub fn offset(&self, text: &str) -> usize {
        self.position.offset(text)
    }
}

impl TypeProblem {
    /// The position of the operation in the text.
    pub fn offset(&self, text: &str) -> usize {
        self.position.offset(text)
    }

    /// The same problem as one of a call of a function in which it occurs.
    #[must_use]
    pub(super) fn in_function(self, name: &str, position: SourcePosition) -> Self {
        Self { found: format!("in `{name}`, {}", self.found), operation: name.to_owned(), position, ..self }
    }
}

impl UnlistedValue {
    pub(super) fn new(
        subject: String,
        position: SourcePosition,
        literal: &Value,
        permitted: &[Value],
    ) -> Self {
        Self { position, subject, literal: literal.clone(), permitted: permitted.to_vec() }
    }

    /// The position of the literal in the text.
    pub fn offset(&self, text: &str) -> usize {
        self.position.offset(text)
    }
}

/// An operation at a position of a text.
#[derive(Clone, Copy)]
pub(super) struct Operation<'o> {
    /// An operator, or the name of a function or member.
    pub(super) symbol: &'o str,
    pub(super) position: SourcePosition,
    /// Empty if the text is not known.
    pub(super) text: &'o str,
}

/// An operand with its type.
#[derive(Clone, Copy)]
pub(super) struct Operand<'o> {
    pub(super) node: &'o CodeNode,
    pub(super) value: &'o ValueType,
}

const UNDECIDED_HELP: &str = "it is undecided for every call: read another value, or convert this one";

/// The functions that take an object. For other operations that need one, the symbol is the name of a member.
const OBJECT_FUNCTIONS: [&str; 4] = ["has", "keys", "values", "merge"];

impl Operation<'_> {
    /// An operand that has none of these kinds.
    pub(super) fn wrong_kind(self, operand: Operand<'_>, kinds: &[TypeKind]) -> TypeProblem {
        let symbol = self.symbol;
        let needed = match (symbol, kinds) {
            ("[", _) => "only an array or an object is indexed".to_owned(),
            ("if" | "while", _) => "a condition is a boolean".to_owned(),
            ("all" | "some" | "filter" | "find", [TypeKind::Boolean]) => {
                format!("the closure of `{symbol}` must return a boolean")
            }
            (member, [TypeKind::Object]) if !OBJECT_FUNCTIONS.contains(&member) => {
                format!("only an object has the member `{member}`")
            }
            _ => {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.with_article()).collect();
                format!("`{symbol}` needs {}", kinds.join(" or "))
            }
        };
        let subject = operand.code(self.text);
        let shown = subject.as_deref().unwrap_or("…");
        let help = match (kinds, operand.value.kinds()) {
            ([TypeKind::Boolean], _) => format!("compare the value, as in `{shown} == …`"),
            (_, Some([TypeKind::String])) if kinds.contains(&TypeKind::Number) => {
                format!("write `to_number({shown})`")
            }
            ([TypeKind::String], Some([TypeKind::Number])) => format!("write `to_text({shown})`"),
            _ => UNDECIDED_HELP.to_owned(),
        };
        self.problem(operand.describe(self.text), needed, help)
    }

    /// Two operands without a common type.
    pub(super) fn different_types(self, left: Operand<'_>, right: Operand<'_>) -> TypeProblem {
        let found = format!("{} and {}", left.describe(self.text), right.describe(self.text));
        let symbol = self.symbol;
        let needed = match symbol {
            "<" | "<=" | ">" | ">=" => format!("`{symbol}` needs two numbers, two strings or two times"),
            "+" => "`+` needs two numbers or two strings".to_owned(),
            "-" | "*" | "/" | "%" | "**" => format!("`{symbol}` needs two numbers"),
            _ => format!("`{symbol}` compares values of one type"),
        };
        self.problem(found, needed, self.conversion(left, right))
    }

    /// How one of two operands becomes comparable.
    fn conversion(self, left: Operand<'_>, right: Operand<'_>) -> String {
        let code = |operand: Operand<'_>| operand.code(self.text).unwrap_or_else(|| "…".to_owned());
        let (text, other) = match (left.is_only(TypeKind::String), right.is_only(TypeKind::String)) {
            _ if left.is_only(TypeKind::Null) => return format!("write `is_null({})`", code(right)),
            _ if right.is_only(TypeKind::Null) => return format!("write `is_null({})`", code(left)),
            (true, false) => (left, right),
            (false, true) => (right, left),
            _ => return UNDECIDED_HELP.to_owned(),
        };
        match (&text.node.code, &other.node.code) {
            _ if other.is_only(TypeKind::Time) => format!("write `time({})`", code(text)),
            _ if other.is_only(TypeKind::Duration) => format!("write `duration({})`", code(text)),
            _ if !other.is_only(TypeKind::Number) => UNDECIDED_HELP.to_owned(),
            (Code::String(written), _) if written.parse::<Number>().is_ok() => {
                format!("write the number without quotes: `{written}`")
            }
            (_, Code::Number(_) | Code::Literal(_)) if matches!(self.symbol, "==" | "!=") => {
                format!("write the number in quotes: `\"{}\"`", code(other))
            }
            (Code::String(_), _) => UNDECIDED_HELP.to_owned(),
            _ => format!("write `to_number({})`", code(text)),
        }
    }

    /// A container that cannot have an index of this type.
    pub(super) fn wrong_index(self, container: Operand<'_>, index: Operand<'_>) -> TypeProblem {
        let found = format!("{} and {}", container.describe(self.text), index.describe(self.text));
        let needed = "an array takes a whole number as index, and an object a string".to_owned();
        self.problem(found, needed, UNDECIDED_HELP.to_owned())
    }

    fn problem(self, found: String, needed: String, help: String) -> TypeProblem {
        TypeProblem { operation: self.symbol.to_owned(), position: self.position, found, needed, help }
    }
}

impl<'o> Operand<'o> {
    pub(super) fn new(node: &'o CodeNode, value: &'o ValueType) -> Self {
        Self { node, value }
    }

    fn is_only(self, kind: TypeKind) -> bool {
        self.value.kinds() == Some(&[kind])
    }

    fn code(self, text: &str) -> Option<String> {
        code_of(self.node, text)
    }

    /// `` `input.amount` is a string ``
    fn describe(self, text: &str) -> String {
        format!("{} is {}", describe(self.node, text), self.value.describe())
    }
}

/// The code of an operand, or what it is.
pub(super) fn describe(node: &CodeNode, text: &str) -> String {
    code_of(node, text).map_or_else(|| "an operand".to_owned(), |code| format!("`{code}`"))
}

/// The most characters of a literal in a message.
const MAX_SHOWN: usize = 60;

/// The code of a node as a user writes it. Returns `None` for code that is too long to show.
pub(super) fn code_of(node: &CodeNode, text: &str) -> Option<String> {
    let code = match &node.code {
        Code::Null => "()".to_owned(),
        Code::Boolean(value) => value.to_string(),
        Code::Number(number) => number.to_json().to_string(),
        Code::Literal(number) => number.to_string(),
        Code::String(text) => Value::from(text.as_str()).to_string(),
        // Variables and elements have no names in the code.
        Code::Slot(_) | Code::Member(ReadOnlyVariable::Root(Root::Element(_))) => {
            name_at(node.position, text)?
        }
        Code::Member(ReadOnlyVariable::Root(Root::Round)) => "session.round".to_owned(),
        Code::Member(ReadOnlyVariable::Root(root)) => root.name().to_owned(),
        Code::Named(value) => value.name().to_owned(),
        Code::Data(_, keys) => format!("data.{}", keys.join(".")),
        Code::Property(object, key) => format!("{}.{key}", code_of(object, text)?),
        Code::Index(operands) | Code::FactEntry(operands) => {
            let [container, index] = &**operands;
            format!("{}[{}]", code_of(container, text)?, code_of(index, text)?)
        }
        Code::Binary(symbol, _, operands) => {
            let [left, right] = &**operands;
            let (before, after) = (binding(symbol), binding(symbol) + 1);
            format!("{} {symbol} {}", operand_code(left, before, text)?, operand_code(right, after, text)?)
        }
        Code::Function(name, _, arguments) => {
            let arguments: Option<Vec<String>> =
                arguments.iter().map(|argument| code_of(argument, text)).collect();
            format!("{name}({})", arguments?.join(", "))
        }
        Code::CallShared(functions, index, arguments) => {
            let (name, _) = functions.signatures.get(*index)?;
            let arguments: Option<Vec<String>> =
                arguments.iter().map(|argument| code_of(argument, text)).collect();
            format!("{name}({})", arguments?.join(", "))
        }
        _ => return None,
    };
    Some(code).filter(|code| code.chars().count() <= MAX_SHOWN)
}

/// The code of an operand, in parentheses if its operator binds less than `least`.
fn operand_code(operand: &CodeNode, least: u8, text: &str) -> Option<String> {
    let code = code_of(operand, text)?;
    Some(match &operand.code {
        Code::Binary(symbol, ..) if binding(symbol) < least => format!("({code})"),
        _ => code,
    })
}

/// How much an operator binds its operands.
fn binding(symbol: &str) -> u8 {
    match symbol {
        "**" => 4,
        "*" | "/" | "%" => 3,
        "+" | "-" => 2,
        _ => 1,
    }
}

/// The name at a position of a text.
fn name_at(position: SourcePosition, text: &str) -> Option<String> {
    let rest = text.get(position.offset(text)..)?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
}
