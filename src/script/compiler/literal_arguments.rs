//! Compiler for arguments that must be literals, or whose literals are checked at load: patterns, detectors, kinds of tokens.

use std::sync::Arc;

use rhai::{Expr, Position};

use super::{CompileResult, Compiler, quote_all};
use crate::address::{Directory, DomainPattern, HostPattern};
use crate::diagnostic::closest_match;
use crate::redaction::{Detector, RedactionStyle, Redactor};
use crate::tokens::{DecimalMark, TokenFormat, TokenKind};

impl Compiler<'_> {
    /// Checks the patterns of `domain`, `host` and `inside` that are literals.
    ///
    /// # Errors
    /// A pattern is invalid.
    pub(super) fn check_patterns(&self, function: &str, patterns: Option<&Expr>) -> CompileResult<()> {
        for (pattern, position) in patterns.into_iter().flat_map(string_literals).flatten() {
            let problem = match function {
                "domain" => DomainPattern::parse(pattern).err(),
                "host" => HostPattern::parse(pattern).err(),
                "inside" => Directory::parse(pattern, None).err(),
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(self.error(position, problem));
            }
        }
        Ok(())
    }

    /// Reads the detectors of `detects`: a string literal, an array of them, or a constant of the bundle with one of these.
    pub(super) fn read_detectors(
        &mut self,
        names: Option<&Expr>,
        position: Position,
    ) -> CompileResult<Arc<Redactor>> {
        let position = names.map_or(position, Expr::start_position);
        let constant = match names {
            Some(names) => self.constant_strings(names)?,
            None => None,
        };
        let names: Option<Vec<(&str, Position)>> = match &constant {
            Some(constant) => Some(constant.iter().map(|name| (name.as_str(), position)).collect()),
            None => names.and_then(string_literals),
        };
        let is_unknown = constant.as_ref().is_some_and(Vec::is_empty);
        let Some(names) = names.filter(|names| is_unknown || !names.is_empty()) else {
            return Err(self
                .error(position, "the detectors of `detects` must be string literals, or a constant with strings")
                .with_help(
                    "write for example `detects(input.text, [\"api_key\", \"payment_card\"])` or `detects(input.text, data.detectors)`"
                        .to_owned(),
                ));
        };
        let mut detectors = Vec::with_capacity(names.len());
        for (name, position) in names {
            let Some(detector) = Detector::from_name(name) else {
                let known: Vec<&str> = Detector::ALL.iter().map(|detector| detector.name()).collect();
                let error = self.error(position, format!("unknown detector `{name}`"));
                return Err(match closest_match(name, known.iter().copied()) {
                    Some(meant) => error.with_help(format!("did you mean `{meant}`?")),
                    None => error.with_help(format!("the detectors are {}", quote_all(&known))),
                });
            };
            detectors.push(detector);
        }
        Ok(Arc::new(Redactor::new(detectors, Vec::new(), RedactionStyle::Mask)))
    }

    /// Reads the kind of token of `mentioned`, and perhaps the decimal mark.
    pub(super) fn read_token_format(
        &self,
        arguments: &[Expr],
        position: Position,
    ) -> CompileResult<TokenFormat> {
        let kind = match arguments.first() {
            Some(Expr::StringConstant(kind, _)) => TokenKind::parse(kind),
            _ => None,
        };
        let Some(kind) = kind else {
            let position = arguments.first().map_or(position, Expr::start_position);
            let kinds = TokenKind::ALL.map(TokenKind::name);
            return Err(self
                .error(
                    position,
                    "the kind of token of `mentioned` must be a string literal with a known kind",
                )
                .with_help(format!("the kinds are {}", quote_all(&kinds))));
        };
        let format = TokenFormat::new(kind);
        let Some(decimal) = arguments.get(1) else { return Ok(format) };
        let mark = match decimal {
            Expr::StringConstant(mark, _) => DecimalMark::parse(mark),
            _ => None,
        };
        match mark.filter(|_| kind == TokenKind::Number) {
            Some(mark) => Ok(format.with_decimal(mark)),
            None => Err(self
                .error(
                    decimal.start_position(),
                    "the decimal mark of `mentioned` is `\".\"` or `\",\"`, and is for numbers only",
                )
                .with_help("remove it, or write `mentioned(x, source, \"number\", \".\")`".to_owned())),
        }
    }
}

/// A string literal, or the elements of an array of them. Returns `None` for anything else.
fn string_literals(expression: &Expr) -> Option<Vec<(&str, Position)>> {
    let literal = |expression| match expression {
        &Expr::StringConstant(ref text, position) => Some((text.as_str(), position)),
        _ => None,
    };
    match expression {
        Expr::Array(items, _) => items.iter().map(literal).collect(),
        only => literal(only).map(|only| vec![only]),
    }
}
