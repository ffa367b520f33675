//! Compiler for the names of a bundle and for values that may be absent: named values, `data`, `exists`, `?.`.

use rhai::{Expr, FnCallExpr, Position};

use super::{CompileResult, Compiler, quote_all};
use crate::call::Root;
use crate::diagnostic::closest_match;
use crate::json::Value;
use crate::script::ScriptCompileError;
use crate::script::data_set::DataSet;
use crate::script::definition_name::DefinitionName;
use crate::script::named_value::NamedDefinition;
use crate::script::parser::{ChainLink, split_chain};
use crate::script::program::{Code, CodeNode};

/// The name of the constants in expressions.
pub(super) const DATA: &str = "data";

impl Compiler<'_> {
    /// Compiles a read of a named value. Returns `None` if the bundle has none with this name.
    pub(super) fn compile_named(&mut self, name: &str, position: Position) -> CompileResult<Option<Code>> {
        if name == DATA {
            return Err(self
                .error(position, "`data` alone is not a value")
                .with_help("name a constant, as in `data.limits`".to_owned()));
        }
        if !self.reads_named_values() {
            return Ok(None);
        }
        self.record_definition(DefinitionName::Let(name.to_owned()));
        match self.names.find_let(name) {
            Some(Some(value)) => {
                self.dependencies.add_reads_of(&value.dependencies);
                self.dependencies.needs_memo |= matches!(value.definition, NamedDefinition::Computed(_));
                Ok(Some(Code::Named(value.clone())))
            }
            // The error of its definition has been reported.
            Some(None) => Ok(Some(Code::Null)),
            None if self.names.collects_unknown => Ok(Some(Code::Null)),
            None => Ok(None),
        }
    }

    pub(super) fn record_definition(&mut self, name: DefinitionName) {
        self.dependencies.definitions.insert(name);
    }

    /// Compiles `data.name…`. Returns `None` if the base of the chain is not `data`.
    pub(super) fn compile_data(
        &mut self,
        base: &Expr,
        links: &[ChainLink<'_>],
    ) -> CompileResult<Option<CodeNode>> {
        let Expr::Variable(variable, _, position) = base else { return Ok(None) };
        if variable.1 != DATA || self.find_slot(DATA).is_some() {
            return Ok(None);
        }
        let Some(keys) = self.data_keys(links, *position)? else {
            return self.compile_links(Self::new_node(*position, Code::Null), base, links, 0).map(Some);
        };
        let node = Self::new_node(*position, Code::Data(self.names.data().clone(), keys.clone()));
        self.compile_links(node, base, links, keys.len()).map(Some)
    }

    /// The keys of `data.name.key…` that are literals and lead through objects. Returns `None` while unknown names are collected.
    fn data_keys(
        &mut self,
        links: &[ChainLink<'_>],
        position: Position,
    ) -> CompileResult<Option<Vec<String>>> {
        let Some(name) = links.first().and_then(ChainLink::key) else {
            return Err(self
                .error(position, "`data` is followed by the name of a constant")
                .with_help("name a constant, as in `data.limits`".to_owned()));
        };
        self.record_definition(DefinitionName::Data(name.to_owned()));
        if self.names.collects_unknown || self.names.data().is_invalid(name) {
            return Ok(None);
        }
        let data = self.names.data().clone();
        let Some(mut value) = data.constant(name) else {
            return Err(self.unknown_constant_error(&data, name, position));
        };
        let mut keys = vec![name.to_owned()];
        for key in links.iter().skip(1).map_while(ChainLink::key) {
            let Value::Object(members) = value else { break };
            value = members.get(key).ok_or_else(|| {
                let path = keys.join(".");
                let error = self.error(position, format!("`data.{path}` has no key `{key}`"));
                match closest_match(key, members.keys().map(|known| &**known)) {
                    Some(meant) => error.with_help(format!("did you mean `data.{path}.{meant}`?")),
                    None => error.with_help("name a key that the constant has".to_owned()),
                }
            })?;
            keys.push(key.to_owned());
        }
        Ok(Some(keys))
    }

    fn unknown_constant_error(&self, data: &DataSet, name: &str, position: Position) -> ScriptCompileError {
        let known: Vec<&str> = data.names().collect();
        let help = match closest_match(name, known.iter().copied()) {
            Some(meant) => format!("did you mean `data.{meant}`?"),
            None if known.is_empty() => "define it under `data:`".to_owned(),
            None => format!("the constants are {}", quote_all(&known)),
        };
        self.error(position, format!("unknown constant `data.{name}`")).with_help(help).for_unknown_name()
    }

    /// The strings of a constant of the bundle: one string, or an array of them. Returns none of them while unknown names are collected, and
    /// `None` for any other expression and value.
    pub(super) fn constant_strings(&mut self, constant: &Expr) -> CompileResult<Option<Vec<String>>> {
        let (base, links) = split_chain(constant);
        let is_data = matches!(base, Expr::Variable(variable, _, _) if variable.1 == DATA);
        if !is_data || self.find_slot(DATA).is_some() || links.iter().any(|link| link.key().is_none()) {
            return Ok(None);
        }
        let Some(keys) = self.data_keys(&links, base.start_position())? else { return Ok(Some(Vec::new())) };
        let Some((name, rest)) = keys.split_first().filter(|_| keys.len() == links.len()) else {
            return Ok(None);
        };
        let value = self.names.data().constant(name);
        let value = rest.iter().try_fold(value, |value, key| Some(value?.get(key.as_str()))).flatten();
        Ok(match value {
            Some(Value::String(text)) => Some(vec![text.clone()]),
            Some(Value::Array(items)) if !items.is_empty() => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        })
    }

    /// Whether a value may be an argument of the call or a part of one, as far as the text shows. `input` itself is always an object.
    /// Variables of functions and scripts may hold anything.
    pub(super) fn may_be_argument(&self, value: &Expr) -> bool {
        let (base, links) = split_chain(value);
        let reads_input = self.has_statements() || self.dependencies.reads_arguments();
        match base {
            Expr::Variable(variable, _, _) => match (self.find_slot(&variable.1), variable.1.as_str()) {
                (Some(slot), _) if self.is_input(slot) => !links.is_empty(),
                (Some(_), _) => reads_input,
                (None, name) if let Some(element) = self.names.elements().root(name) => element.is_argument(),
                (None, "input") => !links.is_empty(),
                (None, name) => match self.names.find_let(name).flatten() {
                    Some(named) => named.may_be_argument(),
                    None => false,
                },
            },
            Expr::StringConstant(..) | Expr::Map(..) => false,
            _ => reads_input,
        }
    }

    /// Whether a chain begins with `session.round`, which is supplied with the call and is no part of the session's state.
    pub(super) fn is_round(&self, base: &Expr, links: &[ChainLink<'_>]) -> bool {
        let Expr::Variable(variable, _, _) = base else { return false };
        !self.has_statements()
            && variable.1 == Root::Session.name()
            && self.find_slot(&variable.1).is_none()
            && links.first().and_then(ChainLink::key) == Some("round")
    }

    /// Compiles the rest of a chain after `?.` or `?[`.
    pub(super) fn compile_optional_link(
        &mut self,
        node: CodeNode,
        position: Position,
        base: &Expr,
        links: &[ChainLink<'_>],
        next: usize,
    ) -> CompileResult<CodeNode> {
        let scope = self.scope.len();
        let slot = self.declare_unnamed();
        let value = Self::new_node(position, Code::Slot(slot));
        let (first, from) = match links.get(next) {
            Some(ChainLink::Property(key, position)) => {
                let key = Self::new_node(*position, Code::String((*key).to_owned()));
                (Self::new_node(*position, Code::OptionalMember(Box::new([value, key]))), next + 1)
            }
            Some(ChainLink::Index(index, position)) => {
                let index = self.compile_expression(index)?;
                (Self::new_node(*position, Code::OptionalMember(Box::new([value, index]))), next + 1)
            }
            _ => (value, next),
        };
        let rest = self.compile_links(first, base, links, from)?;
        self.scope.truncate(scope);
        Ok(Self::new_node(position, Code::OptionalChain(Box::new(node), slot, Box::new(rest))))
    }

    /// Compiles `is_tool("pattern")`.
    pub(super) fn compile_is_tool(
        &mut self,
        call: &FnCallExpr,
        position: Position,
    ) -> CompileResult<CodeNode> {
        let [Expr::StringConstant(pattern, at)] = call.args.as_slice() else {
            return Err(self
                .error(position, "`is_tool` takes a tool pattern as a string literal")
                .with_help(
                    "write for example `is_tool(\"refund_*\")`, or `is_tool(\"@group\")`".to_owned(),
                ));
        };
        self.dependencies.add(Root::Tool, Vec::new());
        let patterns = match pattern.strip_prefix('@') {
            Some(group) => {
                self.record_definition(DefinitionName::Group(group.to_owned()));
                match self.names.group(group) {
                    Some(patterns) => patterns.to_vec(),
                    None if self.names.collects_unknown => Vec::new(),
                    None => return Err(self.unknown_group_error(group, *at)),
                }
            }
            None => vec![
                crate::name_pattern::NamePattern::parse(pattern)
                    .map_err(|problem| self.error(*at, problem.message).with_help(problem.help))?,
            ],
        };
        Ok(Self::new_node(position, Code::IsTool(patterns)))
    }

    fn unknown_group_error(&self, name: &str, position: Position) -> ScriptCompileError {
        let help = match closest_match(name, self.names.group_names()) {
            Some(meant) => format!("did you mean `@{meant}`?"),
            None => "define it under `groups:`".to_owned(),
        };
        self.error(position, format!("unknown group `@{name}`")).with_help(help).for_unknown_name()
    }
}
