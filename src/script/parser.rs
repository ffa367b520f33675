//! Parser: text → Rhai's syntax tree. Rhai only parses; the compiler and the interpreter of this module define the language.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rhai::{
    AST, ASTFlags, ASTNode, Engine, Expr, FnCallExpr, FnPtr, ImmutableString, OptimizationLevel,
    ParseErrorType, Position, Stmt, Token,
};

use super::ScriptCompileError;
use super::caught_panic::catch_panic;
use super::language::Language;
use super::program::SourcePosition;

/// The maximum nesting of code, and the maximum number of chained operators.
const MAX_NESTING: usize = 48;
/// The maximum nesting in a function or a closure.
const MAX_FUNCTION_NESTING: usize = 32;
/// The maximum length of a string literal, in bytes.
const MAX_CONSTANT: usize = 64 << 10;
/// The maximum number of functions and closures in a script.
const MAX_FUNCTIONS: usize = 64;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let mut engine = Engine::new_raw();
    // Constant folding would compare values by Rhai's own rules.
    engine.set_optimization_level(OptimizationLevel::None);
    engine.set_max_expr_depths(MAX_NESTING, MAX_FUNCTION_NESTING);
    engine.set_max_string_size(MAX_CONSTANT);
    engine.set_max_functions(MAX_FUNCTIONS);
    engine
});

/// Parses a text.
///
/// # Errors
/// Invalid syntax, or a text that is too long.
pub(super) fn parse(text: &str, language: Language) -> Result<AST, ScriptCompileError> {
    let most = language.max_length();
    let at = |message: String, position| ScriptCompileError {
        message,
        offset: byte_offset(text, position),
        help: None,
        is_unknown_name: false,
    };
    if text.len() > most {
        let message = match language {
            Language::Expression => format!("the expression is longer than {most} bytes"),
            Language::Script | Language::Policy => format!("the script is longer than {most} bytes"),
            Language::Functions => format!("the functions are longer than {most} bytes"),
        };
        return Err(at(message, Position::NONE));
    }
    let parsed = catch_panic(|| match language {
        Language::Expression => ENGINE.compile_expression(text),
        Language::Script | Language::Functions | Language::Policy => ENGINE.compile(text),
    });
    parsed.map_err(|message| at(message, Position::NONE))?.map_err(|error| {
        let compile_error = at(lowercase_first(error.err_type().to_string()), error.position());
        match error.err_type() {
            ParseErrorType::Reserved(word) if word == "$" => ScriptCompileError {
                message: "an expression has no `$`".to_owned(),
                ..compile_error.with_help(
                    "write `input.amount`, or test a path: `{ path: $.input.amount, gt: 100 }`".to_owned(),
                )
            },
            ParseErrorType::Reserved(word) => compile_error
                .with_help(format!("choose another name; quote it as a key of an object: `\"{word}\": …`")),
            ParseErrorType::MissingToken(token, _) if token == ";" => {
                compile_error.with_help("end the statement before this with `;`".to_owned())
            }
            _ => compile_error,
        }
    })
}

/// The tokens of a valid text with their positions.
pub(super) fn tokens(text: &str) -> Vec<(Token, Position)> {
    let texts = [text];
    let (tokens, control) = ENGINE.lex(&texts);
    let (mut all, mut depth, mut interpolations) = (Vec::new(), 0_usize, Vec::new());
    for (token, position) in tokens {
        match token {
            // The tokenizer reads code after `${`, and must be told where the text continues.
            Token::InterpolatedString(_) => interpolations.push(depth),
            Token::LeftBrace | Token::MapStart => depth += 1,
            Token::RightBrace => {
                depth = depth.saturating_sub(1);
                if interpolations.last() == Some(&depth) {
                    interpolations.pop();
                    control.borrow_mut().is_within_text = true;
                }
            }
            Token::EOF => break,
            _ => {}
        }
        all.push((token, position));
    }
    all
}

fn lowercase_first(text: String) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Converts a position of Rhai (line and column, in characters) into a byte offset in the text.
pub(super) fn byte_offset(text: &str, position: Position) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(position.line()? - 1).map(str::len).sum();
    let line = text.get(start..)?;
    let column = position.position().unwrap_or(1).saturating_sub(1);
    Some(start + line.char_indices().nth(column).map_or(line.len(), |(offset, _)| offset))
}

pub(super) fn source_position(position: Position) -> SourcePosition {
    SourcePosition { line: position.line().unwrap_or(1), column: position.position().unwrap_or(1) }
}

/// A function of the script, or a closure.
pub(super) struct FunctionDefinition {
    /// For a closure: the captured variables, then its own parameters.
    pub(super) parameters: Vec<ImmutableString>,
    pub(super) body: Vec<Stmt>,
    pub(super) position: Position,
    /// Whether it is `fn type.name()`, a method of one type.
    pub(super) is_typed_method: bool,
}

/// Functions and closures, by Rhai's name for them and their number of parameters.
pub(super) fn function_definitions(ast: &AST) -> BTreeMap<(String, usize), FunctionDefinition> {
    let routine = |definition: &rhai::ScriptFuncDef| {
        let parameters: Vec<_> = definition.params.iter().cloned().collect();
        let key = (definition.name.to_string(), parameters.len());
        // Rhai exposes a body only to `walk`, where each statement is a path of its own.
        let mut alone = ast.clone_functions_only();
        alone.retain_functions(|_, _, name, arity| name == key.0 && arity == key.1);
        let routine = FunctionDefinition {
            parameters,
            body: statements(&alone),
            position: definition.body.start_position(),
            is_typed_method: definition.this_type.is_some(),
        };
        (key, routine)
    };
    ast.iter_fn_def().map(|definition| routine(definition)).collect()
}

fn statements(ast: &AST) -> Vec<Stmt> {
    let mut statements = Vec::new();
    ast.walk(&mut |path: &[ASTNode<'_>]| {
        if let [ASTNode::Stmt(statement)] = path {
            statements.push((*statement).clone());
        }
        true
    });
    statements
}

/// A link of `base.property[index].method()`.
pub(super) enum ChainLink<'e> {
    Property(&'e str, Position),
    Index(&'e Expr, Position),
    Method(&'e FnCallExpr, Position),
    /// `?.` or `?[`, before the link that it belongs to.
    Optional(Position),
    Other(&'e Expr),
}

impl<'e> ChainLink<'e> {
    /// The key, if it is a literal.
    pub(super) fn key(&self) -> Option<&'e str> {
        match self {
            Self::Property(key, _) => Some(key),
            Self::Index(Expr::StringConstant(key, _), _) => Some(key.as_str()),
            _ => None,
        }
    }
}

/// Splits `base.property[index].method()` into its base and its links.
pub(super) fn split_chain(expression: &Expr) -> (&Expr, Vec<ChainLink<'_>>) {
    let mut links = Vec::new();
    let mut base = None;
    let mut next = Some(expression);
    while let Some(part) = next.take() {
        let (Expr::Dot(pair, flags, position) | Expr::Index(pair, flags, position)) = part else { break };
        if flags.contains(ASTFlags::NEGATED) {
            links.push(ChainLink::Optional(*position));
        }
        base.get_or_insert(&pair.lhs);
        // The right side is the rest of the chain, unless Rhai marks its end here.
        let goes_on = matches!(pair.rhs, Expr::Dot(..) | Expr::Index(..)) && !flags.contains(ASTFlags::BREAK);
        let link = match &pair.rhs {
            Expr::Dot(rest, ..) | Expr::Index(rest, ..) if goes_on => &rest.lhs,
            link => link,
        };
        links.push(match (part, link) {
            (Expr::Index(..), index) => ChainLink::Index(index, *position),
            (_, Expr::Property(property, position)) => ChainLink::Property(&property.2, *position),
            (_, Expr::MethodCall(call, position)) => ChainLink::Method(call, *position),
            (_, other) => ChainLink::Other(other),
        });
        next = goes_on.then_some(&pair.rhs);
    }
    (base.unwrap_or(expression), links)
}

/// The name under which Rhai stores a closure's body, and the number of captured variables.
pub(super) fn closure_name(expression: &Expr) -> Option<(String, usize)> {
    match expression {
        Expr::DynamicConstant(value, _) => {
            value.read_lock::<FnPtr>().map(|closure| (closure.fn_name().to_owned(), 0))
        }
        Expr::Stmt(block) => match block.statements() {
            [Stmt::Share(shared), Stmt::Expr(curry)] => match curry.as_ref() {
                Expr::FnCall(call, _) => {
                    closure_name(call.args.first()?).map(|(name, _)| (name, shared.len()))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    /// Rhai names closures by a hash of their code: two with different code must not share a name.
    #[test]
    fn different_closures_have_different_names() {
        let bodies = [
            "x > 1",
            "x > 2",
            "x > 1.5",
            "x > 2.5",
            "x > \"a\"",
            "x > \"b\"",
            "x.a",
            "x.b",
            "x[0]",
            "x[1]",
            "x[\"a\"]",
            "[x].all(|y| y > 1)",
            "[x].all(|y| y > 2)",
            "[x].all(|y| x > 2)",
            "[x].all(|y| y > n)",
            "#{a: x}",
            "#{b: x}",
            "x && true",
            "x && false",
            "x || true",
            "x ?? 1",
            "x ?? 2",
            "-x",
            "!x",
            "x.f(1)",
            "x.f(2)",
            "f(x)",
            "g(x)",
            "()",
            "tool",
            "id",
            "x in n",
            "n in x",
            "x - n",
            "x + n",
            "[x, 1]",
            "[x, 2]",
            "x.a.b",
            "x[\"a\"].b",
            "x.a == 1 && x.b == 1",
            "x.b == 1 && x.a == 1",
            "x.matches(\"a\")",
            "x.matches(\"b\")",
        ];
        for first in bodies {
            for second in bodies.iter().filter(|second| **second != first) {
                let text = format!("f(|x| {first}, |x| {second})");
                let ast = ENGINE.compile(&text).unwrap();
                let arguments = match ast.statements().first() {
                    Some(Stmt::FnCall(call, _)) => &call.args,
                    Some(Stmt::Expr(expression)) => match expression.as_ref() {
                        Expr::FnCall(call, _) => &call.args,
                        other => panic!("{text}: {other:?}"),
                    },
                    other => panic!("{text}: {other:?}"),
                };
                let names: Vec<_> = arguments.iter().filter_map(closure_name).collect();
                let [(a, _), (b, _)] = names.as_slice() else { panic!("{text}") };
                assert_ne!(a, b, "{text}");
            }
        }
    }
}
