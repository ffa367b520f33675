//! Keys of limits and caches: paths into a call → their values, with the principal in its canonical form.

use crate::call::{CallView, NodeRef as Place};
use crate::json::Value;
use crate::path::Path;
use crate::principal::{PrincipalComparison, PrincipalValue};
use crate::rules_schema::PolicyReader;
use crate::source::YamlNode;

/// The paths of a key.
#[derive(Debug)]
pub(super) struct KeyPaths {
    paths: Vec<Path>,
    principals: PrincipalComparison,
}

impl KeyPaths {
    /// Reads `key`. Without it the key has no paths.
    pub(super) fn read(node: Option<&YamlNode>, reader: &mut PolicyReader<'_>) -> Self {
        let paths = node.map(|node| reader.read_paths(node)).unwrap_or_default();
        Self { paths, principals: reader.principals }
    }

    /// The settings that counts depend on: the paths as written, and how principals are compared if that is not the default.
    pub(super) fn identity(&self) -> Vec<&str> {
        let exact = (!self.principals.is_canonical()).then_some("principals: exact");
        self.paths.iter().map(Path::text).chain(exact).collect()
    }

    /// Returns the values of each path: an array per path. An absent value counts as a distinct value.
    ///
    /// # Errors
    /// Returns a message if a path cannot be evaluated, or if the principal is neither absent nor a name.
    pub(super) fn values(&self, view: &CallView<'_>) -> Result<Vec<Value>, String> {
        let values = self.paths.iter().map(|path| {
            let nodes = path.nodes(view).map_err(|mismatch| mismatch.to_string())?;
            let values = nodes.iter().filter_map(|node| self.value(*node, view).transpose());
            values.collect::<Result<Value, String>>()
        });
        values.collect()
    }

    fn value(&self, node: Place<'_>, view: &CallView<'_>) -> Result<Option<Value>, String> {
        let context = &view.call.context;
        let is = |value: &Value| node.as_json().is_some_and(|json| std::ptr::eq(json, value));
        let of_principal = context.get("principal").is_some_and(is);
        if !of_principal && !is(context) {
            return Ok(Some(node.to_json()));
        }
        let name = match PrincipalValue::from_context(context, self.principals) {
            PrincipalValue::Principal(principal) => Some(Value::from(principal.key())),
            PrincipalValue::Missing => None,
            PrincipalValue::Invalid(found) => {
                return Err(format!("`$.context.principal` is {found}, and must be a string"));
            }
        };
        if of_principal {
            return Ok(name);
        }
        let mut context = context.clone();
        if let Some(members) = context.as_object_mut() {
            match name {
                Some(name) => members.insert("principal".to_owned(), name),
                None => members.remove("principal"),
            };
        }
        Ok(Some(context))
    }
}
