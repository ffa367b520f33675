//! Which members of the call document a policy reads, and whether they exist where it acts.

use super::PolicyReader;
use crate::call::{ContextReads, Root};
use crate::diagnostic::PATH_NOT_HERE;
use crate::script::DefinitionName;
use crate::source::YamlNode;

impl PolicyReader<'_> {
    /// Records what a string of the policy reads, and reports reads of members that do not exist where the policy acts: `$.output` and
    /// `$.error` before the tool runs, members of a call in a policy about a run; `node` is the string that reads them.
    pub fn check_reads(
        &mut self,
        node: &YamlNode,
        roots: impl IntoIterator<Item = Root>,
        context: &ContextReads,
    ) -> bool {
        self.context_reads.extend(context);
        // What elements come from has been checked where it is named.
        let roots: Vec<Root> = roots.into_iter().filter(|root| !matches!(root, Root::Element(_))).collect();
        self.roots_read.extend(roots.iter().copied());
        let (of_run, after_tool) = (self.of_run, self.after_tool);
        let missing = roots.into_iter().find(|root| match of_run {
            true => !matches!(root, Root::Context | Root::Session | Root::Task | Root::Now),
            false => root.is_settle_only() && !after_tool,
        });
        let Some(root) = missing else { return true };
        let text = node.as_str().unwrap_or_default();
        let range = text.find(root.name()).map_or(0..text.len(), |at| at..at + root.name().len());
        let through = self.definitions.iter().find_map(|definition| match definition {
            DefinitionName::Let(name) => {
                self.names.find_let(name)?.filter(|let_| let_.roots_read().contains(&root))
            }
            _ => None,
        });
        let (message, help) = if let Some(named) = through.filter(|_| !text.contains(root.name())) {
            let (name, root) = (named.name(), root.name());
            match of_run {
                true => (
                    format!("`{name}` reads `$.{root}`, a member of a call, but this policy is about a run"),
                    "use only named values that read `$.context` and `$.session` here",
                ),
                false if self.at_start => (
                    format!("`{name}` reads `$.{root}`, which does not exist yet with `when: attempted`"),
                    "remove `when: attempted`, or use only what is known before the tool runs",
                ),
                false => (
                    format!("`{name}` reads `$.{root}`, which does not exist yet where this policy acts"),
                    "only policies that act after the tool can use it: recover, transform.output, redact, label, fact, audit",
                ),
            }
        } else if of_run {
            (
                format!("`$.{}` is a member of a call, but this policy is about a run", root.name()),
                "use only `$.context` and `$.session` here",
            )
        } else if self.at_start {
            (
                format!("`$.{}` does not exist yet with `when: attempted`", root.name()),
                "remove `when: attempted`, or read only what is known before the tool runs, such as `$.input`",
            )
        } else {
            (
                format!("`$.{}` does not exist yet when this policy acts", root.name()),
                "use a policy that acts after the tool: recover, transform.output, redact, label, fact, audit",
            )
        };
        self.report_in(&PATH_NOT_HERE, node, range, message, Some(help.to_owned()));
        false
    }
}
