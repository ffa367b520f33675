//! Keys of limits and caches: paths and expressions → their values in a call, with the principal in its canonical form.

use crate::call::{CallView, NodeRef};
use crate::json::Value;
use crate::matcher::{Truth, ValueSource};
use crate::path::Path;
use crate::principal::{PrincipalComparison, PrincipalValue};
use crate::rules_schema::PolicyReader;
use crate::source::YamlNode;

/// The parts of a key.
#[derive(Debug)]
pub(super) struct KeyValues {
    sources: Vec<ValueSource>,
    principals: PrincipalComparison,
}

impl KeyValues {
    /// Reads `key`. Without it the key has no parts.
    pub(super) fn read(node: Option<&YamlNode>, reader: &mut PolicyReader<'_>) -> Self {
        let nodes = node.map(|node| node.items().unwrap_or(std::slice::from_ref(node))).unwrap_or_default();
        let sources = nodes.iter().filter_map(|node| ValueSource::read(node, reader)).collect();
        Self { sources, principals: reader.principals }
    }

    /// The settings that counts depend on: the parts as written, and how principals are compared if that is not the default.
    pub(super) fn identity(&self) -> Vec<&str> {
        let exact = (!self.principals.is_canonical()).then_some("principals: exact");
        self.sources.iter().map(ValueSource::text).chain(exact).collect()
    }

    /// Returns the values of each part: an array per part. An absent value counts as a distinct value.
    ///
    /// # Errors
    /// Returns a message if a part cannot be evaluated, or if the principal is neither absent nor a name.
    pub(super) fn values(&self, view: &CallView<'_>) -> Result<Vec<Value>, String> {
        self.sources
            .iter()
            .map(|source| match source {
                ValueSource::Path(path) => self.path_values(path, view),
                ValueSource::Expression(_) => self.expression_values(source, view),
            })
            .collect()
    }

    fn path_values(&self, path: &Path, view: &CallView<'_>) -> Result<Value, String> {
        let nodes = path.nodes(view).map_err(|mismatch| mismatch.to_string())?;
        nodes.iter().filter_map(|node| self.value(*node, view).transpose()).collect()
    }

    /// The value of an expression. The name of the principal stands in it in its canonical form, so that no spelling of the name gets a
    /// count of its own.
    fn expression_values(&self, source: &ValueSource, view: &CallView<'_>) -> Result<Value, String> {
        let mut values = source.with_values(view, |values| match values {
            Ok(values) => Ok(values.iter().map(|value| value.to_json()).collect::<Value>()),
            Err(Truth::Undecided(why)) => Err(why),
            Err(_) => Err(format!("`{}` has no value", source.text())),
        })?;
        if source.reads_principal() {
            let context = &view.call.context;
            match (self.principal(view)?, context.get("principal").and_then(Value::as_str)) {
                (Some(canonical), Some(written)) => replace_strings(&mut values, written, &canonical),
                (None, Some(written)) => replace_strings(&mut values, written, &Value::Null),
                (_, None) => {}
            }
        }
        Ok(values)
    }

    fn value(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Result<Option<Value>, String> {
        let context = &view.call.context;
        let is = |value: &Value| node.as_json().is_some_and(|json| std::ptr::eq(json, value));
        let of_principal = context.get("principal").is_some_and(is);
        if !of_principal && !is(context) {
            return Ok(Some(node.to_json()));
        }
        let name = self.principal(view)?;
        if of_principal {
            return Ok(name);
        }
        let mut context = context.clone();
        if let Some(members) = context.as_object_mut() {
            match name {
                Some(name) => members.insert("principal", name),
                None => members.remove("principal"),
            };
        }
        Ok(Some(context))
    }

    /// The canonical name of the principal, if there is one.
    fn principal(&self, view: &CallView<'_>) -> Result<Option<Value>, String> {
        match PrincipalValue::from_context(&view.call.context, self.principals) {
            PrincipalValue::Principal(principal) => Ok(Some(Value::from(principal.key()))),
            PrincipalValue::Missing => Ok(None),
            PrincipalValue::Invalid(found) => {
                Err(format!("`$.context.principal` is {found}, and must be a string"))
            }
        }
    }
}

/// Replaces each string that equals `written`, at any depth.
fn replace_strings(value: &mut Value, written: &str, replacement: &Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if text == written => value.clone_from(replacement),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values_mut()),
            _ => {}
        }
    }
}
