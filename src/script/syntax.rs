//! Rhai's syntax tree in the terms in which expressions are checked.

use std::collections::BTreeMap;

use rhai::{AST, ASTFlags, ASTNode, Expr, FnCallExpr, FnPtr, ImmutableString, Position, Stmt};

/// Where a position of Rhai's (line and column, in characters) stands in the text, in bytes.
pub(super) fn offset(text: &str, position: Position) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(position.line()? - 1).map(str::len).sum();
    let line = text.get(start..)?;
    let column = position.position().unwrap_or(1).saturating_sub(1);
    Some(start + line.char_indices().nth(column).map_or(line.len(), |(offset, _)| offset))
}

/// A link of `base.property[index].method()`.
pub(super) enum Link<'e> {
    Property(&'e str),
    Index(&'e Expr),
    Method(&'e FnCallExpr, Position),
    /// `?.` or `?[`, before the link that it belongs to.
    Optional(Position),
    Other(&'e Expr),
}

/// `|x| body`
#[derive(Clone, Copy)]
pub(super) struct Closure<'a> {
    /// What it uses from around it, and then its own.
    pub(super) parameters: &'a [ImmutableString],
    pub(super) body: &'a Stmt,
}

/// The statements of an expression (one, if it is one) and after them those of its closures. Rhai shows the bodies of
/// closures only to a walk over everything, in which each is a path of its own.
pub(super) fn statements(ast: &AST) -> Vec<Stmt> {
    let mut statements = Vec::new();
    ast.walk(&mut |path: &[ASTNode<'_>]| {
        if let [ASTNode::Stmt(statement)] = path {
            statements.push((*statement).clone());
        }
        true
    });
    statements
}

/// The closures by the name that Rhai gives them. One whose body is not exactly one statement is left out.
pub(super) fn closures<'a>(ast: &'a AST, statements: &'a [Stmt]) -> BTreeMap<&'a str, Closure<'a>> {
    ast.iter_fn_def()
        .zip(statements.iter().skip(ast.statements().len()))
        .filter(|(closure, body)| closure.body.start_position() == body.position())
        .map(|(closure, body)| (closure.name.as_str(), Closure { parameters: &closure.params, body }))
        .collect()
}

/// Takes `base.property[index].method()` apart.
pub(super) fn links(expression: &Expr) -> (&Expr, Vec<Link<'_>>) {
    let mut links = Vec::new();
    let mut base = None;
    let mut next = Some(expression);
    while let Some(part) = next.take() {
        let (Expr::Dot(pair, flags, position) | Expr::Index(pair, flags, position)) = part else { break };
        if flags.contains(ASTFlags::NEGATED) {
            links.push(Link::Optional(*position));
        }
        base.get_or_insert(&pair.lhs);
        // What follows is the rest of the chain, unless Rhai marks that it ends here.
        let goes_on = matches!(pair.rhs, Expr::Dot(..) | Expr::Index(..)) && !flags.contains(ASTFlags::BREAK);
        let link = match &pair.rhs {
            Expr::Dot(rest, ..) | Expr::Index(rest, ..) if goes_on => &rest.lhs,
            link => link,
        };
        links.push(match (part, link) {
            (Expr::Index(..), index) => Link::Index(index),
            (_, Expr::Property(property, _)) => Link::Property(&property.2),
            (_, Expr::MethodCall(call, position)) => Link::Method(call, *position),
            (_, other) => Link::Other(other),
        });
        next = goes_on.then_some(&pair.rhs);
    }
    (base.unwrap_or(expression), links)
}

/// The name under which Rhai keeps a closure's body. With captured variables, it is wrapped up with them.
pub(super) fn closure_name(expression: &Expr) -> Option<ImmutableString> {
    match expression {
        Expr::DynamicConstant(value, _) => value.read_lock::<FnPtr>().map(|closure| closure.fn_name().into()),
        Expr::Stmt(block) => match block.statements() {
            [Stmt::Share(_), Stmt::Expr(curry)] => match curry.as_ref() {
                Expr::FnCall(call, _) => closure_name(call.args.first()?),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The variables that a closure uses from around it.
pub(super) fn captured(expression: &Expr) -> impl Iterator<Item = (&str, Position)> {
    let variables = match expression {
        Expr::Stmt(block) => match block.statements() {
            [Stmt::Share(shared), ..] => Some(shared.iter()),
            _ => None,
        },
        _ => None,
    };
    variables.into_iter().flatten().map(|(name, _)| (name.name.as_str(), name.pos))
}
