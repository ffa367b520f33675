//! What commands change of a shell's state, found without following them: for loops and functions, whose commands run any number of times.

use crate::syntax::{Compound, List, Node, Part, SimpleCommand};

/// What may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    /// Variables.
    pub(super) names: Vec<String>,
    pub(super) changes_directory: bool,
    /// Any variable.
    pub(super) is_any: bool,
}

impl Effects {
    pub(super) fn of_list(list: &List) -> Self {
        let mut effects = Self::default();
        effects.add_list(list);
        effects
    }

    pub(super) fn of_node(node: &Node) -> Self {
        let mut effects = Self::default();
        effects.add_node(node);
        effects
    }

    pub(super) fn add_list(&mut self, list: &List) {
        list.iter().for_each(|item| self.add_node(&item.node));
    }

    fn add_node(&mut self, node: &Node) {
        match node {
            Node::Simple(command) => self.add_simple(command),
            Node::Pipeline(nodes) => nodes.iter().for_each(|node| self.add_node(node)),
            Node::And(a, b) | Node::Or(a, b) => {
                self.add_node(a);
                self.add_node(b);
            }
            Node::Not(node) => self.add_node(node),
            Node::Compound(compound, _) => self.add_compound(compound),
        }
    }

    fn add_compound(&mut self, compound: &Compound) {
        match compound {
            Compound::Subshell(_) => {}
            Compound::Group(list) => self.add_list(list),
            Compound::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.add_list(condition);
                    self.add_list(body);
                }
                self.add_list(otherwise);
            }
            Compound::While { condition, body } => {
                self.add_list(condition);
                self.add_list(body);
            }
            Compound::For { name, body, .. } => {
                self.names.extend(name.clone());
                self.add_list(body);
            }
            Compound::Case { arms, .. } => arms.iter().for_each(|(_, list)| self.add_list(list)),
            Compound::Function { body, .. } => self.add_node(body),
            Compound::Test(_) => self.names.push("BASH_REMATCH".to_owned()),
            // `((x = 1))` sets variables.
            Compound::Arithmetic(_) => self.is_any = true,
        }
    }

    fn add_simple(&mut self, command: &SimpleCommand) {
        self.names.extend(command.assignments.iter().map(|assignment| assignment.name.clone()));
        let Some(first) = command.words.first() else { return };
        let text: String = first
            .parts
            .iter()
            .map(|part| match part {
                Part::Bare(text) | Part::Quoted(text) => text.as_str(),
                // A program that is known only when it runs.
                _ => "eval",
            })
            .collect();
        match text.as_str() {
            "cd" | "pushd" | "popd" => self.changes_directory = true,
            // A builtin that sets variables, a function, or a program.
            _ if command.words.len() < 2 && !text.contains("eval") => {}
            "eval" | "source" | "." | "command" | "builtin" | "trap" => {
                self.is_any = true;
                self.changes_directory = true;
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "read" | "mapfile" | "readarray"
            | "printf" | "unset" | "let" | "getopts" | "set" | "shift" => self.is_any = true,
            _ if text.contains("eval") => {
                self.is_any = true;
                self.changes_directory = true;
            }
            _ => {}
        }
    }
}
