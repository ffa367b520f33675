//! Follows lists, pipelines and compound commands.

use super::effects::Effects;
use super::state::{Flow, State};
use super::text_output::output_text;
use super::{Analysis, Input};
use crate::command::DoubtKind;
use crate::directories::Directories;
use crate::syntax::{Compound, List, Node, Redirection, Word};

impl Analysis<'_> {
    pub(super) fn follow_list(&mut self, list: &List, state: State) -> Flow {
        let mut flow = Flow::same(state);
        for item in list {
            let state = flow.either();
            flow = if item.is_background {
                self.follow(&item.node, state.clone());
                Flow::same(state)
            } else {
                self.follow(&item.node, state)
            };
        }
        flow
    }

    fn follow(&mut self, node: &Node, state: State) -> Flow {
        if !self.step() {
            return Flow::same(state);
        }
        let mut flow = self.follow_node(node, state);
        let assigned = std::mem::take(&mut self.assigned);
        flow.succeeded.forget(&assigned);
        flow.failed.forget(&assigned);
        flow
    }

    fn follow_node(&mut self, node: &Node, state: State) -> Flow {
        match node {
            Node::Simple(command) => self.follow_simple(command, state),
            Node::Pipeline(nodes) => self.follow_pipeline(nodes, state),
            Node::And(left, right) => {
                let left = self.follow(left, state);
                let right = self.follow(right, left.succeeded);
                Flow { succeeded: right.succeeded, failed: left.failed.or(right.failed) }
            }
            Node::Or(left, right) => {
                let left = self.follow(left, state);
                let right = self.follow(right, left.failed);
                Flow { succeeded: left.succeeded.or(right.succeeded), failed: right.failed }
            }
            Node::Not(node) => {
                let flow = self.follow(node, state);
                Flow { succeeded: flow.failed, failed: flow.succeeded }
            }
            Node::Compound(compound, redirections) => self.follow_redirected(compound, redirections, state),
        }
    }

    fn follow_pipeline(&mut self, nodes: &[Node], state: State) -> Flow {
        let outer = self.input.clone();
        let mut first = self.script.commands.len();
        let (mut programs, mut may_have_more) = (outer.programs.clone(), outer.may_have_more);
        let mut last = state.clone();
        for (index, node) in nodes.iter().enumerate() {
            if index > 0 {
                let (more, are_known) = self.programs_since(first);
                first = self.script.commands.len();
                programs.extend(more);
                programs.sort_unstable();
                programs.dedup();
                may_have_more |= !are_known;
                let programs = programs.clone();
                let text = match (index, nodes.first()) {
                    (1, Some(node)) => self.known_output(node, &state),
                    _ => None,
                };
                self.input = Input { programs, text, is_given: true, may_have_more };
            }
            last = self.follow(node, state.clone()).either();
        }
        self.input = outer;
        // Some shells run the last command themselves.
        Flow::same(state.or(last))
    }

    /// What a command prints, if that is known: of `echo` and of `cat` with a here-document.
    fn known_output(&mut self, node: &Node, state: &State) -> Option<String> {
        let Node::Simple(command) = node else { return None };
        // The words were followed already: this finds their values only.
        let (commands, doubts) = (self.script.commands.len(), self.script.doubts.len());
        let words = self.expand_words(&command.words, state);
        let documents: Vec<Option<String>> =
            command.redirections.iter().map(|redirection| self.redirected_text(redirection, state)).collect();
        self.script.commands.truncate(commands);
        self.script.doubts.truncate(doubts);
        output_text(&words, &documents)
    }

    fn follow_redirected(&mut self, compound: &Compound, redirections: &[Redirection], state: State) -> Flow {
        let outer = self.input.clone();
        if !redirections.is_empty() {
            let files = self.follow_redirections(redirections, &state);
            if files.input.is_given {
                self.input = files.input.clone();
            }
            self.add_redirection_command(files, &state);
        }
        let flow = self.follow_compound(compound, state);
        self.input = outer;
        flow
    }

    fn follow_compound(&mut self, compound: &Compound, state: State) -> Flow {
        match compound {
            Compound::Subshell(list) => {
                self.follow_list(list, state.clone());
                Flow::same(state)
            }
            Compound::Group(list) => self.follow_list(list, state),
            Compound::If { branches, otherwise } => {
                let mut ends: Option<State> = None;
                let mut state = state;
                let mut join = |end: State| ends = Some(ends.take().map_or(end.clone(), |ends| ends.or(end)));
                for (condition, body) in branches {
                    let condition = self.follow_list(condition, state);
                    join(self.follow_list(body, condition.succeeded).either());
                    state = condition.failed;
                }
                join(self.follow_list(otherwise, state.clone()).either());
                Flow::same(ends.unwrap_or(state))
            }
            Compound::While { condition, body } => {
                let mut effects = Effects::of_list(condition);
                effects.add_list(body);
                let mut state = state;
                state.forget(&effects);
                let condition = self.follow_list(condition, state.clone());
                self.follow_list(body, condition.succeeded);
                Flow::same(state)
            }
            Compound::For { name, words, body } => self.follow_for(name.as_deref(), words, body, state),
            Compound::Case { subject, arms } => {
                self.expand_word(subject, &state);
                let mut end = state.clone();
                // An arm can continue in the next one.
                let mut through = state.clone();
                for (patterns, list) in arms {
                    for pattern in patterns {
                        self.expand_word(pattern, &state);
                    }
                    through = self.follow_list(list, state.clone().or(through)).either();
                    end = end.or(through.clone());
                }
                Flow::same(end)
            }
            Compound::Function { name, body } => {
                let mut inner = state.clone();
                inner.directories = Directories::Unknown;
                inner.is_any_set = true;
                self.functions.push((name.clone(), Effects::of_node(body)));
                // It may be called with any input.
                let outer = std::mem::replace(
                    &mut self.input,
                    Input { is_given: true, may_have_more: true, ..Input::default() },
                );
                self.follow(body, inner);
                self.input = outer;
                Flow::same(state)
            }
            Compound::Arithmetic(expression) => {
                self.has_evaluation = true;
                self.expand_word(expression, &state);
                let mut state = state;
                state.forget(&Effects { is_any: true, ..Effects::default() });
                Flow::same(state)
            }
            Compound::Test(words) => {
                self.has_evaluation = true;
                words.iter().for_each(|word| {
                    self.expand_word(word, &state);
                });
                Flow::same(state)
            }
        }
    }

    fn follow_for(&mut self, name: Option<&str>, words: &[Word], body: &List, state: State) -> Flow {
        if name.is_none() {
            self.has_evaluation = true;
        }
        let values = self.expand_words(words, &state);
        let mut state = state;
        state.forget(&Effects::of_list(body));
        if name.is_none() {
            state.is_any_set = true;
        }
        let known: Option<Vec<&str>> = values.iter().map(|value| value.as_known()).collect();
        match (name, known) {
            // A body that nothing in it changes is followed for each value, if there are few.
            (Some(name), Some(known)) if !state.is_any_set && (1..=8).contains(&known.len()) => {
                for value in known {
                    let mut state = state.clone();
                    state.set(name, Some(value.to_owned()));
                    self.follow_list(body, state);
                }
            }
            (name, _) => {
                let mut state = state.clone();
                if let Some(name) = name {
                    state.set(name, None);
                }
                self.follow_list(body, state);
            }
        }
        if let Some(name) = name {
            state.set(name, None);
        }
        if self.script.commands.len() >= super::MAX_COMMANDS {
            self.doubt(DoubtKind::Dynamic, "it has too many commands");
        }
        Flow::same(state)
    }
}
