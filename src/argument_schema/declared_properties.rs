//! Lookup of declared property names in a schema.

use crate::json::Value;
use crate::path::PathStep;

/// The maximum number of schemas that apply to one value; further references and alternatives are ignored.
const MAX_SCHEMAS: usize = 64;

/// Whether a schema declares a property of this name for the object at a path.
pub(super) fn declares(root: &Value, path: &[PathStep], name: &str) -> bool {
    let mut schemas = applicable_schemas(root, &[root]);
    for step in path {
        let below: Vec<&Value> = schemas
            .iter()
            .flat_map(|schema| match step {
                PathStep::Name(name) => {
                    let declared = schema.get("properties").and_then(|all| all.get(name));
                    declared.or_else(|| schema.get("additionalProperties")).into_iter().collect::<Vec<_>>()
                }
                PathStep::Index(index) => {
                    let first =
                        usize::try_from(*index).ok().and_then(|index| schema.get("prefixItems")?.get(index));
                    first.into_iter().chain(schema.get("items")).collect()
                }
            })
            .collect();
        schemas = applicable_schemas(root, &below);
    }
    schemas.iter().any(|schema| schema.get("properties").is_some_and(|all| all.get(name).is_some()))
}

/// Returns the schemas that may apply to a value: these, the schemas that they refer to, and all their alternatives.
pub fn applicable_schemas<'s>(root: &'s Value, schemas: &[&'s Value]) -> Vec<&'s Value> {
    let mut all: Vec<&Value> = schemas.to_vec();
    let mut next = 0;
    while let Some(schema) = all.get(next).copied() {
        next += 1;
        let named =
            schema.get("$ref").and_then(Value::as_str).and_then(|name| root.pointer(name.strip_prefix('#')?));
        let of_several =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        let of_cases = ["if", "then", "else"].into_iter().filter_map(|word| schema.get(word));
        for more in named.into_iter().chain(of_several).chain(of_cases) {
            if all.len() < MAX_SCHEMAS && !all.iter().any(|known| std::ptr::eq(*known, more)) {
                all.push(more);
            }
        }
    }
    all
}
