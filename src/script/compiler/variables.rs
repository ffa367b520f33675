//! Compiler for variables: those of the text, members of the call, and named values.

use rhai::{Expr, Position};

use super::{CompileResult, Compiler, quote_all};
use crate::call::Root;
use crate::diagnostic::closest_match;
use crate::script::ScriptCompileError;
use crate::script::language::Language;
use crate::script::parser::split_chain;
use crate::script::program::{Code, ReadOnlyVariable};

impl Compiler<'_> {
    pub(super) fn find_slot(&self, name: &str) -> Option<usize> {
        self.scope.iter().rposition(|known| known.name == name)
    }

    /// Compiles a read of a variable and records the path `keys` as a dependency.
    pub(super) fn compile_variable(
        &mut self,
        name: &str,
        position: Position,
        keys: Vec<String>,
    ) -> CompileResult<Code> {
        if let Some(slot) = self.find_slot(name) {
            if self.closure_variable(name).is_some() {
                return Err(self
                    .error(
                        position,
                        format!(
                            "the closure `{name}` can only be called, or passed to a function such as `map`"
                        ),
                    )
                    .with_help(format!("write `{name}.call(…)`, or define a function with `fn`")));
            }
            if self.is_input(slot) {
                self.dependencies.add(Root::Input, keys);
            }
            return Ok(Code::Slot(slot));
        }
        if let Some(member) = self.call_member(name) {
            if let ReadOnlyVariable::Root(root) = member {
                self.dependencies.add(root, keys);
            }
            return Ok(Code::Member(member));
        }
        if self.is_options(name) {
            return Ok(Code::Member(ReadOnlyVariable::Options));
        }
        if let Some(code) = self.compile_named(name, position)? {
            return Ok(code);
        }
        Err(self.unknown_variable_error(name, position))
    }

    pub(super) fn unknown_variable_error(&self, name: &str, position: Position) -> ScriptCompileError {
        if self.is_script() && name == "input" {
            return self
                .error(position, "a function cannot read the script's `input`")
                .with_help("pass it as an argument".to_owned());
        }
        if self.language == Language::Functions && Root::from_name(name).is_some() {
            return self
                .error(
                    position,
                    format!("a function cannot read `{name}`: it sees its parameters and `data`"),
                )
                .with_help(format!("pass it as an argument: `fn large({name}) {{ … }}`"));
        }
        let members = Root::ALL.map(Root::name).into_iter().filter(|name| self.call_member(name).is_some());
        let members = members.chain(self.is_script().then_some("options"));
        let own = self.scope.iter().map(|known| known.name.as_str()).chain(self.names.elements().names());
        let named = self.names.let_names().filter(|_| self.reads_named_values());
        let known: Vec<&str> = own.chain(members).chain(named).collect();
        let help = match closest_match(name, known.iter().copied()) {
            _ if name == "principal" => "write `context.principal`".to_owned(),
            None if let Some(element) = self.names.elements().innermost() => {
                format!("the element is `{element}` here")
            }
            Some(meant) => format!("did you mean `{meant}`?"),
            None if self.reads_named_values() && !self.is_script() => {
                format!("write `input.{name}` for an argument of the tool, or define `{name}` under `let:`")
            }
            None => format!("available variables: {}", quote_all(&known)),
        };
        self.error(position, format!("unknown name `{name}`")).with_help(help).for_unknown_name()
    }

    pub(super) fn call_member(&self, name: &str) -> Option<ReadOnlyVariable> {
        if self.language == Language::Functions {
            return None;
        }
        if self.is_script() {
            return match Root::from_name(name)? {
                Root::Input | Root::Output | Root::Error | Root::Result | Root::Task | Root::Now => None,
                root => Some(ReadOnlyVariable::Root(root)),
            };
        }
        self.names.elements().root(name).or_else(|| Root::from_name(name)).map(ReadOnlyVariable::Root)
    }

    /// Whether a slot is the script's `input`.
    pub(super) fn is_input(&self, slot: usize) -> bool {
        self.is_script() && slot == 0 && self.scope.first().is_some_and(|name| name.name == "input")
    }

    /// Records that the program looks up a literal key in a value.
    pub(super) fn record_key_lookup(&mut self, container: &Expr, key: &Expr) {
        let Expr::StringConstant(key, _) = key else { return };
        let (base, links) = split_chain(container);
        let keys: Option<Vec<String>> = links.iter().map(|link| link.key().map(str::to_owned)).collect();
        let of_input = match base {
            Expr::Variable(variable, _, _) if variable.1 == "input" => {
                self.find_slot(&variable.1).is_none_or(|slot| self.is_input(slot))
            }
            _ => false,
        };
        match keys.filter(|_| of_input) {
            Some(mut keys) => {
                keys.push(key.to_string());
                self.dependencies.add(Root::Input, keys);
            }
            None => self.dependencies.add_member(key),
        }
    }

    pub(super) fn is_options(&self, name: &str) -> bool {
        self.is_script() && name == "options"
    }
}
