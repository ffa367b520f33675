//! Checks an expression against what expressions may say, and finds what it reads. Rhai itself finds an unknown
//! function or variable only when it comes to it, in a branch that perhaps no test takes.

use std::collections::BTreeMap;

use regex::Regex;
use rhai::{AST, Expr, FnCallExpr, Position, Stmt};

use super::arithmetic::BINARY;
use super::functions::{FUNCTIONS, Function, Run, by_name};
use super::predicate::ScriptError;
use super::reads::{Chain, Extent, Reads, Step};
use super::syntax::{Closure, Link, captured, closure_name, closures, links, offset, statements};
use super::value::EXACT_FLOATS;
use crate::call::Root;
use crate::diagnostic::nearest;

/// What is known of an expression that passed.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) reads: Reads,
    pub(super) regexes: BTreeMap<String, Regex>,
}

/// Names that other languages, and plain Rhai, have for functions of ours.
const ALIASES: &[(&str, &str)] = &[
    ("lower", "to_lower"),
    ("upper", "to_upper"),
    ("lowercase", "to_lower"),
    ("uppercase", "to_upper"),
    ("text_len", "len"),
    ("size", "len"),
    ("any", "some"),
    ("every", "all"),
    ("length", "len"),
    ("includes", "contains"),
    ("regex", "matches"),
];

/// Checks the syntax tree of `text`. Errors: the first thing that expressions may not say.
pub(super) fn check(text: &str, ast: &AST) -> Result<Checked, ScriptError> {
    let statements = statements(ast);
    let closures = closures(ast, &statements);
    let complete = closures.len() + ast.statements().len() == statements.len();
    let mut checker = Checker { text, closures, parameter: None, checked: Checked::default() };
    if !complete {
        return Err(checker.error(Position::NONE, "a closure is one expression, without statements"));
    }
    checker.body(ast.statements(), Position::START)?;
    Ok(checker.checked)
}

struct Checker<'a> {
    text: &'a str,
    closures: BTreeMap<&'a str, Closure<'a>>,
    /// The parameter of the closure that is being checked.
    parameter: Option<&'a str>,
    checked: Checked,
}

type Checking = Result<(), ScriptError>;

impl<'a> Checker<'a> {
    fn error(&self, position: Position, message: impl Into<String>) -> ScriptError {
        ScriptError { message: message.into(), offset: offset(self.text, position), help: None }
    }

    fn body(&mut self, statements: &'a [Stmt], position: Position) -> Checking {
        match statements {
            [Stmt::Expr(expression)] => self.expression(expression, Extent::Whole),
            [Stmt::FnCall(call, position)] => self.call(call, *position, None),
            _ => Err(self.error(position, "an expression is one value, without statements")),
        }
    }

    fn expression(&mut self, expression: &'a Expr, extent: Extent) -> Checking {
        let position = expression.start_position();
        match expression {
            Expr::BoolConstant(..) | Expr::IntegerConstant(..) | Expr::StringConstant(..) | Expr::Unit(_) => {
                Ok(())
            }
            Expr::FloatConstant(value, _) if value.abs() < EXACT_FLOATS => Ok(()),
            Expr::FloatConstant(..) => Err(self.error(position, "this number is too large to be exact")),
            Expr::CharConstant(..) => {
                Err(self.error(position, "`'…'` is no string").help("put it into double quotes".to_owned()))
            }
            Expr::InterpolatedString(..) => Err(self
                .error(position, "`${…}` has no place in an expression")
                .help("join strings with `+`".to_owned())),
            Expr::Array(items, _) => items.iter().try_for_each(|item| self.expression(item, Extent::Whole)),
            Expr::Map(members, _) => {
                members.0.iter().try_for_each(|(_, member)| self.expression(member, Extent::Whole))
            }
            Expr::And(operands, _) | Expr::Or(operands, _) | Expr::Coalesce(operands, _) => {
                operands.iter().try_for_each(|operand| self.expression(operand, Extent::Whole))
            }
            Expr::Variable(variable, _, _) if !variable.2.is_empty() => {
                Err(self.error(position, "`::` has no place in an expression"))
            }
            Expr::Variable(variable, _, _) => match self.name(&variable.1, position)? {
                Some(root) => {
                    self.checked.reads.add(Chain { root, steps: Vec::new() }, extent);
                    Ok(())
                }
                None => Ok(()),
            },
            Expr::FnCall(call, position) => self.call(call, *position, None),
            Expr::Dot(..) | Expr::Index(..) => self.chain(expression, extent),
            Expr::DynamicConstant(..) | Expr::Stmt(_) => Err(self.closure_or_statement(expression)),
            _ => Err(self.error(position, "this has no place in an expression")),
        }
    }

    fn closure_or_statement(&self, expression: &Expr) -> ScriptError {
        let position = expression.start_position();
        if closure_name(expression).is_some() {
            self.error(position, "a closure stands only in a call of `all`, `some`, `filter` or `map`")
        } else {
            self.error(position, "an expression is one value, without statements")
        }
    }

    /// The member of the call that a variable names; nothing for the closure's own parameter.
    fn name(&self, name: &str, position: Position) -> Result<Option<Root>, ScriptError> {
        if self.parameter == Some(name) {
            return Ok(None);
        }
        if let Some(root) = Root::from_name(name) {
            return Ok(Some(root));
        }
        let known = Root::ALL.map(Root::name).into_iter().chain(self.parameter);
        let help = match nearest(name, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", Root::ALL.map(|root| format!("`{}`", root.name())).join(", ")),
        };
        Err(self.error(position, format!("unknown variable `{name}`")).help(help))
    }

    fn call(&mut self, call: &'a FnCallExpr, position: Position, receiver: Option<Position>) -> Checking {
        let name = call.name.as_str();
        if !call.namespace.is_empty() || call.capture_parent_scope {
            return Err(self.error(position, format!("`{name}` is called in a way that has no place here")));
        }
        let operator = receiver.is_none()
            && match call.args.len() {
                1 => matches!(name, "!" | "-"),
                2 => BINARY.iter().any(|(symbol, _)| *symbol == name),
                _ => false,
            };
        if operator {
            let is_in = matches!(name, "in" | "!in");
            return call.args.iter().enumerate().try_for_each(|(index, operand)| {
                self.expression(operand, if is_in && index == 1 { Extent::Outline } else { Extent::Whole })
            });
        }
        let Some(function) = by_name(name) else { return Err(self.unknown_function(name, call, position)) };
        let given = call.args.len() + usize::from(receiver.is_some());
        let wanted = function.parameters.len();
        if given != wanted {
            return Err(self
                .error(position, format!("`{name}` takes {wanted} values, this call gives {given}"))
                .help(format!("it is `{}`: {}", function.signature(), function.about)));
        }
        if name == "matches" {
            self.regex(call.args.last())?;
        }
        let takes_closure = matches!(function.run, Run::Each(_));
        for (index, argument) in call.args.iter().enumerate() {
            let parameter = index + usize::from(receiver.is_some());
            match parameter {
                1 if takes_closure => self.closure(argument, function)?,
                0 if function.outline => self.expression(argument, Extent::Outline)?,
                _ => self.expression(argument, Extent::Whole)?,
            }
        }
        Ok(())
    }

    fn unknown_function(&self, name: &str, call: &FnCallExpr, position: Position) -> ScriptError {
        if call.op_token.is_some() {
            let symbols: Vec<_> = BINARY.iter().map(|(symbol, _)| *symbol).collect();
            return self
                .error(position, format!("`{name}` is no operator of expressions"))
                .help(format!("there are `&&`, `||`, `??`, `!`, {}", quoted(&symbols)));
        }
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, function)| *function);
        let meant = alias.or_else(|| nearest(name, FUNCTIONS.iter().map(|function| function.name)));
        let help = match meant.and_then(by_name) {
            Some(function) => format!("did you mean `{}`?", function.signature()),
            None => {
                format!(
                    "there are {}",
                    quoted(&FUNCTIONS.iter().map(|function| function.name).collect::<Vec<_>>())
                )
            }
        };
        self.error(position, format!("unknown function `{name}`")).help(help)
    }

    fn regex(&mut self, pattern: Option<&Expr>) -> Checking {
        let Some(Expr::StringConstant(pattern, position)) = pattern else {
            let position = pattern.map_or(Position::START, Expr::start_position);
            return Err(self
                .error(position, "the regex of `matches` must be written out")
                .help("put it into double quotes or backticks".to_owned()));
        };
        let regex = Regex::new(pattern).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            self.error(*position, format!("invalid regex `{pattern}`: {why}"))
        })?;
        self.checked.regexes.insert(pattern.to_string(), regex);
        Ok(())
    }

    fn closure(&mut self, argument: &'a Expr, function: &Function) -> Checking {
        let position = argument.start_position();
        let closure = closure_name(argument).and_then(|name| self.closures.get(name.as_str()).copied());
        let Some(closure) = closure else {
            return Err(self
                .error(position, format!("`{}` takes a closure", function.name))
                .help(format!("write `{}`", function.signature())));
        };
        for (name, position) in captured(argument) {
            if self.name(name, position)?.is_none() {
                // Rhai would put it behind a lock that the outer call already holds, and fail at every evaluation.
                return Err(self
                    .error(
                        position,
                        format!("a closure inside of a closure cannot use `{name}` of the outer one"),
                    )
                    .help("it can use its own parameter and the members of the call".to_owned()));
            }
        }
        let own: Vec<_> = closure.parameters.iter().skip(captured(argument).count()).collect();
        let [parameter] = own.as_slice() else {
            return Err(self.error(position, "a closure takes one parameter: `|x| …`"));
        };
        if Root::from_name(parameter).is_some() {
            return Err(
                self.error(position, format!("`{parameter}` is a member of the call, choose another name"))
            );
        }
        let outer = self.parameter.replace(parameter.as_str());
        let result = self.body(std::slice::from_ref(closure.body), position);
        self.parameter = outer;
        result
    }

    fn chain(&mut self, expression: &'a Expr, extent: Extent) -> Checking {
        let (base, links) = links(expression);
        let mut links = links.into_iter().peekable();
        let root = match base {
            Expr::Variable(variable, _, _) if variable.2.is_empty() => {
                self.name(&variable.1, base.start_position())?
            }
            _ => None,
        };
        if let Some(root) = root {
            let mut steps = Vec::new();
            while let Some(step) = links.peek().and_then(|link| self.step(link)) {
                if let Step::At(chain) = &step {
                    self.checked.reads.add(chain.clone(), Extent::Whole);
                }
                steps.push(step);
                links.next();
            }
            let extent = match links.peek() {
                None => extent,
                Some(Link::Method(call, _))
                    if by_name(&call.name).is_some_and(|function| function.outline) =>
                {
                    Extent::Outline
                }
                Some(_) => Extent::Whole,
            };
            self.checked.reads.add(Chain { root, steps }, extent);
        } else {
            self.expression(base, Extent::Whole)?;
        }
        for link in links {
            match link {
                Link::Property(_) | Link::Index(Expr::StringConstant(..)) => {}
                Link::Method(call, position) => self.call(call, position, Some(base.start_position()))?,
                // Of a number or a string, Rhai would read a bit or a character.
                Link::Index(index) => {
                    return Err(self
                        .error(
                            index.start_position(),
                            "an index that is reckoned, or into what is reckoned, needs `at`",
                        )
                        .help("write `at(array, index)`".to_owned()));
                }
                Link::Optional(position) => {
                    return Err(self
                        .error(position, "`?.` and `?[` have no place in an expression")
                        .help("`is_null(x)` tests for null, `has(object, key)` for a key".to_owned()));
                }
                Link::Other(other) => {
                    return Err(self.error(other.start_position(), "this has no place in an expression"));
                }
            }
        }
        Ok(())
    }

    /// The step that a link is, where it is known without evaluating anything.
    fn step(&self, link: &Link<'a>) -> Option<Step> {
        match link {
            Link::Property(key) => Some(Step::Key((*key).to_owned())),
            Link::Index(Expr::StringConstant(key, _)) => Some(Step::Key(key.to_string())),
            Link::Index(Expr::IntegerConstant(index, _)) => Some(Step::Index(*index)),
            Link::Index(index) => self.place(index).map(Step::At),
            Link::Method(..) | Link::Optional(_) | Link::Other(_) => None,
        }
    }

    /// The place that an expression names, where it does nothing else.
    fn place(&self, expression: &'a Expr) -> Option<Chain> {
        let (base, links) = match expression {
            Expr::Variable(..) => (expression, Vec::new()),
            Expr::Dot(..) | Expr::Index(..) => links(expression),
            _ => return None,
        };
        let Expr::Variable(variable, _, _) = base else { return None };
        let root = self.name(&variable.1, base.start_position()).ok()??;
        let steps = links.iter().map(|link| self.step(link)).collect::<Option<_>>()?;
        Some(Chain { root, steps })
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
