//! Redacts the values of a call in progress, before an explanation stores them.

use std::cell::OnceCell;

use crate::call::{CallView, LetMemo, Masks, NodeRef, ResultView, Root};
use crate::json::{self, Value};
use crate::kernel::{ArgumentRedaction, Layers, reads_yaml, redact_result};
use crate::matcher::{ExaminedCondition, ExaminedForm, Truth, ValueSource};
use crate::middleware::{PolicyKind, Redact};
use crate::policy::{Mode, Policy};
use crate::script::ExpressionValue;

/// The replacement of a value that can't be redacted.
pub(super) const WITHHELD: &str = "[withheld]";
/// The maximum size of a stored value, in bytes of JSON; of a larger one, only the size is stored.
const MAX_VALUE_BYTES: usize = 4 << 10;
/// The maximum length of a stored string, in characters.
const MAX_TEXT_LENGTH: usize = 400;

/// The redactor of a call's values. It redacts whole documents, because a match may depend on the keys above a value.
pub(super) struct ExplanationRedactor<'v> {
    redactions: Vec<&'v Redact>,
    /// The changes that they make to the arguments, and the redacted parts of the session's facts.
    masks: Masks,
    /// Whether the tool's results are declared as YAML.
    is_yaml: bool,
    view: CallView<'v>,
    input: OnceCell<Value>,
    output: OnceCell<Value>,
    result: OnceCell<Value>,
    context: OnceCell<Value>,
    session: OnceCell<Value>,
    annotations: OnceCell<Value>,
}

impl<'v> ExplanationRedactor<'v> {
    /// Creates the redactor from the policies that redact this call now, or may do so once it has a result.
    pub(super) fn of(layers: &'v Layers, view: CallView<'v>) -> Self {
        let server = view.call.server.as_deref().unwrap_or("");
        let policies = layers.iter().flat_map(|policies| policies.policies());
        let matching = policies.filter(|policy| policy.matcher.matches_tool(server, &view.call.tool));
        let redactions: Vec<_> = matching.filter_map(|policy| applicable_redaction(policy, &view)).collect();
        let (session, others) = (view.session.redacted(), view.session.masks());
        let hide = |value: &mut Value| {
            let mut of_input = redactions.iter().filter(|redact| redact.input);
            of_input.all(|redact| redact.redactor.redact_value(value).is_ok())
        };
        let mut masks = others.clone();
        let mut input = OnceCell::new();
        if redactions.iter().any(|redact| redact.input) || !others.is_empty() {
            let redaction = ArgumentRedaction { layers, view, session: &session, others, redact: &hide };
            let (shown, changes) = redaction.run();
            masks.merge(&changes);
            input = OnceCell::from(shown);
        }
        Self {
            redactions,
            masks,
            is_yaml: reads_yaml(layers, &view.call.tool),
            view,
            input,
            output: OnceCell::new(),
            result: OnceCell::new(),
            context: OnceCell::new(),
            session: OnceCell::new(),
            annotations: OnceCell::new(),
        }
    }

    /// The call, unredacted.
    pub(super) fn view(&self) -> CallView<'v> {
        self.view
    }

    /// Redacts a value within a member of the call document.
    pub(super) fn value(&self, root: Root, node: NodeRef<'_>) -> Value {
        let value = match node {
            NodeRef::Text(text) => match root {
                Root::Error => Value::from(self.redact_string(root, text)),
                _ => Value::from(text),
            },
            NodeRef::Time(time) => Value::from(time.text.as_str()),
            NodeRef::Json(value) if matches!(root, Root::Task | Root::Round) => self.document(root, value),
            NodeRef::Json(value) => self.counterpart(root, value).unwrap_or_else(|| WITHHELD.into()),
        };
        truncate_value(value)
    }

    /// Redacts a value that a path or an expression reads.
    pub(super) fn source_value(&self, source: &ValueSource, value: &ExpressionValue<'_>) -> Value {
        match source {
            ValueSource::Path(path) => self.value(path.root(), value.node()),
            ValueSource::Expression(expression) => {
                self.computed_value(&source.roots(), value.node(), |view| {
                    expression.expression.value(view).ok()
                })
            }
        }
    }

    /// Redacts a value that was computed from these members of the call: it may contain parts of each. `evaluate` computes it for another
    /// call.
    pub(super) fn computed_value(
        &self,
        roots: &[Root],
        node: NodeRef<'_>,
        evaluate: impl FnOnce(&CallView<'_>) -> Option<Value>,
    ) -> Value {
        let mut value = node.to_value();
        let mut masks = self.masks.clone();
        for root in roots {
            if self.redactions_of(*root).any(|redact| redact.redactor.redact_value(&mut value).is_err()) {
                return WITHHELD.into();
            }
            if let (Root::Output, Some(output)) = (root, self.view.output) {
                masks.add_changes(output, &self.document(Root::Output, output));
            }
            if let (Root::Result, ResultView::Value(result)) = (root, self.view.result) {
                masks.add_changes(result, &self.document(Root::Result, result));
            }
        }
        if !masks.is_empty() {
            let shown = self.evaluate_redacted(evaluate);
            masks.merge(&masks.derived(&value, shown.as_ref()));
        }
        masks.value(&mut value);
        truncate_value(value)
    }

    /// The result of an evaluation for the redacted call.
    fn evaluate_redacted<T>(&self, evaluate: impl FnOnce(&CallView<'_>) -> T) -> T {
        let memo = LetMemo::default();
        let hidden = |root, value: Option<&'v Value>| value.map(|value| self.document(root, value));
        let result = match self.view.result {
            ResultView::Value(result) => Some(result),
            ResultView::Absent | ResultView::Unreadable(_) => None,
        };
        let (output, result) = (hidden(Root::Output, self.view.output), hidden(Root::Result, result));
        let input = self.input.get_or_init(|| self.document(Root::Input, self.view.input));
        let session = self.view.session.redacted();
        let view = CallView {
            input,
            session: &session,
            output: output.as_ref(),
            result: result.as_ref().map_or(ResultView::Absent, ResultView::Value),
            lets: Some(&memo),
            ..self.view
        };
        evaluate(&view)
    }

    /// Redacts a whole document in place of a member.
    pub(super) fn document(&self, root: Root, document: &Value) -> Value {
        let mut hidden = document.clone();
        let is_yaml = root == Root::Output && self.is_yaml;
        let mut redactions = self.redactions_of(root);
        match redactions.all(|redact| redact_result(&redact.redactor, &mut hidden, is_yaml).is_some()) {
            true => {
                self.masks.value(&mut hidden);
                hidden
            }
            false => WITHHELD.into(),
        }
    }

    /// Redacts a text about the call.
    pub(super) fn text(&self, text: &str) -> String {
        let hide = |text: String, redact: &&Redact| redact.redactor.redact_text(&text).into_owned();
        let redacted = self.redactions.iter().fold(text.to_owned(), hide);
        truncate_text(self.masks.text(&redacted).into_owned())
    }

    /// Redacts a string that was derived from these members of the call.
    pub(super) fn part(&self, roots: &[Root], text: &str) -> Value {
        let mut text = text.to_owned();
        for root in roots {
            text = self.redact_string(*root, &text);
        }
        Value::from(text)
    }

    fn redact_string(&self, root: Root, text: &str) -> String {
        let redacted = self
            .redactions_of(root)
            .fold(text.to_owned(), |text, redact| redact.redactor.redact_text(&text).into_owned());
        self.masks.text(&redacted).into_owned()
    }

    fn redactions_of(&self, root: Root) -> impl Iterator<Item = &'v Redact> {
        self.redactions.iter().copied().filter(move |redact| applies_to(redact, root))
    }

    fn counterpart(&self, root: Root, value: &Value) -> Option<Value> {
        let (document, hidden) = match root {
            Root::Input => (self.view.input, &self.input),
            Root::Output => (self.view.output?, &self.output),
            Root::Result => match self.view.result {
                ResultView::Value(result) => (result, &self.result),
                ResultView::Absent | ResultView::Unreadable(_) => return None,
            },
            Root::Context => (&self.view.call.context, &self.context),
            Root::Session => (self.view.session.document(), &self.session),
            Root::Annotations => (self.view.annotations?, &self.annotations),
            Root::Tool
            | Root::Server
            | Root::Id
            | Root::Error
            | Root::Task
            | Root::Round
            | Root::Now
            | Root::Element(_) => return None,
        };
        if self.redactions_of(root).next().is_none() && self.masks.is_empty() {
            return Some(value.clone());
        }
        let hidden = hidden.get_or_init(|| self.document(root, document));
        counterpart(document, hidden, value, json::MAX_DEPTH).cloned()
    }
}

/// The value of the redacted document at the position of `wanted` in the original. `wanted` is compared by address, not by value. Returns
/// `None` if it is not found.
pub(super) fn counterpart<'h>(
    document: &Value,
    hidden: &'h Value,
    wanted: &Value,
    depth: usize,
) -> Option<&'h Value> {
    if std::ptr::eq(document, wanted) {
        return Some(hidden);
    }
    let depth = depth.checked_sub(1)?;
    match (document, hidden) {
        (Value::Array(items), Value::Array(hidden)) if items.len() == hidden.len() => {
            items.iter().zip(hidden).find_map(|(item, hidden)| counterpart(item, hidden, wanted, depth))
        }
        (Value::Object(members), Value::Object(hidden)) if members.len() == hidden.len() => {
            let pairs = members.values().zip(hidden.values());
            pairs.into_iter().find_map(|(member, hidden)| counterpart(member, hidden, wanted, depth))
        }
        _ => None,
    }
}

/// Whether a redaction applies to this member. The session contains arguments and results of earlier calls, and a context may contain
/// anything.
pub(super) fn applies_to(redact: &Redact, root: Root) -> bool {
    match root {
        Root::Input => redact.input,
        Root::Output | Root::Error | Root::Result => redact.output,
        Root::Context | Root::Session | Root::Annotations | Root::Task | Root::Element(_) => true,
        Root::Tool | Root::Server | Root::Id | Root::Round | Root::Now => false,
    }
}

/// The redaction of a policy, unless its conditions certainly do not hold: conditions that read the result may hold later.
fn applicable_redaction<'p>(policy: &'p Policy, view: &CallView<'_>) -> Option<&'p Redact> {
    let PolicyKind::Redact(redact) = &policy.kind else { return None };
    if policy.mode != Mode::Enforce {
        return None;
    }
    let Some(condition) = &policy.matcher.condition else { return Some(redact) };
    let examined = condition.examine(view);
    (examined.truth != Truth::No || reads_result(&examined)).then_some(redact)
}

fn reads_result(examined: &ExaminedCondition<'_>) -> bool {
    let mut reads = false;
    examined.visit(&mut |part| {
        reads |= match &part.form {
            ExaminedForm::Test(test) => {
                let operands = test.operators.iter().filter_map(|operator| operator.operand_source);
                let mut sources = operands.chain([test.subject]);
                sources.any(|source| source.roots().into_iter().any(Root::is_settle_only))
            }
            ExaminedForm::Expr(_) | ExaminedForm::Elements(_) | ExaminedForm::Shell(_) => true,
            _ => false,
        };
    });
    reads
}

/// Truncates a value to the size that is displayed.
pub(super) fn truncate_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::from(truncate_text(text)),
        Value::Array(_) | Value::Object(_) => {
            let bytes = json::canonical_text(&value).len();
            if bytes <= MAX_VALUE_BYTES {
                return value;
            }
            let json_type = json::JsonType::from_value(&value).with_article();
            Value::from(format!("[{json_type} of {bytes} bytes]"))
        }
        scalar => scalar,
    }
}

fn truncate_text(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
